export const meta = { name: 'workflow-levels', description: 'Three levels, and one too many' }

const inner = (depth) => `export const meta = { name: 'level-${depth}', description: 'a level' }
const mine = await agent('level ${depth}', { label: 'level ${depth}' })
try {
  return [mine, await workflow({ script: args.next[0] }, { next: args.next.slice(1) })]
} catch (e) {
  return [mine, e.name + ' ' + e.code]
}`
return await workflow({ script: inner(2) }, { next: [inner(3), inner(4)] })
