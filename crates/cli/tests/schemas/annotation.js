export const meta = { name: "annotation", description: "A note that is not one of JSON Schema" }
return await agent('json:{"a":"x"}', { schema: { type: "object", properties: { a: { type: "string", markdownDescription: "**bold**" } } } })
