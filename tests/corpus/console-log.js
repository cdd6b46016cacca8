export const meta = { name: 'console-log', description: 'Says what it does the way people do' }

console.log('starting', { files: 3 }, [1, 2], null, undefined)
console.info('info')
const r = await agent('Do it.', { label: 'it' })
console.warn('warning:', r)
try { JSON.parse('{') } catch (e) { console.error('failed:', e.name) }
console.debug(true, 1.5)
return 'ok'
