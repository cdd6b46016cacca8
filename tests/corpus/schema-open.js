export const meta = { name: 'schema-open', description: 'Objects whose properties nobody knows beforehand' }

const metrics = await agent('Collect metrics as name → value.', {
  label: 'metrics',
  schema: { type: 'object', additionalProperties: { type: 'number' } },
})
const report = await agent('Report freely.', {
  label: 'report',
  schema: { type: 'object', properties: { summary: { type: 'string' }, extra: { type: 'object' } }, required: ['summary', 'reviewer'] },
})
const empty = await agent('Anything?', { schema: { type: 'object' } })
return { metrics: Object.keys(metrics).length, report, empty }
