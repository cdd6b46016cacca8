const NAME = 'header-computed'
export const meta = { name: NAME, description: `Written by ${NAME}` }

return await agent('never')
