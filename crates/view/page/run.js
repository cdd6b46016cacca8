// One run: its lines go into the fold, and what the fold says goes onto the page, at most once a frame.

import { RunView, pretty } from "./fanfold_types.js"
import * as server from "./server.js"
import { h, icon, stranger, setText, stateIcon, progress, duration, count, announce, started, ended, STATES } from "./dom.js"
import { Agents } from "./agents.js"
import { Logs, long } from "./logs.js"
import { Script } from "./script.js"
import { tree } from "./value.js"

/** How often times go on while nothing else happens. */
const TICK = 100
const MOST_FAILURES = 300
const MOST_NAME = 200

export class RunPage {
  /** @param details what the server says of the run @param home whether there are other runs to go back to */
  constructor(details, { home }) {
    this.key = details.summary.key
    this.skew = details.now - Date.now()
    this.view = new RunView()
    this.state = { revision: 0, run: { state: "waiting", agents: {}, failures: [], warnings: [] }, phases: [], agents: [] }
    this.stopped = new AbortController()
    // A run that is over is told in one go; nobody follows it.
    this.agents = new Agents({ follow: details.summary.state === "running" || details.summary.state === "waiting", limit: details.maxConcurrentAgents, choose: (agent) => this.choose(agent) })
    this.logs = new Logs()
    this.script = details.script === undefined ? null : new Script(details.script)
    this.build(details, home)
    this.follow()
    this.ticking = setInterval(() => this.state.run.state === "running" && this.wake(), TICK)
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
    server
      .follow(this.key, {
        signal: this.stopped.signal,
        line: (line) => this.take(() => this.view.line(line)),
        over: () => {
          this.take(() => this.view.close())
          setText(this.connection, "")
        },
        connected: (connected) => setText(this.connection, connected ? "" : "Connection lost. Trying again…"),
      })
      .catch((error) => !this.stopped.signal.aborted && setText(this.connection, error.message))
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

  wake() {
    this.waking ??= requestAnimationFrame(() => {
      this.waking = undefined
      if (this.view) this.draw()
    })
  }

  // What is shown.

  draw() {
    const before = this.state.run.state
    const news = this.view.since(this.state.revision)
    if (news.revision !== this.state.revision) {
      this.state.revision = news.revision
      this.state.run = news.run
      for (const phase of news.phases) this.state.phases[phase.index] = phase
      for (const agent of news.agents) this.state.agents[agent.index] = agent
      this.logs.add(news.logs)
      this.agents.update(this.state)
      this.head()
      this.script?.update(news.run, this.state.phases)
      this.problems()
      this.tell(before, news)
      if (this.agent) this.describe(this.state.agents[this.agent.index])
    }
    const { run } = this.state
    this.logs.update(run, run.began ?? 0, (index) => this.state.phases[index]?.title)
    const end = run.state === "running" ? this.now() : (run.ended ?? run.last)
    setText(this.elapsed, run.began === undefined || end === undefined ? "" : duration(end - run.began))
    this.agents.draw(this.now())
  }

  head() {
    const { run } = this.state
    if (run.name !== undefined) setText(this.name, run.name)
    if (run.meta) setText(this.description, run.meta.description)
    document.title = `${STATES[run.state]} · ${run.name ?? "a run"} · Fanfold`
    if (this.pill.dataset.state !== run.state) {
      this.pill.dataset.state = run.state
      this.pill.className = `pill ${run.state}`
      this.pill.replaceChildren(stateIcon(run.state), STATES[run.state])
    }
    this.bar.update(run.agents)
    const all = started(run.agents)
    const words = ["running", "completed", "failed", "cancelled", "interrupted"].filter((state) => run.agents[state] > 0)
    setText(this.counts, all === 0 ? "No agents yet" : [count(all, "agent"), ...words.map((state) => `${run.agents[state].toLocaleString("en")} ${state}`)].concat(run.usage ? tokens(run.usage) : []).join(" · "))
    if (this.cancelButton && run.state !== "running" && run.state !== "waiting") this.cancelButton.hidden = true
    this.panels.label("Logs", run.logged)
  }

  /** What needs attention: the run's error, what is missing, and the agents that failed with their reasons. */
  problems() {
    const { run, agents } = this.state
    const failed = agents.filter((agent) => agent.state === "failed" || (agent.reason !== undefined && agent.state !== "completed"))
    const seen = new Set(failed.map((agent) => agent.seq))
    const unstarted = run.failures.filter((failure) => !seen.has(failure.seq))
    const number = failed.length + unstarted.length + run.warnings.length + (run.missingEvents > 0 ? 1 : 0)
    this.panels.label("Problems", number)
    const told = `${failed.length} ${unstarted.length} ${run.hasResult} ${run.state} ${run.missingEvents}`
    if (this.toldProblems === told) return
    this.toldProblems = told
    const items = []
    if (run.missingEvents > 0) items.push(h("li", {}, h("p", {}, `${count(run.missingEvents, "event")} of this run ${run.missingEvents === 1 ? "is" : "are"} missing.`)))
    for (const failure of unstarted) items.push(problem("failed", failure.label, failure.seq, failure.reason, null))
    for (const agent of failed) {
      const reason = agent.reason ?? (run.hasResult ? "No reason was given." : run.state === "running" ? "Its reason comes with the run's result." : "Its reason is not known.")
      items.push(problem(agent.state, agent.label, agent.seq, reason, () => this.choose(agent, true)))
    }
    for (const warning of run.warnings) items.push(h("li", {}, h("h3", {}, "Warning"), long(warning)))
    const left = items.length - MOST_FAILURES
    this.failures.replaceChildren(
      items.length === 0 ? h("p", { class: "note" }, run.state === "running" ? "No problems so far." : "No problems.") : h("ul", { class: "problems" }, items.slice(0, MOST_FAILURES)),
      left > 0 ? h("p", { class: "note" }, `and ${left} more`) : "",
    )
  }

  /** Says changes of state, and moves to what matters now. */
  tell(before, { run, phases }) {
    if (before !== run.state && run.state !== "waiting") {
      const parts = ["completed", "failed", "cancelled"].filter((state) => run.agents[state] > 0).map((state) => `${run.agents[state]} ${state}`)
      announce(run.state === "running" ? `Run ${run.name} has started` : `Run ${run.name}: ${STATES[run.state]}. Agents: ${parts.join(", ") || "none"}`)
    } else if (run.state === "running" && run.currentPhase !== undefined && phases.some((phase) => phase.index === run.currentPhase) && this.toldPhase !== run.currentPhase) {
      this.toldPhase = run.currentPhase
      announce(`Phase ${this.state.phases[run.currentPhase].title}`)
    }
    const over = run.state !== "running" && run.state !== "waiting"
    if (over && (run.hasResult || run.state === "interrupted") && !this.resulted) {
      this.resulted = true
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
    const { run, phases } = this.state
    const from = run.began
    const rows = [
      ["State", h("span", { class: `state ${agent.state}` }, stateIcon(agent.state), STATES[agent.state])],
      ["Call", `#${agent.seq}`],
      agent.phase === undefined ? null : ["Phase", stranger("span", {}, phases[agent.phase]?.title ?? "")],
      ["Child", stranger("code", {}, agent.childId)],
      agent.began === undefined ? null : ["Began", `${duration(agent.began - from)} into the run, at ${new Date(agent.began).toLocaleTimeString()}`],
      agent.began === undefined || agent.ended === undefined ? null : ["Took", duration(agent.ended - agent.began)],
      agent.usage ? ["Tokens", tokens(agent.usage)] : null,
    ]
    this.chosen.replaceChildren(
      stranger("h3", {}, named(agent.label, agent.seq)),
      agent.label.length > MOST_NAME || agent.label.includes("\n") ? long(agent.label) : "",
      h("dl", {}, rows.filter(Boolean).flatMap(([term, what]) => [h("dt", {}, term), h("dd", {}, what)])),
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

function problem(state, label, seq, reason, show) {
  const name = named(label, seq)
  const title = show ? stranger("button", { type: "button", class: "link", onclick: show }, name) : stranger("span", {}, name)
  return h("li", {}, h("h3", { class: state }, stateIcon(state), h("span", { class: "unseen" }, `${STATES[state]}: `), title), long(reason))
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
