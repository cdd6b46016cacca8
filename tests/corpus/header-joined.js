
export const meta={name:`header-joined`,description:'No spaces, no semicolon, '
  + "and a description in two pieces",phases:[]}
return await agent('never')
