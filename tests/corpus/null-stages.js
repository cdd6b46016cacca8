export const meta = { name: 'null-stages', description: 'A stage that returns null goes on' }

const seen = []
const out = await pipeline(
  ['keep', 'skip'],
  (item) => (item === 'skip' ? null : agent(`Do ${item}`, { label: item })),
  (prev, item) => { seen.push([item, prev === null]); return prev ?? 'nothing' },
)
return { out, seen }
