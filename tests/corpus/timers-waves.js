export const meta = { name: 'timers-waves', description: 'Waves of three, with a pause between them' }

const STAGGER_MS = 250
const delay = ms => new Promise(r => setTimeout(r, ms))
const items = Array.from({ length: 7 }, (_, i) => `item-${i + 1}`)
const out = []
for (let i = 0; i < items.length; i += 3) {
  const wave = items.slice(i, i + 3)
  out.push(...await Promise.all(wave.map((it, j) => delay(j * STAGGER_MS).then(() => agent(`Do ${it}`, { label: it })))))
  if (i + 3 < items.length) await delay(2000)
}
return out
