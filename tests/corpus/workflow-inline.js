export const meta = { name: 'workflow-inline', description: 'Writes a workflow and runs it' }

const lenses = ['speed', 'size']
const script = `export const meta = { name: 'lens', description: 'One lens' }
phase('Inner')
const answers = await parallel(${JSON.stringify(lenses)}.map((l) => () => agent('Look at ' + args.file + ' for ' + l, { label: l })))
return { file: args.file, answers }`
const results = await Promise.all(['a.c', 'b.c', 'c.c'].map((file) => workflow({ script }, { file })))
return results
