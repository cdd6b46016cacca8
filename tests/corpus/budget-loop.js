export const meta = { name: 'budget-loop', description: 'Looks for bugs until the budget is nearly gone' }

const found = []
let round = 0
while (budget.total && budget.remaining() > 3000) {
  round++
  const r = await agent(`Round ${round}: find a bug that is not among ${found.length} known ones.`, {
    label: `hunt ${round}`,
    schema: { type: 'object', properties: { bug: { type: 'string' } }, required: ['bug'] },
  })
  if (!r) break
  found.push(`${r.bug} ${round}`)
  log(`${budget.spent()} of ${budget.total} spent`)
}
return { rounds: round, found, left: budget.remaining() }
