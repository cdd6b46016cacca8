export const meta = { name: 'promise-chains', description: 'then, catch, finally and Promise.all' }

let finished = 0
const ask = (name) => agent(`Ask ${name}`, { label: name })
  .then((answer) => answer.toUpperCase())
  .catch((err) => `failed: ${err.message}`)
  .finally(() => { finished++ })
const [a, b, rest] = await Promise.all([
  ask('ann'),
  ask('bob'),
  Promise.allSettled(['c', 'd'].map(ask)).then((all) => all.map((r) => r.status)),
])
const first = await Promise.any([ask('e'), Promise.reject(new Error('x'))])
const bad = await agent('bad', { label: 5 }).catch((e) => e.code)
return { a, b, rest, first, bad, finished }
