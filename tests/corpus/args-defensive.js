export const meta = { name: 'args-defensive', description: 'Takes JSON text for an object' }

const input = typeof args === "string" ? JSON.parse(args) : args
const { repo, files = [], dryRun = false } = input ?? {}
if (dryRun) log(`dry run of ${repo}`)
const results = await parallel(files.map((f) => () => agent(`Check ${f} in ${repo}`, { label: f })))
return { repo, results, dryRun }
