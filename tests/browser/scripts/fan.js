export const meta = {
  name: "sweep",
  description: "Reads two hundred files, looks twice at what is odd, and folds what was found into one report",
  phases: [{ title: "Read" }, { title: "Look twice" }, { title: "Fold" }, { title: "Publish" }],
}

phase("Read")
log("200 files to read")
const readings = await parallel(
  Array.from({ length: 180 }, (_, i) => () => {
    const pause = args.pause + ((i * 37) % 11) * args.spread
    return agent(`sleep:${pause} read`, { label: `src/module-${String(i + 1).padStart(3, "0")}.rs` })
  }),
)

phase("Look twice")
log(`${readings.filter(Boolean).length} files were read`)
const second = await pipeline(
  Array.from({ length: 18 }, (_, i) => i),
  (i) => agent(i % 6 === 5 ? "fail:the file is larger than the model's context" : `sleep:${args.pause * 2} again`, { label: `second look at module ${i * 10 + 1}` }),
  (answer, i) => {
    log(answer === null ? `module ${i * 10 + 1} could not be read again` : `module ${i * 10 + 1}: ${answer}`)
    return answer
  },
)

phase("Fold")
const report = await agent(`json:${JSON.stringify({ risky: 4, sound: 176 })}`, { label: "count", schema: { type: "object" } })
const words = await agent(`sleep:${args.pause} words`, { label: "put it in words" })
return {
  summary: "176 of 180 modules are sound. Four deserve a closer look.",
  report,
  words,
  modules: readings.map((reading, i) => ({ module: i + 1, reading })),
  missing: second.map((answer, i) => (answer === null ? i * 10 + 1 : null)).filter((module) => module !== null),
}
