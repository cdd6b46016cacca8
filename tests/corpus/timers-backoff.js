export const meta = { name: 'timers-backoff', description: 'Tries again with longer and longer waits, and tells the time' }

const start = Date.now()
const elapsed = []
let answer = null
for (let attempt = 0; attempt < 4 && answer === null; attempt++) {
  await new Promise((resolve, reject) => setTimeout((a, b) => resolve(a + b), 100 * 2 ** attempt, 1, 2))
  elapsed.push(Date.now() - start)
  if (attempt === 2) answer = await agent('Now?', { label: `attempt ${attempt}` })
}
const cancelled = setTimeout(() => log('never'), 10)
clearTimeout(cancelled)
clearTimeout(undefined)
return { answer, elapsed }
