export const meta = { name: 'schema-optional', description: 'Most properties are optional' }

const CHANGE = {
  type: 'object',
  properties: {
    file: { type: 'string' },
    kind: { type: 'string', enum: ['add', 'change', 'remove'] },
    breaking: { type: 'boolean' },
    note: { type: 'string' },
  },
  required: ['file'],
}
const LIST = { type: 'object', properties: { changes: { type: 'array', items: CHANGE } } }
const answer = await agent('List what changed since the last release.', { schema: LIST })
const changes = answer?.changes ?? []
return {
  count: changes.length,
  breaking: changes.filter((c) => c.breaking).map((c) => c.file),
  unknown: changes.filter((c) => c.kind === undefined).length,
}
