export const meta = { name: "triage", description: "Sorts bug reports by what three readers make of each" }

const read = (report) => agent(`How severe is this, 1 to 5?\n${report}`, {
  schema: { type: "object", properties: { severity: { type: "integer", minimum: 1, maximum: 5 } }, required: ["severity"] },
})
const readings = await pipeline(
  args.reports,
  (report) => parallel([1, 2, 3].map(() => () => read(report))),
  (votes, report) => ({ report, severity: Math.max(0, ...votes.map((vote) => vote?.severity ?? 0)) }),
)
return readings.filter((reading) => reading !== null).sort((a, b) => b.severity - a.severity)
