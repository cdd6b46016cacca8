export const meta = { name: "exclusive", description: "A bound that draft-04 and OpenAPI 3.0 say by a boolean" }
return await agent('json:{"n":0}', { schema: { type: "object", properties: { n: { type: "number", minimum: 0, exclusiveMinimum: true } }, required: ["n"] } })
