export const meta = { name: 'args-text', description: 'The arguments are a question' }

const question = (args || '').trim()
if (!question) return { error: 'ask something' }
log('Question: ' + question)
const angles = ['history', 'economics']
const found = await parallel(angles.map((a) => () => agent(`Research "${question}" from the angle of ${a}.`, { label: a })))
return { question, found }
