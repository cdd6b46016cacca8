// The clients and transports that the suite drives `fanfold mcp` with, behind one face.

import { spawn } from "node:child_process"
import { chmodSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { createConnection, createServer } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"

import * as v2 from "@modelcontextprotocol/client"
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio"
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js"

export const BINARY = process.env.FANFOLD ?? fileURLToPath(new URL("../../../target/debug/fanfold", import.meta.url))
export const TOKEN = "the-token-of-the-tests"
const INFO = { name: "fanfold-test", version: "1.0.0" }

// Every client that is tested: which SDK, and how it speaks with a server.
export const CLIENTS = {
  "sdk 1.x, 2025-11-25": connector1,
  "client 2.x, 2025-11-25": (options) => connector2(options, "legacy"),
  "client 2.x, 2026-07-28": (options) => connector2(options, { pin: "2026-07-28" }),
}

function connector1({ sample, onLog, capabilities = {} }) {
  const client = new Client1(INFO, { capabilities: { ...capabilities, ...(sample && { sampling: {} }) } })
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => sample(params))
  if (onLog) client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => onLog(params))
  return {
    client,
    stdio: (parameters) => new Stdio1(parameters),
    http: (url, init) => new Http1(url, init),
    call: (params, options) => client.callTool(params, CallToolResultSchema, options),
  }
}

function connector2({ sample, onLog, capabilities = {} }, mode) {
  const client = new v2.Client(INFO, {
    capabilities: { ...capabilities, ...(sample && { sampling: {} }) },
    versionNegotiation: { mode },
  })
  if (sample) client.setRequestHandler("sampling/createMessage", ({ params }) => sample(params))
  if (onLog) client.setNotificationHandler("notifications/message", ({ params }) => onLog(params))
  return {
    client,
    stdio: (parameters) => new Stdio2(parameters),
    http: (url, init) => new v2.StreamableHTTPClientTransport(url, init),
    call: (params, options) => client.callTool(params, options),
  }
}

// Connects a client with a server of its own, over "stdio" or "http". `args` are the server's, `cwd` its folder. Over
// "http" the client goes by the address that `detour` makes of the server's.
export async function connect(
  clientName,
  transportName,
  { args = ["--agents", "scripted"], cwd, detour = (url) => url, ...options } = {},
) {
  const { client, stdio, http, call } = CLIENTS[clientName](options)
  if (transportName === "stdio") {
    const transport = stdio({ command: BINARY, args: ["mcp", ...args], cwd, env: environment(), stderr: "ignore" })
    await client.connect(transport)
    return { client, call, pid: transport.pid, close: () => client.close() }
  }
  const server = await serve(args, cwd)
  const transport = http(new URL(await detour(server.url)), { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } })
  await client.connect(transport)
  const close = async () => {
    await client.close()
    await server.stop()
  }
  return { client, call, pid: server.pid, url: server.url, close }
}

// Starts a server that listens on a free port.
export async function serve(args = ["--agents", "scripted"], cwd = undefined) {
  const words = ["mcp", "--transport", "http", "--token-env", "FANFOLD_TEST_TOKEN", ...args]
  const child = spawn(BINARY, words, { cwd, env: environment(), stdio: ["ignore", "pipe", "pipe"] })
  const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })))
  let printed = ""
  child.stdout.on("data", (data) => (printed += data))
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      const [address] = line.match(/http:\S+\/mcp/) ?? []
      if (address) resolve(address)
    })
    child.once("exit", () => reject(new Error("the server did not start")))
  })
  const stop = async () => {
    child.kill("SIGTERM")
    return await exited
  }
  return { url, pid: child.pid, stop, exited, printed: () => printed }
}

// An address that leads to a server, until `text` comes from there: then that connection is cut, once.
export async function breaking(url, text) {
  const { port } = new URL(url)
  let broken = false
  const proxy = createServer((client) => {
    const server = createConnection({ host: "127.0.0.1", port })
    const cut = () => [client, server].forEach((socket) => socket.destroy())
    for (const socket of [client, server]) socket.on("error", cut).on("close", cut)
    client.pipe(server)
    server.on("data", (data) => {
      client.write(data)
      if (!broken && data.includes(text)) {
        broken = true
        setImmediate(cut)
      }
    })
  })
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  proxy.unref()
  return url.replace(port, proxy.address().port)
}

// Agents that take a while and leave a line in a file each, by which they can be counted.
export function paidAgents(folder, seconds) {
  const file = join(folder, "paid")
  writeFileSync(file, "")
  const command = join(folder, "agent.sh")
  writeFileSync(command, `#!/bin/sh\necho paid >> ${file}\nsleep ${seconds}\necho the value\n`)
  chmodSync(command, 0o755)
  const paid = () => readFileSync(file, "utf8").split("\n").length - 1
  return { paid, args: ["--agent-command", command] }
}

function environment() {
  const { PATH, HOME } = process.env
  return { PATH, HOME, FANFOLD_TEST_TOKEN: TOKEN }
}

// The processes that have this word in their command line, as agents that hang do.
export function processesWith(word) {
  return readdirSync("/proc").filter((entry) => {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) return false
    try {
      return readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0").includes(word)
    } catch {
      return false
    }
  })
}

// Returns once the condition holds; the runner's own timeout is what fails.
export async function until(condition) {
  while (!(await condition())) await sleep(20)
}

let last = 0
// An agent that hangs, as a command that can be recognised among the processes.
export function hangingAgent() {
  last += 1
  const seconds = `${100000 + process.pid}.${last}`
  return { word: seconds, args: ["--agent-command", `sleep ${seconds}`, "--limits", '{"maxConcurrentAgents": 4}'] }
}
