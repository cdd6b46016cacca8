export const meta = { name: 'chunks', description: 'Batches a long list', phases: [{ title: 'Map' }, { title: 'Reduce' }] }

function chunk(list, size) {
  const out = []
  for (let i = 0; i < list.length; i += size) out.push(list.slice(i, i + size))
  return out
}
class Tally {
  #n = 0
  static of(list) { const t = new Tally(); list.forEach((x) => t.add(x)); return t }
  add(x) { if (x) this.#n++ }
  get count() { return this.#n }
}
phase('Map')
const rows = Array.from({ length: 25 }, (_, i) => ({ id: i, name: `row ${i}` }))
const mapped = await parallel(chunk(rows, 10).map((c, i) => () => agent(`Classify:\n${c.map((r) => `- ${r.name}`).join('\n')}`, { label: `batch ${i} (${c.length})` })))
phase('Reduce')
const total = Tally.of(mapped).count
return { total, answer: await agent(`Merge ${total} batches`, { label: 'merge' }) }
