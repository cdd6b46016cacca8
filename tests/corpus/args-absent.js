export const meta = { name: 'args-absent', description: 'Nobody passed any' }

const topics = args?.topics ?? ['default']
const depth = Number(args?.depth ?? 1)
const kind = typeof args
const answers = []
for (let i = 0; i < depth; i++) {
  answers.push(...(await parallel(topics.map((t) => () => agent(`Explain ${t}, round ${i + 1}.`, { label: `${t} ${i + 1}` })))))
}
return { kind, answers }
