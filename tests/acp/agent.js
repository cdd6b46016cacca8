// An agent written with the protocol's TypeScript SDK: it does what its prompt says. Knows nothing of Fanfold.
// It notes its process id, and those of what it starts, in the folder $PIDS.
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable, Writable } from "node:stream"

import { agent, methods, ndJsonStream, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk"

const note = (name) => writeFileSync(join(process.env.PIDS, String(name)), "")
note(process.pid)

/** What ends the turn of each session that can be cancelled. */
const cancels = new Map()

const untilCancelled = (sessionId) => new Promise((resolve) => cancels.set(sessionId, resolve))

async function turn({ params: { sessionId, prompt }, client }) {
  const text = prompt.map((block) => block.text).join("")
  const update = (update) => client.notify(methods.client.session.update, { sessionId, update })
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
  const [verb] = text.split(/\s/, 1)
  switch (verb) {
    case "greet":
      for (const piece of ["Hello", ", ", "wörld"]) await say(piece)
      return "end_turn"
    case "big":
      for (let n = 0; n < 64; n++) await say("0123456789abcdef".repeat(1024))
      return "end_turn"
    case "count":
      await say(text.includes("asked this before") ? '```json\n{"n": 3}\n```' : "three")
      return "end_turn"
    case "edit":
    case "read": {
      await say("I will have to ask.")
      await update({ sessionUpdate: "tool_call", toolCallId: "t1", title: "a file", kind: verb, status: "pending" })
      const { outcome } = await client.request(methods.client.session.requestPermission, {
        sessionId,
        toolCall: { toolCallId: "t1", title: "a file" },
        options: [
          { kind: "allow_always", name: "Always", optionId: "always" },
          { kind: "allow_once", name: "Yes", optionId: "yes" },
          { kind: "reject_once", name: "No", optionId: "no" },
        ],
      })
      await say(outcome.outcome === "selected" ? outcome.optionId : outcome.outcome)
      return "end_turn"
    }
    case "ask": {
      // Permission is wanted while nobody wants the answer any more.
      note("waiting-" + process.pid)
      await untilCancelled(sessionId)
      const { outcome } = await client.request(methods.client.session.requestPermission, {
        sessionId,
        toolCall: { toolCallId: "t1", title: "a file", kind: "edit" },
        options: [{ kind: "allow_once", name: "Yes", optionId: "yes" }],
      })
      note("outcome-" + outcome.outcome)
      return "cancelled"
    }
    case "files":
      try {
        await client.request(methods.client.fs.readTextFile, { sessionId, path: "/etc/passwd" })
        await say("read")
      } catch {
        await say("refused")
      }
      return "end_turn"
    case "hang":
      note("waiting-" + process.pid)
      await untilCancelled(sessionId)
      note("cancelled-" + process.pid)
      return "cancelled"
    case "stubborn": {
      process.on("SIGTERM", () => {})
      process.stdin.on("end", () => {})
      note(spawn("sleep", ["1000"], { stdio: "ignore" }).pid)
      note("waiting-" + process.pid)
      setInterval(() => {}, 1000)
      return new Promise(() => {})
    }
    case "crash":
      process.stderr.write("boom\n")
      process.exit(3)
    case "decline":
      await say("No.")
      return "refusal"
    case "full":
      return "max_tokens"
    case "error":
      throw RequestError.internalError("out of order")
    case "login":
      throw RequestError.authRequired()
    default:
      throw new Error(`cannot ${verb}`)
  }
}

agent({ name: "test-agent" })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: "session-1" }))
  .onRequest(methods.agent.session.prompt, async (context) => ({ stopReason: await turn(context) }))
  .onNotification(methods.agent.session.cancel, ({ params }) => cancels.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
