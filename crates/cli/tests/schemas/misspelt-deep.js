export const meta = { name: "misspelt-deep", description: "A misspelt keyword in a definition, behind a combinator" }
return await agent("json:{}", { schema: { type: "object", properties: { a: { anyOf: [{ $ref: "#/$defs/e" }, { type: "null" }] } }, $defs: { e: { type: "string", enmu: ["x"] } } } })
