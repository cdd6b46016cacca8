export const meta = { name: 'options-stall', description: 'Long builds get more patience' }

const targets = ['linux', 'macos', 'windows']
const builds = await parallel(targets.map(t => () => agent(
  `Build for ${t} and report warnings.`,
  { label: t, stallMs: t === 'windows' ? 15 * 60 * 1000 : 180_000, timeoutMs: 3_600_000, retries: 1 },
)))
return Object.fromEntries(targets.map((t, i) => [t, builds[i]]))
