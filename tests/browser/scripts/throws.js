export const meta = { name: "broken", description: "Fails half way" }

phase("Start")
await agent("hello", { label: "greet" })
phase("Break")
throw new TypeError("the answer had no <b>findings</b>")
