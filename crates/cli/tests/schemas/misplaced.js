export const meta = { name: "misplaced", description: "A property that stands beside properties" }
return await agent("json:{}", { schema: { type: "object", severity: { type: "integer" }, required: [] } })
