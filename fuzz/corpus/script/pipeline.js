export const meta = { name: "p", description: "d", phases: [{ title: "A" }] }
phase("A")
const found = await pipeline(["a", "json:{\"n\":1}", "fail:x"], (p) => agent(p, { label: p }), (a, p, i) => [a, p, i])
log(JSON.stringify(found))
console.log(new URL("https://example.com/?q=1").search)
return found
