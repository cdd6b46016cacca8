export const meta = { name: "nullable-name", description: "Properties whose names are keywords elsewhere, or look misspelt" }
return await agent('json:{"nullable":"x","requierd":1}', { schema: { type: "object", properties: { nullable: { type: "string" }, requierd: { type: "integer" }, additionalItems: { type: "null" } }, required: ["nullable", "requierd"] } })
