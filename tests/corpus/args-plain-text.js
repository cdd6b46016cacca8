export const meta = { name: 'args-plain-text', description: 'The guard, and text that is no JSON comes' }

let A = args
try { A = typeof args === 'string' ? JSON.parse(args) : args } catch (e) { A = { target: String(args) } }
const target = A && A.target ? A.target : 'everything'
return { target, answer: await agent(`Audit ${target}`, { label: target }) }
