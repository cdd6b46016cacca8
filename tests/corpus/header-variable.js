export const meta = {
  name: 'header-variable',
  description: 'Made at ' + new Date().toISOString(),
}
return await agent('never')
