export const meta = {
  name: 'statistics',
  description: 'A value that says how the run went',
  phases: [{ title: 'Collect' }, { title: 'Rate' }],
}

const t0 = Date.now()
const stats = { asked: 0, answered: 0, byPhase: {} }
const ask = async (prompt, opts) => {
  stats.asked++
  stats.byPhase[opts.phase] = (stats.byPhase[opts.phase] || 0) + 1
  const r = await agent(prompt, opts)
  if (r !== null) stats.answered++
  return r
}
phase('Collect')
const samples = await parallel([...Array(6).keys()].map((i) => () => ask(`Sample ${i}`, { label: `s${i}`, phase: 'Collect' })))
phase('Rate')
const ratings = await parallel(samples.map((s, i) => () => ask(`Rate ${s}`, {
  label: `r${i}`, phase: 'Rate',
  schema: { type: 'object', properties: { score: { type: 'number', minimum: 0, maximum: 10 } }, required: ['score'] },
})))
const scores = ratings.filter(Boolean).map((r) => r.score)
const mean = scores.reduce((a, b) => a + b, 0) / scores.length
return { mean, min: Math.min(...scores), max: Math.max(...scores), ...stats, durationMs: Date.now() - t0 }
