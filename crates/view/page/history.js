// All runs that the server knows, the newest first.

import * as server from "./server.js"
import { h, stranger, stateIcon, progress, duration, count, started, stateWord } from "./dom.js"
import { brand } from "./run.js"

const AGAIN = 2000
/** After how many milliseconds the list is no longer what is there. */
const STALE = 12_000

export class HistoryPage {
  constructor(list) {
    this.body = h("tbody")
    this.note = h("p", { class: "note" })
    this.element = h(
      "div",
      { class: "history" },
      h("header", {}, h("div", { class: "top" }, h("span", { class: "brand" }, brand(), "Fanfold")), h("h1", {}, "Runs")),
      h(
        "main",
        {},
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ["Run", "State", "Began", "Took", "Agents"].map((name) => h("th", { scope: "col" }, name)))),
          this.body,
        ),
        this.note,
      ),
    )
    document.title = "Runs · Fanfold"
    this.show(list)
    this.stopped = new AbortController()
    this.asking = setInterval(() => this.ask(), AGAIN)
    document.addEventListener("visibilitychange", () => this.ask(), { signal: this.stopped.signal })
    document.addEventListener("freeze", () => this.loses(""), { signal: this.stopped.signal })
  }

  stop() {
    clearInterval(this.asking)
    this.stopped.abort()
  }

  async ask() {
    if (document.hidden) return
    if (Date.now() - this.heardAt > STALE) this.loses("The server does not answer. Trying again…")
    if (this.pending) return
    this.pending = true
    try {
      const list = await server.runs()
      if (!this.stopped.signal.aborted) this.show(list)
    } catch (error) {
      this.loses(error instanceof server.Refused ? error.message : "The server does not answer. Trying again…")
    } finally {
      this.pending = false
    }
  }

  /** The list is the last that is known. Whether runs still go on is not. */
  loses(why) {
    this.show(this.list, true)
    this.note.textContent = why
  }

  show(list, lost = false) {
    const { now, runs } = list
    this.list = list
    if (!lost) this.heardAt = Date.now()
    this.note.textContent = runs.length === 0 ? "No run yet. It will be here when one starts." : ""
    const told = JSON.stringify([lost, ...runs.map((run) => [run, run.state === "running" ? Math.floor(now / 1000) : 0])])
    if (this.told === told) return
    this.told = told
    // Whoever is on a link stays on it.
    const focused = document.activeElement?.getAttribute?.("href")
    this.body.replaceChildren(...runs.map((run) => row(run, now, lost)))
    if (focused) [...this.body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus()
  }
}

function row(known, now, lost) {
  const run = lost && (known.state === "running" || known.state === "waiting") ? { ...known, state: "interrupted", ended: now } : known
  const bar = progress()
  bar.update(run.agents)
  const end = run.state === "running" ? now : run.ended
  return h(
    "tr",
    {},
    h("td", {}, stranger("a", { href: `#run=${run.key}` }, run.name), run.description ? stranger("p", { class: "description" }, run.description) : null),
    h("td", {}, h("span", { class: `state ${run.state}` }, stateIcon(run.state), stateWord(run.state, lost && run !== known))),
    h("td", { class: "when" }, run.began === null ? "–" : h("time", { datetime: new Date(run.began).toISOString() }, new Date(run.began).toLocaleString())),
    h("td", { class: "when" }, run.began === null || end === null ? "–" : duration(end - run.began)),
    h("td", {}, bar.element, h("span", { class: "counts" }, [count(started(run.agents), "agent"), run.agents.failed && `${run.agents.failed} failed`].filter(Boolean).join(" · "))),
  )
}
