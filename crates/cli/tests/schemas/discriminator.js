export const meta = { name: "discriminator", description: "OpenAPI's choice of a branch" }
return await agent('json:{"pet":{"kind":"cat"}}', { schema: { type: "object", properties: { pet: { oneOf: [{ type: "object", properties: { kind: { const: "cat" } } }, { type: "object", properties: { kind: { const: "dog" } } }], discriminator: { propertyName: "kind" } } } } })
