export const meta = { name: 'phases-undeclared', description: 'Phases that meta does not name', phases: [{ title: 'Plan' }] }

phase('Plan')
await agent('Plan', { label: 'p' })
phase('Improvise')
await parallel([() => agent('x', { label: 'x' }), () => agent('y', { label: 'y', phase: 'Elsewhere' })])
for (const n of [1, 2]) { phase(`Round ${n}`); await agent(`r${n}`, { label: `r${n}` }) }
return 'done'
