export const meta = { name: "patient", description: "Waits until it is cancelled" }

phase("Wait")
return await parallel([1, 2, 3].map((n) => () => agent("hang:", { label: `waits ${n}` })))
