export const meta = { name: 'budget-none', description: 'Scales with a budget that nobody set' }

const fleet = budget.total ? Math.max(1, Math.floor(budget.total / 10000)) : 3
const answers = await parallel(Array.from({ length: fleet }, (_, i) => () => agent(`Reader ${i + 1}: read the report.`, { label: `reader ${i + 1}` })))
return { fleet, total: budget.total, infinite: budget.remaining() === Infinity, spent: budget.spent() > 0, answers: answers.length }
