export const meta = {
  name: "triage",
  description: "Sorts bug reports by what three readers make of each",
  args: { type: "object", properties: { reports: { type: "array", items: { type: "string" } } }, required: ["reports"], additionalProperties: false },
}

const read = (report) => agent(`How severe is this, 1 to 5?\n${report}`, {
  schema: { type: "object", properties: { severity: { type: "integer", minimum: 1, maximum: 5 } }, required: ["severity"] },
})
const given = await pipeline(
  args.reports,
  (report) => parallel([1, 2, 3].map(() => () => read(report))),
  // A reader that failed gave no answer: that is not a low severity.
  (answers) => answers.filter((answer) => answer !== null).map((answer) => answer.severity),
)
const readings = args.reports.map((report, i) => {
  const severities = given[i] ?? []
  return { report, severity: Math.max(0, ...severities), readers: severities.length }
})
return {
  judged: readings.filter((reading) => reading.readers > 0).sort((a, b) => b.severity - a.severity),
  notJudged: readings.filter((reading) => reading.readers === 0).map((reading) => reading.report),
}
