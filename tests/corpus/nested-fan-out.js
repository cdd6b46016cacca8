export const meta = { name: 'nested-fan-out', description: 'Repositories, their packages, and checks of each' }

const repos = args.repos
const tree = await parallel(Object.entries(repos).map(([repo, packages]) => async () => {
  const checks = await parallel(packages.map((p) => () =>
    parallel(['lint', 'types', 'deps'].map((c) => () => agent(`${c} ${repo}/${p}`, { label: `${repo}/${p}:${c}` })))))
  const summary = await agent(`Summarise ${repo}`, { label: `sum:${repo}` })
  return { repo, checks: checks.flat().length, summary }
}))
return { total: tree.reduce((n, r) => n + r.checks, 0), tree }
