// The script, with what became of its phases beside the lines that name them. Reads it well enough to colour it;
// never runs it.

import { h, started, ended, stateIcon } from "./dom.js"

const WORDS = /^(?:async|await|break|case|catch|class|const|continue|default|delete|do|else|export|false|finally|for|function|if|in|instanceof|let|new|null|of|return|switch|this|throw|true|try|typeof|undefined|void|while|yield)$/
const HOOKS = /^(?:agent|parallel|pipeline|phase|log|workflow|budget|args|meta)$/
const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|`(?:\\[\s\S]|[^`\\])*`?)|([A-Za-z_$][\w$]*)|(\d[\w.]*)/g
const PHASE = /\bphase(?:\(|:)\s*(?:"([^"\\\n]*)"|'([^'\\\n]*)'|`([^`\\$\n]*)`)/
const MOST = 4000

/** The text's tokens as `[class or null, text]`. */
export function tokens(text) {
  const found = []
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) found.push([null, text.slice(end, match.index)])
    end = match.index + match[0].length
    const kind = match[1] ? "comment" : match[2] ? "string" : match[4] ? "number" : WORDS.test(match[0]) ? "word" : HOOKS.test(match[0]) ? "hook" : null
    found.push([kind, match[0]])
  }
  if (end < text.length) found.push([null, text.slice(end)])
  return found
}

/** The title of the phase that a line enters, or that its agents are of, if it says so plainly. */
export function phaseOf(line) {
  const match = PHASE.exec(line)
  return match ? (match[1] ?? match[2] ?? match[3]) : null
}

export class Script {
  constructor(text) {
    const lines = [[]]
    for (const [kind, token] of tokens(text)) {
      token.split("\n").forEach((part, i) => {
        if (i > 0) lines.push([])
        if (part !== "") lines.at(-1).push(kind ? h("span", { class: kind }, part) : part)
      })
    }
    const written = text.split("\n")
    this.marks = []
    this.lines = lines.slice(0, MOST).map((parts, i) => {
      const title = phaseOf(written[i] ?? "")
      const mark = title === null ? null : h("span", { class: "mark" })
      if (mark) this.marks.push({ title, mark, line: i })
      return h("li", {}, h("code", {}, parts.length === 0 ? "\u200b" : parts), mark)
    })
    const left = lines.length - this.lines.length
    this.element = h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Script" },
      h("ol", { class: "script" }, this.lines),
      left > 0 ? h("p", { class: "note" }, `${left} more lines are not shown.`) : null,
    )
  }

  update(run, phases) {
    const byTitle = new Map(phases.map((phase) => [phase.title, phase]))
    for (const { title, mark, line } of this.marks) {
      const phase = byTitle.get(title)
      const over = !run.lost && run.state !== "running" && run.state !== "waiting"
      const state = !phase ? "planned" : phase.active ? "running" : phase.agents.failed > 0 ? "failed" : "completed"
      const words = !phase ? (over ? "not reached" : "to come") : `${ended(phase.agents)} of ${started(phase.agents)}`
      const told = `${state} ${words}`
      if (mark.dataset.told === told) continue
      mark.dataset.told = told
      mark.className = `mark ${state}`
      mark.replaceChildren(stateIcon(state), words)
      this.lines[line].classList.toggle("current", Boolean(phase?.active))
    }
    const at = run.error?.line
    if (at !== undefined && this.lines[at - 1] && this.failed !== at) {
      this.failed = at
      this.lines[at - 1].classList.add("fault")
      this.lines[at - 1].append(h("span", { class: "mark failed" }, stateIcon("failed"), "failed here"))
    }
  }
}
