export const meta = { name: 'text-default-labels', description: 'No labels at all' }

const one = await agent('Short prompt')
const two = await agent('A first line that goes on for quite a while, well beyond what is shown\nand a second line')
return { one, two }
