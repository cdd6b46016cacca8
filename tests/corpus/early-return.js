export const meta = { name: 'early-return', description: 'Stops early, and leaves an agent behind' }

const background = agent('Keep an eye on it.', { label: 'watch' })
background.catch(() => {})
const gate = await agent('Is there anything to do?', {
  label: 'gate',
  schema: { type: 'object', properties: { proceed: { type: 'boolean' }, reason: { type: 'string' } }, required: ['proceed'] },
})
if (gate && gate.proceed) return { stopped: true, reason: gate.reason }
return await background
