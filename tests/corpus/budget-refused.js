export const meta = { name: 'budget-refused', description: 'Overspends, and keeps what it has' }

const kept = []
try {
  for (const part of ['intro', 'body', 'tables', 'index', 'cover']) {
    kept.push(await agent(`Write the ${part}.`, { label: part }))
  }
} catch (e) {
  if (e.code !== 'AGENT_CAP') throw e
  log(`stopped: ${e.message}`)
}
return { kept, over: budget.remaining() === 0, spent: budget.spent() }
