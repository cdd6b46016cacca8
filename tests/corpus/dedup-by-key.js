export const meta = { name: 'dedup-by-key', description: 'Several finders, one list without duplicates' }

const finders = args?.finders ?? ['grep', 'history', 'tests', 'docs']
const raw = await parallel(finders.map((by) => () => agent(`Find dead code by ${by}.`, {
  label: `find:${by}`,
  schema: { type: 'object', properties: { items: { type: 'array', items: { type: 'object', properties: { file: { type: 'string' }, symbol: { type: 'string' } }, required: ['file', 'symbol'] } } }, required: ['items'] },
})))
const seen = new Map()
for (const r of raw.filter(Boolean)) {
  for (const item of r.items) {
    const key = `${item.file}::${item.symbol}`.toLowerCase()
    seen.set(key, { ...item, hits: (seen.get(key)?.hits ?? 0) + 1 })
  }
}
const unique = [...seen.values()]
log(`${raw.flatMap((r) => r?.items ?? []).length} found, ${unique.length} unique`)
const checked = await parallel(unique.map((u) => () => agent(`Is ${u.symbol} in ${u.file} really dead?`, { label: `check:${u.symbol}` })))
return { unique, checked }
