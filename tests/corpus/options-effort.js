export const meta = {
  name: 'options-effort',
  description: 'Scans cheaply, then thinks hard about what was found',
  phases: [{ title: 'Scan' }, { title: 'Judge' }],
}

phase('Scan')
const modules = (args && args.modules) || ['auth', 'billing', 'search']
const notes = await parallel(modules.map(m => () =>
  agent(`Skim ${m} and list anything odd. Be quick.`, { label: `scan:${m}`, phase: 'Scan', effort: 'low' })
))

phase('Judge')
const verdict = await agent(
  'Here are notes from a quick scan:\n' + notes.filter(Boolean).join('\n') + '\nWhich of these matters most?',
  { label: 'judge', phase: 'Judge', effort: 'max' },
)
return { scanned: notes.length, verdict }
