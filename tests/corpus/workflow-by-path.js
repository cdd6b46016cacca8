export const meta = { name: 'workflow-by-path', description: 'Runs a workflow that lies beside it' }

const first = await workflow({ scriptPath: 'args-array.js' }, [7, 8])
const second = await workflow({ scriptPath: './args-text.js' }, 'Why?')
return { first, found: second.found.length }
