export const meta = { name: "thousand", description: "As many agents as a run may have" }

phase("All")
await parallel(Array.from({ length: args.agents }, (_, i) => () => agent(`sleep:${args.pause} x`, { label: `agent ${i + 1}` })))
return args.agents
