export const meta = { name: 'workflow-by-name', description: 'Runs a saved workflow for every package', phases: [{ title: 'Audit' }] }

phase('Audit')
const packages = ['core', 'cli']
const audits = await parallel(packages.map((p) => () => workflow('args-defensive-object', { target: p })))
const summary = await agent(`Summarise ${audits.length} audits`, { label: 'summary' })
return { audits, summary }
