export const meta = { name: 'schema-refs', description: 'A tree by reference' }

const TREE = {
  type: 'object',
  properties: { root: { $ref: '#/$defs/node' } },
  required: ['root'],
  $defs: {
    node: {
      type: 'object',
      properties: { name: { type: 'string' }, kids: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['name'],
    },
  },
}
const plan = await agent('Break the migration down into a tree of tasks.', { schema: TREE })
const walk = (node, depth = 0) => [[node.name, depth], ...(node.kids ?? []).flatMap((kid) => walk(kid, depth + 1))]
return walk(plan.root)
