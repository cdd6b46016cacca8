// The agents: rows under their phases, each with its stretch of the timeline. Only the rows in sight exist.

import { h, icon, stranger, setText, stateIcon, progress, duration, count, started, ended, STATES, stateWord } from "./dom.js"
import { quietAfterMs } from "./fanfold_types.js"
import { Chart } from "./chart.js"
import { rowsOf, span } from "./rows.js"

/** The height of a row; the style sheet has it too. */
const ROW = 34
/** Rows beside those in sight. */
const MARGIN = 6
/** How often the chart is drawn while the run goes on. */
const CHART = 100

export class Agents {
  /** @param follow keep the newest in sight @param choose called with an agent when it is to be looked at */
  constructor({ follow, limit, choose }) {
    this.limit = limit
    this.choose = choose
    this.closed = new Set()
    this.asks = { text: "", state: "all" }
    this.rows = []
    this.cells = new Map()
    this.active = null
    this.follow = follow
    this.chart = new Chart()
    this.search = h("input", { type: "search", placeholder: "Find an agent", "aria-label": "Find an agent", oninput: () => this.ask() })
    this.filter = h(
      "select",
      { "aria-label": "Show agents", onchange: () => this.ask() },
      ["all", "queued", "running", "completed", "failed", "refused", "cancelled", "interrupted"].map((state) =>
        h("option", { value: state }, state === "all" ? "All agents" : STATES[state]),
      ),
    )
    this.found = h("span", { class: "found", role: "status" })
    this.following = h("button", { type: "button", class: "toggle", "aria-pressed": String(follow), onclick: () => this.setFollow(!this.follow) }, "Follow")
    this.body = h("div", { class: "rows", role: "presentation" })
    this.scroller = h(
      "div",
      {
        class: "grid",
        role: "treegrid",
        tabindex: "0",
        "aria-label": "Agents",
        "aria-colcount": "3",
        onscroll: () => this.draw(),
        onkeydown: (event) => this.key(event),
        onclick: (event) => this.click(event),
        onwheel: () => this.setFollow(false),
        ontouchmove: () => this.setFollow(false),
        onpointerdown: () => this.setFollow(false),
      },
      this.body,
    )
    // The phase of the topmost row, while the phase's own row is above what is in sight.
    this.stuck = new PhaseRow({ silent: true })
    this.stuckTo = h("div", { class: "stuck-place", "aria-hidden": "true", hidden: true, onclick: () => this.unstick() }, this.stuck.element)
    this.nothing = h("p", { class: "note nothing", hidden: true })
    this.element = h(
      "section",
      { class: "panel agents", "aria-label": "Agents and when they ran" },
      h("div", { class: "head" }, h("div", { class: "tools" }, h("h2", {}, "Agents"), this.search, this.filter, this.following, this.found), this.chart.element),
      h("div", { class: "body" }, this.scroller, this.stuckTo),
      this.nothing,
    )
    new ResizeObserver(() => this.draw()).observe(this.scroller)
  }

  ask() {
    this.asks = { text: this.search.value, state: this.filter.value }
    this.setFollow(false)
    this.arrange()
    const agents = this.rows.filter((row) => row.kind === "agent").length
    setText(this.found, this.asks.text || this.asks.state !== "all" ? count(agents, "agent") : "")
    this.scroller.scrollTop = 0
    this.draw()
  }

  setFollow(follow) {
    if (this.follow === follow) return
    this.follow = follow
    this.following.setAttribute("aria-pressed", String(follow))
    if (follow) this.draw()
  }

  /** Takes in the state of the run. */
  update(state) {
    this.state = state
    this.following.hidden = state.run.state !== "running"
    this.arrange()
  }

  arrange() {
    const { phases, agents, run } = this.state
    const begun = new Set(phases.map((phase) => phase.title))
    const planned = [...new Set((run.meta?.phases ?? []).map((phase) => phase.title))].filter((title) => !begun.has(title))
    this.rows = rowsOf({ phases, planned, agents, closed: this.closed, asks: this.asks })
    this.body.style.height = `${this.rows.length * ROW}px`
    this.scroller.setAttribute("aria-rowcount", String(this.rows.length))
    const nothing = this.rows.length > 0 ? "" : agents.length > 0 ? "No agent is like that." : run.lost || run.state === "running" || run.state === "waiting" ? "No agent has started yet." : "No agent was started."
    this.nothing.hidden = nothing === ""
    setText(this.nothing, nothing)
    this.scroller.hidden = nothing !== ""
  }

  /** Draws what is in sight, as of `now`. */
  draw(now = this.now) {
    if (!this.state) return
    this.now = now
    const { run, agents } = this.state
    const running = run.state === "running"
    const from = run.began ?? 0
    const end = running ? now : (run.ended ?? run.last ?? now)
    this.view = { from, now: end, length: span(end - from, running), peak: run.peak, limit: this.limit }
    const due = running ? now - this.chartedAt >= CHART : this.charted !== this.state.revision
    if (run.began !== undefined && (due || this.charted === undefined)) {
      this.charted = this.state.revision
      this.chartedAt = now
      this.chart.update(agents, this.view)
      this.scroller.parentElement.style.setProperty("--tick", `${this.chart.tick * 100}%`)
    }
    this.chart.element.hidden = run.began === undefined || agents.length === 0
    if (this.follow && running) this.scrollToNewest()
    const top = this.scroller.scrollTop
    const first = Math.max(0, Math.floor(top / ROW) - MARGIN)
    const last = Math.min(this.rows.length, Math.ceil((top + this.scroller.clientHeight) / ROW) + MARGIN)
    const seen = new Set()
    for (let i = first; i < last; i++) {
      const row = this.rows[i]
      seen.add(row.key)
      let cells = this.cells.get(row.key)
      if (!cells) {
        cells = row.kind === "agent" ? new AgentRow() : new PhaseRow()
        this.cells.set(row.key, cells)
        this.body.append(cells.element)
      }
      cells.place(i, row.key === this.active)
      cells.update(row, this.view, run)
    }
    this.stick(Math.floor(top / ROW), run)
    for (const [key, cells] of this.cells) {
      if (seen.has(key)) continue
      cells.element.remove()
      this.cells.delete(key)
    }
    const active = this.active === null ? null : this.cells.get(this.active)
    if (active) this.scroller.setAttribute("aria-activedescendant", active.element.id)
    else this.scroller.removeAttribute("aria-activedescendant")
  }

  stick(topmost, run) {
    const row = this.rows[topmost]
    const above = row?.kind === "agent" && row.level > 1 ? this.rows.findLastIndex((row, i) => i < topmost && row.kind === "phase") : -1
    this.stuckTo.hidden = above < 0 || topmost + 1 >= this.rows.length
    if (above >= 0) this.stuck.update(this.rows[above], this.view, run)
    this.stuckAt = above
  }

  unstick() {
    this.scroller.scrollTop = this.stuckAt * ROW
  }

  scrollToNewest() {
    let newest = -1
    for (let i = this.rows.length - 1; i >= 0 && newest < 0; i--) if (this.rows[i].kind === "agent" && this.rows[i].agent.state === "running") newest = i
    if (newest < 0) return
    const bottom = (newest + 2) * ROW - this.scroller.clientHeight
    if (bottom > this.scroller.scrollTop || newest * ROW < this.scroller.scrollTop) this.scroller.scrollTop = Math.max(0, bottom)
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1)
    const at = this.rows.findIndex((row) => row.key === this.active)
    const row = this.rows[at]
    const goto = (index) => this.activate(Math.max(0, Math.min(this.rows.length - 1, index)))
    const actions = {
      ArrowDown: () => goto(at + 1),
      ArrowUp: () => goto(at < 0 ? this.rows.length - 1 : at - 1),
      PageDown: () => goto(at + page),
      PageUp: () => goto(at - page),
      Home: () => goto(0),
      End: () => goto(this.rows.length - 1),
      ArrowRight: () => row?.kind === "phase" && (row.open ? goto(at + 1) : this.toggle(row, true)),
      ArrowLeft: () => {
        if (row?.kind === "phase") this.toggle(row, false)
        else if (row) goto(this.rows.findLastIndex((above, i) => i < at && above.kind === "phase"))
      },
      Enter: () => row && this.open(row),
      " ": () => row && this.open(row),
    }
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key]
    if (!action || this.rows.length === 0) return
    event.preventDefault()
    this.setFollow(false)
    action()
  }

  click(event) {
    const index = event.target.closest("[data-index]")?.dataset.index
    const row = this.rows[index]
    if (!row) return
    this.active = row.key
    this.open(row)
    this.draw()
  }

  open(row) {
    if (row.kind === "agent") this.choose(row.agent)
    else if (row.kind === "phase") this.toggle(row, !row.open)
  }

  toggle(row, open) {
    if (row.agents.length === 0) return
    if (open) this.closed.delete(row.id)
    else this.closed.add(row.id)
    this.arrange()
    this.draw()
  }

  activate(index) {
    const row = this.rows[index]
    if (!row) return
    this.active = row.key
    const top = index * ROW
    // Not under the phase that sticks to the top.
    if (top < this.scroller.scrollTop + ROW) this.scroller.scrollTop = Math.max(0, top - ROW)
    else if (top + ROW > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + ROW - this.scroller.clientHeight
    this.draw()
  }

  /** Brings an agent into sight and marks it. */
  show(agent) {
    this.setFollow(false)
    this.closed.delete(agent.phase ?? -1)
    if (this.asks.text || this.asks.state !== "all") {
      this.search.value = ""
      this.filter.value = "all"
      this.ask()
    }
    this.arrange()
    this.activate(this.rows.findIndex((row) => row.key === `a${agent.index}`))
  }
}

let rowIds = 0

class Row {
  constructor(kind, silent = false) {
    this.silent = silent
    const cell = silent ? {} : { role: "gridcell" }
    this.bar = h("i", { class: "bar" })
    this.name = h("span", { class: "name", ...cell })
    this.time = h("span", { class: "time", ...cell })
    this.line = h("span", { class: "line", ...cell }, this.bar)
    this.element = h("div", { class: `row ${kind}`, ...(silent ? {} : { role: "row", id: `row-${++rowIds}` }) }, this.name, this.time, this.line)
  }

  /** Says something of the row to those who do not see it. */
  say(name, value) {
    if (this.silent) return
    if (value === null) this.element.removeAttribute(name)
    else this.element.setAttribute(name, String(value))
  }

  place(index, active) {
    if (this.index !== index) {
      this.index = index
      this.element.style.transform = `translateY(${index * ROW}px)`
      this.element.dataset.index = index
      this.say("aria-rowindex", index + 1)
    }
    if (this.isActive !== active) {
      this.isActive = active
      this.say("aria-selected", active)
    }
  }

  stretch(began, end, { from, length }) {
    const known = began !== undefined && end !== undefined
    this.bar.hidden = !known
    if (!known) return
    const left = (began - from) / length
    const width = Math.max((end - began) / length, 0)
    const told = `${left.toFixed(4)} ${width.toFixed(4)}`
    if (this.told === told) return
    this.told = told
    this.bar.style.left = `${left * 100}%`
    this.bar.style.width = `${width * 100}%`
  }
}

class AgentRow extends Row {
  constructor() {
    super("agent")
    this.label = stranger("span", { class: "label" }, "")
    this.hint = h("span", { class: "hint" })
  }

  update({ agent, level }, view, run) {
    if (this.agent !== agent || this.lost !== run.lost) {
      const told = this.agent && `${this.agent.state} ${this.lost}`
      this.agent = agent
      this.lost = run.lost
      if (told !== `${agent.state} ${run.lost}`) {
        this.element.dataset.state = agent.state
        this.name.replaceChildren(stateIcon(agent.state), h("span", { class: "unseen" }, `${stateWord(agent.state, run.lost)}: `), this.label, this.hint)
        this.bar.className = `bar ${agent.state}`
      }
      const label = agent.label.trim() === "" ? `#${agent.seq}` : agent.label
      setText(this.label, label.length > 300 ? `${label.slice(0, 300)}…` : label)
      this.say("aria-level", level)
      this.element.classList.toggle("under", level > 1)
    }
    const end = agent.ended ?? (agent.state === "running" ? Math.max(view.now, agent.began) : view.now)
    setText(this.time, agent.began === undefined ? "" : duration(end - agent.began))
    setText(this.hint, hintOf(agent, view.now))
    this.stretch(agent.began, end, view)
  }
}

/** What an agent waits for, or for how long it has been silent, if that is worth telling. */
export function hintOf(agent, now) {
  if (agent.state === "queued") return "queued"
  if (agent.state !== "running") return ""
  const until = agent.retry?.until ?? 0
  if (until > now) return `tried again in ${seconds(until - now)}`
  const quiet = agent.heard === undefined ? 0 : now - Math.max(agent.heard, until)
  return quiet >= quietAfterMs() ? `quiet ${seconds(quiet)}` : ""
}

const seconds = (ms) => (ms < 60_000 ? `${Math.floor(ms / 1000)} s` : duration(ms))

class PhaseRow extends Row {
  /** A silent one is for the eye alone. */
  constructor({ silent = false } = {}) {
    super("phase", silent)
    this.progress = progress()
    this.title = stranger("span", { class: "label" }, "")
    this.counts = h("span", { class: "counts" })
    this.chevron = icon("chevron")
    this.name.append(this.chevron, this.title, this.progress.element, this.counts)
    this.bar.className = "bar span"
  }

  update(row, view, run) {
    const { phase } = row
    this.element.classList.toggle("planned", row.kind === "planned")
    this.element.classList.toggle("live", Boolean(phase?.active))
    setText(this.title, row.title === null ? "Without a phase" : row.title === "" ? "(a phase without a title)" : row.title.slice(0, 300))
    this.say("aria-level", 1)
    if (row.kind === "planned") {
      this.progress.element.hidden = true
      this.chevron.classList.add("none")
      setText(this.counts, run.lost || run.state === "running" || run.state === "waiting" ? "planned" : "not reached")
      setText(this.time, "")
      this.bar.hidden = true
      return
    }
    const tally = phase?.agents ?? tallyOf(row.agents)
    const all = started(tally)
    this.progress.element.hidden = all === 0
    this.progress.update(tally)
    this.chevron.classList.toggle("none", row.agents.length === 0)
    this.element.classList.toggle("open", row.open)
    this.say("aria-expanded", row.agents.length > 0 ? row.open : null)
    const trouble = ["failed", "refused", "cancelled", "interrupted", "queued"].filter((state) => tally[state] > 0).map((state) => `${tally[state]} ${stateWord(state, run.lost).toLowerCase()}`)
    setText(this.counts, all + trouble.length === 0 ? "no agents" : [`${ended(tally)} of ${all}`, ...trouble].join(" · "))
    const end = phase ? (phase.active ? view.now : (phase.ended ?? phase.began)) : undefined
    setText(this.time, phase?.began === undefined ? "" : duration(end - phase.began))
    this.stretch(phase?.began, end, view)
  }
}

function tallyOf(agents) {
  const tally = { queued: 0, refused: 0, running: 0, completed: 0, failed: 0, cancelled: 0, interrupted: 0 }
  for (const { state } of agents) tally[state]++
  return tally
}
