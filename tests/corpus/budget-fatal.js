export const meta = { name: 'budget-fatal', description: 'Fans out once more after the budget is gone' }

await agent('Spend it all.', { label: 'spend' })
return await parallel([1, 2, 3].map((n) => () => agent(`More ${n}`)))
