export const meta = { name: 'workflow-fails', description: 'A workflow that fails can be caught' }

const outcome = async (target, input) => {
  try {
    return await workflow(target, input)
  } catch (e) {
    return `${e.name} ${e.code ?? '-'}: ${e.message.split('\n')[0]}`
  }
}
const header = "export const meta = { name: 'inner', description: 'fails' }\n"
return [
  await outcome({ script: header + "throw new TypeError('no such table')" }),
  await outcome({ script: header + 'return (' }),
  await outcome({ script: 'return 1' }),
  await outcome({ script: header + "return await agent('x', { colour: 'red' })" }),
  await outcome('no-such-workflow'),
  await parallel([() => workflow({ script: header + "throw new Error('alone')" }), () => agent('other', { label: 'other' })]),
]
