// One run: its lines go into the fold, and what the fold says goes onto the page, at most once a frame.

import { RunView, pretty } from "./fanfold_types.js"
import * as server from "./server.js"
import { follow, SILENCE } from "./follow.js"
import { h, icon, stranger, setText, stateIcon, progress, duration, count, announce, started, stateWord, STATES } from "./dom.js"
import { Agents, hintOf } from "./agents.js"
import { Logs, long } from "./logs.js"
import { Script } from "./script.js"
import { tree } from "./value.js"

/** How often times go on while nothing else happens. */
const TICK = 100
const MOST_FAILURES = 300
/** How many agents of one reason have links. */
const MOST_LINKS = 20
/** Why the run cannot be seen. */
const SILENT = { pill: "Connection lost", text: "The server does not answer. Trying again…" }
const STALE = { pill: "Connection lost", text: "Nothing was heard for a while. Asking again…" }
const MOST_NAME = 200

export class RunPage {
  /** @param details what the server says of the run @param home whether there are other runs to go back to */
  constructor(details, { home }) {
    this.key = details.summary.key
    this.skew = details.now - Date.now()
    // A log may be at its end without the run being so; nothing says that the run goes on.
    this.live = details.summary.state === "running" || details.summary.state === "waiting"
    this.ready = this.live
    this.over = false
    /** Why the run cannot be seen, if it cannot. */
    this.lost = null
    this.heardAt = Date.now()
    this.forget()
    this.stopped = new AbortController()
    // A run that is over is told in one go; nobody follows it.
    this.agents = new Agents({ follow: this.live, limit: details.maxConcurrentAgents, choose: (agent) => this.choose(agent) })
    this.logs = new Logs()
    this.script = details.script === undefined ? null : new Script(details.script)
    this.build(details, home)
    this.follow()
    this.ticking = setInterval(() => !document.hidden && this.state.run.state === "running" && this.wake(), TICK)
    const { signal } = this.stopped
    document.addEventListener("visibilitychange", () => this.wake(), { signal })
    // Before the browser suspends the tab: what it shows then may stay for hours.
    document.addEventListener("freeze", () => this.loses(STALE), { signal })
  }

  /** Nothing is known of the run yet. */
  forget() {
    this.view?.free()
    this.view = new RunView()
    this.state = { revision: 0, run: { state: "waiting", agents: {}, warnings: [] }, phases: [], agents: [], failures: [] }
    this.lastLog = 0
    this.shown = this.resulted = this.toldPhase = undefined
  }

  stop() {
    this.stopped.abort()
    clearInterval(this.ticking)
    this.view.free()
    this.view = null
  }

  now() {
    return Date.now() + this.skew
  }

  // What it is made of.

  build(details, home) {
    this.name = stranger("h1", {}, details.summary.name)
    this.description = stranger("p", { class: "description" }, details.summary.description ?? "")
    this.pill = h("span", { class: "pill waiting" }, stateIcon("waiting"), "Waiting")
    this.elapsed = h("span", { class: "elapsed" })
    this.connection = h("span", { class: "connection", role: "status" })
    this.bar = progress()
    this.counts = h("p", { class: "counts" })
    this.cancelButton = details.canCancel ? h("button", { type: "button", class: "danger", onclick: () => this.askCancel() }, "Cancel run") : null
    this.panels = new Tabs([
      ["Result", (this.result = h("div", { class: "scroll result", tabindex: "0", role: "region", "aria-label": "Result" }))],
      ["Problems", (this.failures = h("div", { class: "scroll failures", tabindex: "0", role: "region", "aria-label": "Problems" }))],
      ["Logs", this.logs.element],
      ["Script", this.script?.element ?? h("div", { class: "scroll" }, h("p", { class: "note" }, "The script of this run is not known here."))],
      ["Agent", (this.chosen = h("div", { class: "scroll chosen", tabindex: "0", role: "region", "aria-label": "The chosen agent" }, h("p", { class: "note" }, "Choose an agent to see it here.")))],
    ])
    this.panels.choose("Logs", false)
    this.result.append(h("p", { class: "note" }, "The result will be here when the run has ended."))
    this.element = h(
      "div",
      { class: "run" },
      h(
        "header",
        {},
        h("div", { class: "top" }, home ? h("a", { class: "brand", href: "#" }, brand(), "All runs") : h("span", { class: "brand" }, brand(), "Fanfold"), this.connection, this.cancelButton),
        h("div", { class: "title" }, this.name, this.pill, this.elapsed),
        this.description,
        h("div", { class: "overall" }, this.bar.element, this.counts),
      ),
      h("main", {}, this.agents.element, this.panels.element),
    )
  }

  // What comes in.

  follow() {
    const events = {
      line: (line) => this.take(() => this.view.line(line)),
      restart: () => {
        if (!this.view) return
        this.forget()
        this.logs.clear()
      },
      caughtUp: () => {
        this.ready = true
        this.take(() => this.live || this.view.skipMissing())
      },
      over: () => {
        this.ready = this.over = true
        this.take(() => this.view.close())
      },
      heard: () => {
        this.heardAt = Date.now()
        this.lost = null
        if (this.state.run.lost) this.wake()
      },
      lost: () => this.loses(SILENT),
    }
    follow(this.key, events, this.stopped.signal).catch((error) => {
      this.loses({ pill: error instanceof server.Gone ? "Gone" : "Connection lost", text: error.message })
    })
  }

  loses(why) {
    if (this.over || this.stopped.signal.aborted) return
    this.lost = why
    this.ready = true
    if (document.hidden) this.draw()
    else this.wake()
  }

  /** Why the run cannot be seen now, if it cannot. A tab that was suspended has heard nothing meanwhile. */
  unseen() {
    if (this.over) return null
    return this.lost ?? (Date.now() - this.heardAt > SILENCE ? STALE : null)
  }

  take(change) {
    if (!this.view) return
    try {
      change()
    } catch (error) {
      // A line that cannot be read is as good as missing.
      console.warn("Fanfold: a line could not be read", error)
    }
    this.wake()
  }

  /** Draws soon. A tab out of sight has no frames, but a title. */
  wake() {
    if (this.waking) return
    this.waking = true
    const draw = () => {
      this.waking = false
      if (this.view && this.ready) this.draw()
    }
    if (document.hidden) setTimeout(draw, 0)
    else requestAnimationFrame(draw)
  }

  // What is shown.

  draw() {
    const before = this.state.run.state
    const lost = this.unseen()
    const known = this.over || (this.live && lost === null)
    const shown = `${known} ${lost?.pill} ${lost?.text}`
    const revision = this.shown === shown ? this.state.revision : 0
    const news = known ? this.view.since(revision) : this.view.lastKnownSince(revision)
    if (news.revision !== this.state.revision || this.shown !== shown) {
      this.shown = shown
      this.state.revision = news.revision
      this.state.run = { ...news.run, lost }
      for (const phase of news.phases) this.state.phases[phase.index] = phase
      for (const agent of news.agents) this.state.agents[agent.index] = agent
      if (news.failures) this.state.failures = news.failures
      this.logs.add(news.logs.filter((log) => log.number > this.lastLog))
      this.lastLog = news.logs.at(-1)?.number ?? this.lastLog
      setText(this.connection, lost?.text ?? "")
      this.agents.update(this.state)
      this.head()
      this.script?.update(this.state.run, this.state.phases)
      this.problems()
      this.tell(before, news)
      if (this.agent) this.describe(this.state.agents[this.agent.index])
    }
    const { run } = this.state
    this.logs.update(run, run.began ?? 0, (index) => this.state.phases[index]?.title)
    const end = run.state === "running" ? this.now() : (run.ended ?? run.last)
    setText(this.elapsed, run.began === undefined || end === undefined ? "" : duration(end - run.began))
    this.agents.draw(this.now())
    if (this.waits && this.described) setText(this.waits, hintOf(this.described, this.now()))
  }

  /** What the state of the run is called. */
  word() {
    const { state, lost } = this.state.run
    return lost && state === "interrupted" ? lost.pill : STATES[state]
  }

  head() {
    const { run } = this.state
    if (run.name !== undefined) setText(this.name, run.name)
    if (run.meta) setText(this.description, run.meta.description)
    const word = this.word()
    document.title = `${word} · ${run.name ?? "a run"} · Fanfold`
    if (this.pill.dataset.told !== `${run.state} ${word}`) {
      this.pill.dataset.told = `${run.state} ${word}`
      this.pill.className = `pill ${run.state}`
      this.pill.replaceChildren(stateIcon(run.state), word)
    }
    this.bar.update(run.agents)
    const all = started(run.agents)
    const words = ["queued", "running", "completed", "failed", "refused", "cancelled", "interrupted"].filter((state) => run.agents[state] > 0)
    setText(this.counts, all + words.length === 0 ? "No agents yet" : [count(all, "agent"), ...words.map((state) => `${run.agents[state].toLocaleString("en")} ${stateWord(state, run.lost).toLowerCase()}`)].concat(run.usage ? tokens(run.usage) : []).join(" · "))
    if (this.cancelButton) this.cancelButton.hidden = run.state !== "running" && run.state !== "waiting"
    this.panels.label("Logs", run.logged)
  }

  /** What needs attention: what is missing, and the agents that failed, by their reasons. */
  problems() {
    const { run, failures } = this.state
    const failed = failures.reduce((sum, group) => sum + group.seqs.length, 0)
    this.panels.label("Problems", failed + run.warnings.length + (run.missingEvents > 0 ? 1 : 0))
    const told = `${failed} ${failures.length} ${run.warnings.length} ${run.hasResult} ${run.state} ${run.missingEvents}`
    if (this.toldProblems === told) return
    this.toldProblems = told
    const items = []
    if (run.missingEvents > 0) items.push(h("li", {}, h("p", {}, `${count(run.missingEvents, "event")} of this run ${run.missingEvents === 1 ? "is" : "are"} missing.`)))
    const bySeq = new Map(failures.length > 0 ? this.state.agents.map((agent) => [agent.seq, agent]) : [])
    for (const group of failures.slice(0, MOST_FAILURES)) items.push(this.failed(group, bySeq))
    for (const warning of run.warnings) items.push(h("li", {}, h("h3", {}, "Warning"), long(warning)))
    const left = failures.length - MOST_FAILURES
    this.failures.replaceChildren(
      items.length === 0 ? h("p", { class: "note" }, run.state === "running" || run.lost ? "No problems so far." : "No problems.") : h("ul", { class: "problems" }, items),
      left > 0 ? h("p", { class: "note" }, `and ${count(left, "more reason")}`) : "",
    )
  }

  /** Agents that failed for one reason. */
  failed({ reason, label, seqs }, bySeq) {
    const link = (seq, name) => {
      const agent = bySeq.get(seq)
      return agent ? stranger("button", { type: "button", class: "link", onclick: () => this.choose(agent, true) }, name) : stranger("span", {}, name)
    }
    const [first, ...others] = seqs
    const more = others.length - MOST_LINKS
    return h(
      "li",
      {},
      h("h3", { class: "failed" }, stateIcon("failed"), h("span", { class: "unseen" }, "Failed: "), link(first, named(label, first)), others.length > 0 ? h("span", {}, `and ${count(others.length, "other")}`) : null),
      long(reason.trim() === "" ? "No reason was given." : reason),
      others.length > 0 ? h("p", { class: "others" }, others.slice(0, MOST_LINKS).flatMap((seq) => [link(seq, named(bySeq.get(seq)?.label ?? "", seq)), " "]), more > 0 ? `and ${more} more` : null) : null,
    )
  }

  /** Says changes of state, and moves to what matters now. */
  tell(before, { phases }) {
    const { run } = this.state
    if (before !== run.state && run.state !== "waiting") {
      const parts = ["completed", "failed", "cancelled"].filter((state) => run.agents[state] > 0).map((state) => `${run.agents[state]} ${state}`)
      announce(run.state === "running" ? `Run ${run.name} has started` : `Run ${run.name}: ${this.word()}. Agents: ${parts.join(", ") || "none"}`)
    } else if (run.state === "running" && run.currentPhase !== undefined && phases.some((phase) => phase.index === run.currentPhase) && this.toldPhase !== run.currentPhase) {
      this.toldPhase = run.currentPhase
      announce(`Phase ${this.state.phases[run.currentPhase].title}`)
    }
    const interrupted = run.state === "interrupted" && !run.lost
    const over = run.hasResult && run.state !== "running" && run.state !== "waiting"
    if ((over || interrupted) && this.resulted !== run.state) {
      this.resulted = run.state
      this.showResult(run)
    }
  }

  async showResult(run) {
    if (run.state !== "completed") {
      const { error } = run
      const place = error?.line === undefined ? "" : ` at line ${error.line}${error.column === undefined ? "" : `, column ${error.column}`}`
      this.result.replaceChildren(
        h("h3", { class: run.state }, stateIcon(run.state), run.state === "interrupted" ? "The log of this run ends before the run did." : `${STATES[run.state]}${place}`),
        error?.code ? h("p", {}, h("code", { class: "code" }, error.code)) : "",
        error ? stranger("pre", { class: "error" }, error.message) : "",
      )
      this.panels.choose("Result", false)
      return
    }
    this.panels.choose("Result", false)
    try {
      this.showValue(await server.value(this.key))
    } catch (error) {
      this.result.replaceChildren(h("p", { class: "note" }, error instanceof server.Gone ? "Its value is not in this log." : error.message))
    }
  }

  showValue(text) {
    let shown
    try {
      shown = tree(JSON.parse(text))
    } catch {
      shown = long(text)
    }
    const said = h("span", { class: "note", role: "status" })
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(pretty(text))
        setText(said, "Copied")
      } catch {
        setText(said, "The browser did not allow it")
      }
    }
    this.result.replaceChildren(
      h(
        "div",
        { class: "tools" },
        h("button", { type: "button", onclick: copy }, "Copy"),
        h("button", { type: "button", onclick: () => download(`${this.state.run.name ?? "value"}.json`, pretty(text)) }, "Download"),
        said,
      ),
      shown,
    )
  }

  choose(agent, show = false) {
    this.agent = agent
    this.described = undefined
    this.describe(this.state.agents[agent.index])
    this.panels.choose("Agent", true)
    if (show) this.agents.show(agent)
  }

  describe(agent) {
    if (!agent || this.described === agent) return
    this.described = agent
    this.waits = null
    const { run, phases } = this.state
    const from = run.began
    const rows = [
      ["State", h("span", { class: `state ${agent.state}` }, stateIcon(agent.state), stateWord(agent.state, run.lost))],
      agent.state === "running" ? ["Now", (this.waits = h("span", {}))] : null,
      agent.retries > 0 ? ["Attempts", `${agent.retries + 1}`] : null,
      ["Call", `#${agent.seq}`],
      agent.phase === undefined ? null : ["Phase", stranger("span", {}, phases[agent.phase]?.title ?? "")],
      agent.childId === "" ? null : ["Child", stranger("code", {}, agent.childId)],
      agent.tool === undefined ? null : ["Tool", stranger("code", {}, agent.tool)],
      agent.began === undefined ? null : ["Began", `${duration(agent.began - from)} into the run, at ${new Date(agent.began).toLocaleTimeString()}`],
      agent.began === undefined || agent.ended === undefined ? null : ["Took", duration(agent.ended - agent.began)],
      agent.usage ? ["Tokens", tokens(agent.usage)] : null,
    ]
    this.chosen.replaceChildren(
      stranger("h3", {}, named(agent.label, agent.seq)),
      agent.label.length > MOST_NAME || agent.label.includes("\n") ? long(agent.label) : "",
      h("dl", {}, rows.filter(Boolean).flatMap(([term, what]) => [h("dt", {}, term), h("dd", {}, what)])),
      agent.said ? h("div", { class: "reason" }, h("h4", {}, "Last words"), long(agent.said)) : "",
      agent.retry === undefined ? "" : h("div", { class: "reason" }, h("h4", {}, "Why it is tried again"), long(agent.retry.reason)),
      agent.reason === undefined ? "" : h("div", { class: "reason" }, h("h4", {}, "Why"), long(agent.reason)),
    )
  }

  askCancel() {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "cancel-title", onclose: () => dialog.remove() },
      h("h2", { id: "cancel-title" }, "Cancel this run?"),
      h("p", {}, "Its agents are told to stop. What they have done so far is not undone."),
      h(
        "form",
        { method: "dialog" },
        h("button", { value: "no" }, "Keep running"),
        h("button", { value: "yes", class: "danger", onclick: () => this.cancel() }, "Cancel run"),
      ),
    )
    document.body.append(dialog)
    dialog.showModal()
  }

  async cancel() {
    this.cancelButton.disabled = true
    setText(this.cancelButton, "Cancelling…")
    try {
      await server.cancel(this.key)
    } catch (error) {
      this.cancelButton.disabled = false
      setText(this.cancelButton, "Cancel run")
      setText(this.connection, error.message)
    }
  }
}

function tokens({ inputTokens, outputTokens, cacheReadTokens, costUsd }) {
  const cached = cacheReadTokens ? ` (${cacheReadTokens.toLocaleString("en")} from a cache)` : ""
  const cost = costUsd === undefined ? "" : `, $${costUsd.toFixed(4)}`
  return `${inputTokens.toLocaleString("en")} tokens read${cached}, ${outputTokens.toLocaleString("en")} written${cost}`
}

/** What to call an agent in a line. */
function named(label, seq) {
  if (label.trim() === "") return `#${seq}`
  return label.length > MOST_NAME ? `${label.slice(0, MOST_NAME)}…` : label
}

export function brand() {
  const mark = icon("mark")
  mark.setAttribute("class", "icon brand-mark")
  return mark
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }))
  h("a", { href: url, download: name.replace(/[^\w.-]+/g, "-") }).click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

/** Panels of which one is in sight, as the ARIA practices describe them. */
class Tabs {
  constructor(panels) {
    this.entries = new Map()
    this.byHand = false
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "About the run", onkeydown: (event) => this.key(event) })
    this.element = h("section", { class: "panel side", "aria-label": "About the run" }, list)
    for (const [name, content] of panels) {
      const id = name.toLowerCase()
      const number = h("span", { class: "badge", hidden: true })
      const tab = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, onclick: () => this.choose(name, true) }, name, number)
      const panel = h("div", { class: "tabpanel", role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}` }, content)
      this.entries.set(name, { tab, panel, number })
      list.append(tab)
      this.element.append(panel)
    }
  }

  /** Brings a panel into sight; not against the will of somebody who chose another. */
  choose(name, byHand) {
    if (!byHand && this.byHand) return
    this.byHand = byHand
    this.current = name
    const { tab: chosen } = this.entries.get(name)
    // Where there is little room, the tabs are a strip that slides.
    chosen.parentElement.scrollLeft = chosen.offsetLeft - chosen.parentElement.clientWidth / 2
    for (const [other, { tab, panel }] of this.entries) {
      tab.setAttribute("aria-selected", String(other === name))
      tab.tabIndex = other === name ? 0 : -1
      panel.hidden = other !== name
    }
  }

  label(name, n) {
    const { number } = this.entries.get(name)
    number.hidden = n === 0
    setText(number, n.toLocaleString("en"))
  }

  key(event) {
    const names = [...this.entries.keys()]
    const at = names.indexOf(this.current)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const name = names[(to + names.length) % names.length]
    this.choose(name, true)
    this.entries.get(name).tab.focus()
  }
}
