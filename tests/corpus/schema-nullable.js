export const meta = { name: 'schema-nullable', description: 'Answers that may be absent' }

const OWNER = {
  type: 'object',
  properties: {
    owner: { type: ['string', 'null'] },
    team: { anyOf: [{ type: 'null' }, { type: 'object', properties: { name: { type: 'string' }, size: { type: 'integer' } } }] },
    since: { type: ['null', 'integer'], minimum: 1990, maximum: 2100 },
    backup: { oneOf: [{ type: 'string', format: 'email' }, { type: 'null' }] },
    nothing: { type: 'null' },
  },
  required: ['owner', 'team', 'since', 'backup', 'nothing'],
}
const rows = await pipeline(
  args.paths,
  (path) => agent(`Who owns ${path}?`, { label: path, schema: OWNER }),
  (who, path) => ({ path, owner: who?.owner ?? 'nobody', team: who?.team?.name ?? null, since: who?.since ?? null, who }),
)
return rows
