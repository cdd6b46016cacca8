export const meta = {
  name: 'verify-votes',
  description: 'Reviews a diff along several dimensions and keeps what survives three sceptics',
  phases: [{ title: 'Review' }, { title: 'Verify' }, { title: 'Report' }],
}

const DIMENSIONS = [
  { key: 'bugs', prompt: 'Find correctness bugs.' },
  { key: 'perf', prompt: 'Find needless work.' },
  { key: 'security', prompt: 'Find untrusted input.' },
]
const FINDINGS = {
  type: 'object',
  properties: {
    findings: {
      type: 'array',
      items: { type: 'object', properties: { title: { type: 'string' }, file: { type: 'string' }, line: { type: 'integer' } }, required: ['title'] },
    },
  },
  required: ['findings'],
}
const VERDICT = { type: 'object', properties: { isReal: { type: 'boolean' }, why: { type: 'string' } }, required: ['isReal'] }

const results = await pipeline(
  DIMENSIONS,
  (d) => agent(d.prompt, { label: `review:${d.key}`, phase: 'Review', schema: FINDINGS }),
  (review, d) => parallel((review?.findings ?? []).map((f) => () =>
    parallel(['sceptic', 'optimist', 'reader'].map((who) => () =>
      agent(`As a ${who}: is "${f.title}" real?`, { label: `verify:${d.key}:${who}`, phase: 'Verify', schema: VERDICT })))
      .then((votes) => ({ ...f, dimension: d.key, votes: votes.filter(Boolean).filter((v) => v.isReal).length })))),
)
const confirmed = results.flat().filter(Boolean).filter((f) => f.votes >= 2)
phase('Report')
const report = await agent(`Write up ${confirmed.length} findings`, { label: 'report' })
return { confirmed, stats: { reviewed: DIMENSIONS.length, confirmed: confirmed.length }, report }
