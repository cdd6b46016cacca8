// What every client must find in `fanfold mcp`, over both transports.

import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, test } from "node:test"
import { fileURLToPath } from "node:url"

import { CLIENTS, breaking, connect, hangingAgent, paidAgents, processesWith, serve, until } from "./peers.js"

const META = { name: "test", description: "a test" }
const workflow = (script, rest = {}) => ({ name: "workflow", arguments: { meta: META, script, ...rest } })
const textOf = (result) => result.content.map((block) => block.text).join("\n")
const timeout = 300_000

for (const clientName of Object.keys(CLIENTS)) {
  const modern = clientName.endsWith("2026-07-28")
  for (const transport of ["stdio", "http"]) {
    describe(`${clientName} over ${transport}`, { timeout }, () => {
      const with_ = async (options, act) => {
        const peer = await connect(clientName, transport, options)
        try {
          return await act(peer)
        } finally {
          await peer.close()
        }
      }

      test("lists five tools that say what they take and give", () =>
        with_({}, async ({ client }) => {
          const { tools } = await client.listTools()
          const names = ["workflow", "workflow_start", "workflow_status", "workflow_result", "workflow_cancel"]
          assert.deepEqual(tools.map((tool) => tool.name).sort(), names.sort())
          for (const tool of tools) {
            assert.equal(tool.inputSchema.type, "object")
            assert.equal(tool.outputSchema.type, "object")
            assert.ok(tool.description.length > 20)
          }
          assert.match(client.getInstructions(), /^Use the workflow tool ONLY when the user explicitly asks/)
          assert.match(tools.find((tool) => tool.name === "workflow").description, /workflow_start/)
        }))

      test("runs a script and gives text and value", () =>
        with_({}, async ({ call }) => {
          const script = "return await parallel(args.words.map((word) => () => agent(word)))"
          const result = await call(workflow(script, { args: { words: ["fan", "fold"] } }))
          assert.ok(!result.isError, textOf(result))
          const text = 'workflow "test" completed (2 agents).\nReturn value:\n[\n  "echo:fan",\n  "echo:fold"\n]'
          assert.equal(result.content[0].text, text)
          assert.deepEqual(result.structuredContent.result, ["echo:fan", "echo:fold"])
          assert.equal(result.structuredContent.agentsStarted, 2)
          assert.ok(result.structuredContent.runId)
        }))

      test("tells a model what it did wrong", () =>
        with_({}, async ({ call }) => {
          const bad = await call({ name: "workflow", arguments: { meta: { name: "x" }, script: 3 } })
          assert.ok(bad.isError)
          assert.match(textOf(bad), /description/)
          assert.match(textOf(bad), /script/)
          const failed = await call(workflow("throw new Error('no luck')"))
          assert.ok(failed.isError)
          assert.match(textOf(failed), /^Error: workflow run failed: .*no luck/)
          const parse = await call(workflow("return ]"))
          assert.ok(parse.isError)
          assert.match(textOf(parse), /line 1/)
          await assert.rejects(call({ name: "no_such_tool", arguments: {} }))
        }))

      test("tells progress to those who ask", () =>
        with_({}, async ({ call }) => {
          const told = []
          const script = "phase('Look'); await agent('sleep:300'); phase('Write'); await agent('sleep:300'); return 1"
          await call(workflow(script), { onprogress: (progress) => told.push(progress) })
          assert.ok(told.length >= 3, JSON.stringify(told))
          for (let i = 1; i < told.length; i++) assert.ok(told[i].progress > told[i - 1].progress)
          assert.ok(told.some(({ message }) => message === "Look: 0 of 1 agent done"), JSON.stringify(told))
          assert.ok(told.some(({ message }) => message?.startsWith("Write: 1 of ")), JSON.stringify(told))
        }))

      test("passes logs on that are severe enough", async () => {
        const lines = []
        await with_({ onLog: (line) => lines.push(line) }, async ({ client, call }) => {
          const say = async (level, text) => {
            const request = workflow(`log(${JSON.stringify(text)}); return 1`)
            if (modern) request._meta = { "io.modelcontextprotocol/logLevel": level }
            else await client.setLoggingLevel(level)
            await call(request)
          }
          await say("error", "too quiet")
          await say("info", "loud enough")
          await until(() => lines.length > 0)
          if (modern) await call(workflow("log('nobody asked'); return 1"))
          assert.deepEqual(lines.map(({ level, data }) => [level, data.message]), [["info", "loud enough"]])
        })
      })

      test("stops a run and its agents when the call is cancelled", async () => {
        const { word, args } = hangingAgent()
        await with_({ args }, async ({ call }) => {
          const controller = new AbortController()
          const calling = call(workflow("return await agent('hang')"), { signal: controller.signal })
          await until(() => processesWith(word).length === 1)
          controller.abort()
          await assert.rejects(calling)
          await until(() => processesWith(word).length === 0)
          assert.equal(textOf(await call(workflow("return 1"))).split("\n")[0], 'workflow "test" completed (0 agents).')
        })
      })

      test("answers several calls at once", () =>
        with_({ args: ["--agents", "scripted", "--limits", '{"maxConcurrentAgents": 16}'] }, async ({ call }) => {
          const rendezvous = Array.from({ length: 8 }, (_, n) => call(workflow(`await agent("sleep:200"); return ${n}`)))
          const quick = await call(workflow("return 'quick'"))
          assert.equal(quick.structuredContent.result, "quick")
          const results = await Promise.all(rendezvous)
          assert.deepEqual(results.map((result) => result.structuredContent.result), [0, 1, 2, 3, 4, 5, 6, 7])
        }))

      test("gives a result of 2 MB in pages", () =>
        with_({}, async ({ call }) => {
          const script = "const part = 'é€😀x'.repeat(10); return Array.from({ length: 36000 }, (_, n) => part + n)"
          const first = await call(workflow(script))
          assert.match(textOf(first), /… \[truncated: \d+ more characters\]/)
          const { runId } = first.structuredContent
          assert.ok(textOf(first).includes(runId))
          assert.equal(first.structuredContent.result, undefined)
          let json = ""
          for (let offset = 0; offset !== undefined; ) {
            const page = await call({ name: "workflow_result", arguments: { runId, offset } })
            assert.ok(!page.isError, textOf(page))
            json += page.structuredContent.page
            offset = page.structuredContent.nextOffset
          }
          assert.ok(Buffer.byteLength(json) > 2_000_000)
          const value = JSON.parse(json)
          assert.deepEqual([value.length, value[35999]], [36000, "é€😀x".repeat(10) + "35999"])
        }))

      test("says all in the text, and all in the structured half", () =>
        with_({}, async ({ call }) => {
          const cut = await call(workflow("return 'y'.repeat(120000)"))
          const { page, nextOffset, runId } = cut.structuredContent
          assert.ok(page.length === nextOffset && textOf(cut).includes(page) && textOf(cut).includes(runId))
          const prompts = "Array.from({ length: 300 }, (_, i) => () => agent(`fail:no licence ${'x'.repeat(1000)}`))"
          const failed = await call(workflow(`return (await parallel(${prompts})).filter(Boolean).length`))
          assert.match(textOf(failed), /300 agents failed:\n- 300 agents failed: no licence/)
          assert.equal(failed.structuredContent.failures.length, 50)
          assert.equal(failed.structuredContent.moreFailures, 250)
          assert.ok(JSON.stringify(failed).length < 200_000)
          const thrown = await call(workflow("await agent('a'); throw new Error('boom')"))
          assert.ok(thrown.isError)
          assert.equal(thrown.structuredContent.state, "error")
          assert.match(thrown.structuredContent.error.message, /boom/)
          assert.ok(textOf(thrown).includes(thrown.structuredContent.runId))
        }))

      test("finds the run of a call that was given up silently", async () => {
        const { paid, args } = paidAgents(mkdtempSync(join(tmpdir(), "fanfold-")), 1)
        await with_({ args }, async ({ call }) => {
          const script = "return await agent('x')"
          const first = call(workflow(script))
          await until(() => paid() === 1)
          const status = await call({ name: "workflow_status", arguments: {} })
          const [{ runId, state }] = status.structuredContent.runs
          assert.ok(state === "running" && textOf(status).includes(runId))
          const again = await call(workflow(script))
          assert.equal(again.structuredContent.runId, runId)
          assert.equal(again.structuredContent.result, "the value")
          assert.equal((await first).structuredContent.runId, runId)
          assert.equal(paid(), 1)
        })
      })

      test("tells which run it is before anything else", () =>
        with_({}, async ({ call }) => {
          const told = []
          const onprogress = ({ message }) => told.push(message)
          const result = await call(workflow("return await agent('sleep:300')"), { onprogress })
          assert.equal(told[0], `run ${result.structuredContent.runId}`)
        }))

      test("offers saved workflows as tools", async () => {
        const cwd = mkdtempSync(join(tmpdir(), "fanfold-"))
        mkdirSync(join(cwd, ".fanfold/workflows"), { recursive: true })
        const header = `export const meta = { name: "add", description: "Adds up",
          args: { type: "object", properties: { n: { type: "array", items: { type: "integer" } } }, required: ["n"] } }`
        writeFileSync(join(cwd, ".fanfold/workflows/add.js"), `${header}\nreturn args.n.reduce((a, b) => a + b, 0)`)
        await with_({ args: ["--agents", "scripted", "--name", "add"], cwd }, async ({ client, call }) => {
          const { tools } = await client.listTools()
          assert.deepEqual(tools.find(({ name }) => name === "add").inputSchema.required, ["n"])
          const sum = await call({ name: "add", arguments: { n: [1, 2, 3] } })
          assert.equal(sum.structuredContent.result, 6)
          const wrong = await call({ name: "add", arguments: { n: [1, "2"] } })
          assert.ok(wrong.isError)
          assert.equal(wrong.structuredContent.error.path, "args.n[1]")
        })
      })

      if (transport === "http") {
        test("loses nothing with a connection", async () => {
          const { paid, args } = paidAgents(mkdtempSync(join(tmpdir(), "fanfold-")), 1)
          await with_({ args, detour: (url) => breaking(url, '"run ') }, async ({ call }) => {
            const script = "return await agent('x')"
            const first = call(workflow(script), { onprogress: () => {}, timeout: 20_000 })
            if (modern) {
              // Without sessions a connection that is dropped is a call that is cancelled. The client waits on.
              await assert.rejects(first)
            } else {
              assert.equal((await first).structuredContent.result, "the value")
            }
            assert.equal(paid(), 1)
            assert.equal((await call(workflow(script))).structuredContent.result, "the value")
            assert.equal(paid(), 2)
          })
        })
      }

      test("runs in the background", () =>
        with_({}, async ({ call }) => {
          const script = "phase('Wait'); await agent('sleep:200'); return 'later'"
          const started = await call({ ...workflow(script), name: "workflow_start" })
          const { runId } = started.structuredContent
          const status = await call({ name: "workflow_status", arguments: { runId } })
          assert.equal(status.structuredContent.runId, runId)
          const result = await call({ name: "workflow_result", arguments: { runId, waitMs: 60000 } })
          assert.equal(JSON.parse(result.structuredContent.page), "later")
          const hanging = await call({ ...workflow("return await agent('hang:')"), name: "workflow_start" })
          const cancelled = await call({
            name: "workflow_cancel",
            arguments: { runId: hanging.structuredContent.runId },
          })
          assert.equal(cancelled.structuredContent.state, "cancelled")
          const unknown = await call({ name: "workflow_status", arguments: { runId: "no-such-run" } })
          assert.ok(unknown.isError)
        }))

      test("leaves nothing behind when its client dies", async () => {
        const { word, args } = hangingAgent()
        const idle = transport === "http" ? ["--session-idle-ms", "500"] : []
        const server = transport === "http" ? await serve([...args, ...idle]) : undefined
        const words = [fileURLToPath(new URL("./dying.js", import.meta.url)), clientName, server?.url ?? "", ...args]
        const dying = spawn(process.execPath, words, { stdio: "ignore" })
        // One agent of a call that waits, and one of a run in the background; the latter belongs to no session, and
        // so to the server, where the protocol has no sessions.
        const outlives = transport === "http" && modern ? 1 : 0
        await until(() => processesWith(word).length === 2)
        dying.kill("SIGKILL")
        await until(() => processesWith(word).length === outlives)
        await server?.stop()
        await until(() => processesWith(word).length === 0)
      })

      test("stops everything when it is told to end", async () => {
        const { word, args } = hangingAgent()
        const peer = await connect(clientName, transport, { args })
        const calling = assert.rejects(async () => {
          const result = await peer.call(workflow("return await agent('hang')"))
          if (result.isError) throw new Error(textOf(result))
        })
        await peer.call({ ...workflow("return await agent('hang')"), name: "workflow_start" })
        await until(() => processesWith(word).length === 2)
        process.kill(peer.pid, "SIGTERM")
        await until(() => processesWith(word).length === 0)
        await calling
        await peer.close()
      })

      test("lets the client's own model be the agents", async () => {
        const asked = []
        const sample = async ({ messages }) => {
          const { text } = [messages[0].content].flat()[0]
          asked.push(text)
          const answer = text.includes("JSON Schema") ? 'Here: {"n": 7}' : `sampled:${text}`
          return { model: "test-model", role: "assistant", content: { type: "text", text: answer } }
        }
        const args = ["--limits", '{"maxConcurrentAgents": 16}']
        await with_({ args, sample, cwd: mkdtempSync(join(tmpdir(), "fanfold-")) }, async ({ call }) => {
          const script = `
            const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
            const words = await parallel(["a", "b", "c"].map((word) => () => agent(word)))
            return { words, value: await agent("a number", { schema }) }`
          const result = await call(workflow(script))
          const expected = { words: ["sampled:a", "sampled:b", "sampled:c"], value: { n: 7 } }
          assert.deepEqual(result.structuredContent?.result, expected, textOf(result))
          assert.equal(asked.length, 4)
        })
      })

      test("survives more questions in turn than a call may have rounds", async () => {
        const sample = async () => ({ model: "m", role: "assistant", content: { type: "text", text: "ok" } })
        await with_({ args: ["--agents", "sampling"], sample }, async ({ call }) => {
          const script = "let n = 0; while (n < 25) { if (await agent(`step ${n}`)) n++ } return n"
          let result = await call(workflow(script))
          const { runId } = result.structuredContent
          while (result.structuredContent.state === "running") {
            assert.ok(!result.isError, textOf(result))
            result = await call({ name: "workflow_result", arguments: { runId, waitMs: 30000 } })
          }
          assert.equal(result.structuredContent.result ?? JSON.parse(result.structuredContent.page), 25)
        })
      })

      test("runs an example with no further set-up", () =>
        with_({ args: [], cwd: mkdtempSync(join(tmpdir(), "fanfold-")) }, async ({ call }) => {
          const script = readFileSync(new URL("../../../examples/review.js", import.meta.url), "utf8")
          const result = await call({ name: "workflow", arguments: { script, args: { offline: true } } })
          assert.ok(!result.isError, textOf(result))
          assert.ok(result.structuredContent.result.statistics)
          assert.match(result.structuredContent.notice, /--agent-command/)
          assert.match(textOf(result), /--agent-command/)
        }))
    })
  }
}
