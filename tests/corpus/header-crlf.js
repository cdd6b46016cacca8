export const meta = {
  "name": "header-crlf",
  "description": "As JSON, with CRLF",
  "phases": [ { "title": "Ask" } ]
}
phase("Ask")
const names = ["a", "b"]
const all = await Promise.all(names.map((n) => agent("Ask " + n, { label: n })))
return all
