// What the page asks the server for. The token is in the address's fragment at first, which browsers send nowhere;
// it is kept for this tab alone and sent in a header.

const HERE = new URL("../", import.meta.url)
const KEY = `fanfold-token ${HERE.pathname}`
let token = sessionStorage.getItem(KEY)

/** Takes the token out of the address, so that it is not copied along with it. */
export function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1))
  if (!fragment.has("token")) return
  token = fragment.get("token")
  sessionStorage.setItem(KEY, token)
  fragment.delete("token")
  history.replaceState(null, "", `#${fragment}`)
}

export class Refused extends Error {}
export class Gone extends Error {}

async function ask(path, options = {}) {
  const headers = { ...options.headers }
  if (token) headers.Authorization = `Bearer ${token}`
  const response = await fetch(new URL(`api/${path}`, HERE), { cache: "no-store", credentials: "same-origin", ...options, headers })
  if (response.status === 401) throw new Refused("This page needs the token that its address ends with.")
  if (response.status === 404 || response.status === 410) throw new Gone("This run is no longer here.")
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  return response
}

export const runs = async () => (await ask("runs")).json()
export const about = async (key) => (await ask(`runs/${key}`)).json()
/** The value as it was written: numbers of any size, in the script's order. */
export const value = async (key) => (await ask(`runs/${key}/value`)).text()
export const cancel = (key) => ask(`runs/${key}/cancel`, { method: "POST", headers: { "X-Fanfold-View": "1" } })

/**
 * Follows the lines of a run, through as many connections as it takes: each asks for what comes after the last
 * line that was seen.
 */
export async function follow(key, { line, over, connected, signal }) {
  let seen = 0
  let wait = 250
  for (;;) {
    try {
      const headers = { Accept: "text/event-stream" }
      if (seen > 0) headers["Last-Event-ID"] = String(seen)
      const response = await ask(`runs/${key}/events`, { headers, signal })
      connected(true)
      for await (const event of serverSentEvents(response.body)) {
        wait = 250
        if (event.type === "over") return over()
        line(event.data)
        seen = Number(event.id)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Refused || error instanceof Gone) throw error
    }
    if (signal.aborted) return
    connected(false)
    await new Promise((resolve) => setTimeout(resolve, wait))
    wait = Math.min(wait * 2, 5000)
  }
}

async function* serverSentEvents(body) {
  let rest = ""
  for await (const text of textOf(body)) {
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
