export const meta = { name: 'options-private', description: 'Carries its own notes in the options' }

const items = ['one', 'two', 'three']
const results = await parallel(items.map((item, i) => () =>
  agent(`Handle ${item}`, { label: item, _index: i, _group: { name: 'batch', size: items.length } })))
return results
