export const meta = { name: "data", description: "Data that looks like a schema" }
return await agent('json:{"a":{"nullable":true,"requierd":["b"]}}', { schema: { type: "object", properties: { a: { const: { nullable: true, requierd: ["b"] }, default: { discriminator: 1 }, examples: [{ min: 1 }] } }, required: ["a"] } })
