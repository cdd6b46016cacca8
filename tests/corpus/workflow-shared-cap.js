export const meta = { name: 'workflow-shared-cap', description: 'The budget is one, wherever it is spent' }

const header = "export const meta = { name: 'inner', description: 'spends' }\n"
const inner = await workflow({ script: header + "await agent('inside', { label: 'inside' }); return [budget.total, budget.spent()]" })
const before = budget.spent()
await agent('outside', { label: 'outside' })
return { inner, before, after: budget.spent(), remaining: budget.remaining() }
