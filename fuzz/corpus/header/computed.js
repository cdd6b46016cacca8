export const meta = {name: "a", description: M}
return 1