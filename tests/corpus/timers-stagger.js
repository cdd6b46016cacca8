export const meta = { name: 'timers-stagger', description: 'Starts agents half a second apart, to be kind to the API' }

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const jobs = ['north', 'east', 'south', 'west']
phase('Survey')
const results = await parallel(jobs.map((job, i) => async () => {
  await sleep(i * 500)
  return agent(`Survey the ${job}.`, { label: job })
}))
return results
