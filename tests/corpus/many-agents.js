export const meta = { name: 'many-agents', description: 'Two hundred at once' }

const n = (args && args.n) || 200
const all = await parallel(Array.from({ length: n }, (_, i) => () => agent(`Shard ${i} of ${n}`, { label: `shard ${i}`, phase: 'Shards' })))
return { ok: all.filter(Boolean).length, last: all.at(-1) }
