export const meta = {
  name: "triage",
  description: "Sorts bug reports by what three readers make of each",
  args: { type: "object", properties: { reports: { type: "array", items: { type: "string" } } }, required: ["reports"], additionalProperties: false },
}

const read = (report) => agent(`How severe is this, 1 to 5?\n${report}`, {
  schema: { type: "object", properties: { severity: { type: "integer", minimum: 1, maximum: 5 } }, required: ["severity"] },
})
const readings = await pipeline(
  args.reports,
  (report) => parallel([1, 2, 3].map(() => () => read(report))),
  (answers, report) => {
    // A reader that failed gave no answer: that is not a low severity.
    const given = answers.filter((answer) => answer !== null).map((answer) => answer.severity)
    return { report, severity: given.length > 0 ? Math.max(...given) : null, readers: given.length }
  },
)
const judged = readings.filter((reading) => reading.severity !== null).sort((a, b) => b.severity - a.severity)
return { judged, notJudged: readings.filter((reading) => reading.severity === null).map((reading) => reading.report) }
