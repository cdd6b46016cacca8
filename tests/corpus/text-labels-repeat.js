export const meta = { name: 'text-labels-repeat', description: 'Every worker has the same label' }

const answers = await parallel(Array.from({ length: 5 }, (_, i) => () => agent(`Part ${i}`, { label: 'worker' })))
const twice = await pipeline(answers, (a) => agent(`Check ${a}`, { label: 'worker', phase: 'Check' }))
return { same: new Set(answers).size === 1, count: answers.length + twice.length }
