// A client that starts two runs and then waits to be killed: dying.js CLIENT URL ARGS…

import { BINARY, CLIENTS, TOKEN } from "./peers.js"

const [clientName, url, ...args] = process.argv.slice(2)
const { client, stdio, http, call } = CLIENTS[clientName]({})
const { PATH, HOME } = process.env
const transport = url
  ? http(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } })
  : stdio({ command: BINARY, args: ["mcp", ...args], env: { PATH, HOME } })
await client.connect(transport)
const workflow = { meta: { name: "hang", description: "hangs" }, script: "return await agent('hang')" }
await call({ name: "workflow_start", arguments: workflow })
await call({ name: "workflow", arguments: workflow })
