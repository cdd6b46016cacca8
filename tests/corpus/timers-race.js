export const meta = { name: 'timers-race', description: 'Gives up on an agent after a while' }

const withTimeout = (promise, ms, fallback) => {
  let timer
  const timeout = new Promise((resolve) => { timer = setTimeout(() => resolve(fallback), ms) })
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}
const quick = await withTimeout(agent('Quick one.', { label: 'quick' }), 24 * 3600 * 1000, 'too late')
const slow = await withTimeout(agent('Slow one.', { label: 'slow' }), 1000, 'too late')
return { quick, slow }
