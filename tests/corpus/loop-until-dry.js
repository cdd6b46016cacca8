export const meta = { name: 'loop-until-dry', description: 'Asks until two rounds bring nothing new' }

const seen = new Set()
let dry = 0, rounds = 0
while (dry < 2 && rounds < 10) {
  rounds++
  const r = await parallel([0, 1].map((i) => () => agent(`Round ${rounds}, finder ${i}: anything beyond ${seen.size}?`, {
    label: `r${rounds}.${i}`,
    schema: { type: 'object', properties: { names: { type: 'array', items: { type: 'string' } } } },
  })))
  const fresh = r.filter(Boolean).flatMap((x) => x.names || []).filter((n) => !seen.has(n))
  if (!fresh.length) { dry++; continue }
  dry = 0
  fresh.forEach((n) => seen.add(n))
}
return { rounds, seen: [...seen] }
