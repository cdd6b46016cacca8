export const meta = { name: 'console-errors', description: 'Logs odd values' }

const loop = {}; loop.self = loop
console.log(loop)
console.log(new Error('boom'))
console.log(Symbol('s'), 10n, () => 1)
console.log()
console.assert(1 === 1, 'fine')
console.assert(1 === 2, 'numbers are broken')
console.group('group'); console.log('inside'); console.groupEnd()
return await Promise.all(['a', 'b'].map((x) => agent(x, { label: x }).then((v) => { console.log(x, '->', v); return v })))
