// All runs that the server knows, the newest first.

import * as server from "./server.js"
import { h, stranger, stateIcon, progress, duration, count, started, STATES } from "./dom.js"
import { brand } from "./run.js"

const AGAIN = 2000

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
    this.asking = setInterval(() => document.visibilityState === "visible" && this.ask(), AGAIN)
  }

  stop() {
    clearInterval(this.asking)
  }

  async ask() {
    try {
      this.show(await server.runs())
    } catch (error) {
      this.note.textContent = error.message
    }
  }

  show({ now, runs }) {
    this.note.textContent = runs.length === 0 ? "No run yet. It will be here when one starts." : ""
    const told = JSON.stringify(runs.map((run) => [run, run.state === "running" ? Math.floor(now / 1000) : 0]))
    if (this.told === told) return
    this.told = told
    // Whoever is on a link stays on it.
    const focused = document.activeElement?.getAttribute?.("href")
    this.body.replaceChildren(...runs.map((run) => row(run, now)))
    if (focused) [...this.body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus()
  }
}

function row(run, now) {
  const bar = progress()
  bar.update(run.agents)
  const end = run.state === "running" ? now : run.ended
  return h(
    "tr",
    {},
    h("td", {}, stranger("a", { href: `#run=${run.key}` }, run.name), run.description ? stranger("p", { class: "description" }, run.description) : null),
    h("td", {}, h("span", { class: `state ${run.state}` }, stateIcon(run.state), STATES[run.state])),
    h("td", { class: "when" }, run.began === null ? "–" : h("time", { datetime: new Date(run.began).toISOString() }, new Date(run.began).toLocaleString())),
    h("td", { class: "when" }, run.began === null || end === null ? "–" : duration(end - run.began)),
    h("td", {}, bar.element, h("span", { class: "counts" }, [count(started(run.agents), "agent"), run.agents.failed && `${run.agents.failed} failed`].filter(Boolean).join(" · "))),
  )
}
