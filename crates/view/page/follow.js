// Follows the lines of a run, through as many connections as it takes. A browser has six connections to a server for
// all of its tabs: three tabs in sight hold one, the others ask again and again.

import { ask, Gone, Refused } from "./server.js"

/** After how many milliseconds without a word, keep-alives included, the server counts as lost. It says something every two seconds. */
export const SILENCE = 12_000
const STREAMS = 3
/** Between two questions of a tab without a connection of its own, and of one that is out of sight. */
const AGAIN = 1000
const AGAIN_HIDDEN = 15_000
/** Between two attempts to reach a server that is lost: the first pause, and the longest. */
const RETRY = 250
const MAX_RETRY = 5000

/**
 * @param key of the run
 * @param events.line takes a line of the run
 * @param events.restart what was told so far is not what is there: all lines follow
 * @param events.caughtUp these were all lines so far
 * @param events.over there will be no more lines
 * @param events.heard the server has said something
 * @param events.lost the server does not answer
 * @returns when the run is over or `signal` is aborted. Throws `Refused` or `Gone` if the run cannot be seen any more.
 */
export async function follow(key, events, signal) {
  const reader = { key, events, seen: "" }
  let retry = RETRY
  while (!signal.aborted) {
    const release = document.hidden ? null : await takeStream()
    let pause
    try {
      const { over, heard } = await read(reader, release !== null, signal)
      if (heard) retry = RETRY
      if (over || signal.aborted) return
      pause = release === null && heard ? again() : 0
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Refused || error instanceof Gone) throw error
      events.lost()
      if (error.heard) retry = RETRY
      pause = retry
      retry = Math.min(retry * 2, MAX_RETRY)
    } finally {
      release?.()
    }
    if (pause > 0) await sleep(pause, signal)
  }
}

const again = () => (document.hidden ? AGAIN_HIDDEN : AGAIN)

/** One connection. One that may stay ends when the tab gets out of sight. */
async function read(reader, stays, signal) {
  const { key, events } = reader
  const stop = new AbortController()
  const abort = () => stop.abort()
  const hide = () => stays && document.hidden && abort()
  let heardAt = Date.now()
  let heard = false
  const watch = setInterval(() => Date.now() - heardAt > SILENCE && abort(), 1000)
  signal.addEventListener("abort", abort)
  document.addEventListener("visibilitychange", hide)
  const hears = () => {
    heardAt = Date.now()
    heard = true
    events.heard()
  }
  try {
    const headers = { Accept: "text/event-stream" }
    if (reader.seen) headers["Last-Event-ID"] = reader.seen
    const response = await ask(`runs/${key}/events${stays ? "" : "?forMs=0"}`, { headers, signal: stop.signal })
    hears()
    let caughtUp = false
    for await (const event of serverSentEvents(response.body, hears)) {
      if (event.type === "over") {
        events.over()
        return { over: true, heard }
      }
      if (event.type === "restart") events.restart()
      else if (event.type === "caught-up") events.caughtUp()
      else if (event.type === "message") events.line(event.data)
      caughtUp = event.type === "caught-up"
      if (event.id) reader.seen = event.id
    }
    if (stays || !caughtUp) throw new Error("The server ended the connection.")
    return { over: false, heard }
  } catch (error) {
    if (stays && document.hidden && Date.now() - heardAt <= SILENCE) return { over: false, heard }
    throw Object.assign(error, { heard })
  } finally {
    clearInterval(watch)
    signal.removeEventListener("abort", abort)
    document.removeEventListener("visibilitychange", hide)
  }
}

/** Takes one of the connections that may stay. Gives what releases it, or null if others have them all. */
async function takeStream() {
  // Browsers know locks only where the connection is safe or the machine is this one.
  if (!navigator.locks) return () => {}
  for (let i = 0; i < STREAMS; i++) {
    const release = await new Promise((resolve, reject) => {
      const hold = (lock) => (lock === null ? resolve(null) : new Promise((done) => resolve(done)))
      navigator.locks.request(`fanfold-stream-${i}`, { ifAvailable: true }, hold).catch(reject)
    }).catch(() => null)
    if (release) return release
  }
  return null
}

/** Waits, but not longer than until the tab is in sight again. */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", wake)
      document.removeEventListener("visibilitychange", show)
      resolve()
    }
    const show = () => !document.hidden && wake()
    const timer = setTimeout(wake, ms)
    signal.addEventListener("abort", wake)
    document.addEventListener("visibilitychange", show)
  })
}

async function* serverSentEvents(body, hears) {
  let rest = ""
  for await (const text of textOf(body)) {
    hears()
    const blocks = (rest + text).split("\n\n")
    rest = blocks.pop()
    for (const block of blocks) {
      const event = { type: "message", data: "", id: "" }
      for (const field of block.split("\n")) {
        const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(field)
        if (name === "event") event.type = value
        else if (name === "data") event.data += event.data === "" ? value : `\n${value}`
        else if (name === "id") event.id = value
      }
      if (event.id || event.type !== "message") yield event
    }
  }
}

async function* textOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
