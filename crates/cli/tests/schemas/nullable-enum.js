export const meta = { name: "nullable-enum", description: "Null beside an enum, as OpenAPI says it" }
return await agent('json:{"a":null}', { schema: { type: "object", properties: { a: { type: "string", enum: ["x", "y"], nullable: true } }, required: ["a"] } })
