// What the script logged, the newest last. Few enough elements to stay fast, whatever is logged.

import { h, stranger, setText, count, duration } from "./dom.js"

const SHOWN = 400
const LONG = 600

export class Logs {
  constructor() {
    this.list = h("ol", { class: "logs" })
    this.earlier = h("p", { class: "note", hidden: true })
    this.empty = h("p", { class: "note" }, "Nothing was logged yet.")
    this.scroller = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Logs" }, this.earlier, this.list, this.empty)
    this.element = this.scroller
    this.waiting = []
  }

  add(logs) {
    this.waiting.push(...logs)
    if (this.waiting.length > SHOWN) this.waiting.splice(0, this.waiting.length - SHOWN)
  }

  /** Forgets what was added: it is told anew. */
  clear() {
    this.waiting = []
    this.list.replaceChildren()
    this.empty.hidden = false
    this.earlier.hidden = true
  }

  /** Shows what was added. @param phaseTitle gives a phase's title by its index */
  update(run, began, phaseTitle) {
    if (this.waiting.length === 0) {
      if (run.state !== "running" && run.logged === 0) setText(this.empty, "Nothing was logged.")
      return
    }
    const atEnd = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 40
    this.list.append(...this.waiting.map((log) => row(log, began, phaseTitle)))
    this.waiting = []
    while (this.list.childElementCount > SHOWN) this.list.firstElementChild.remove()
    const hidden = run.logged - this.list.childElementCount
    this.earlier.hidden = hidden === 0
    setText(this.earlier, `${count(hidden, "earlier line")} not shown`)
    this.empty.hidden = true
    if (atEnd) this.scroller.scrollTop = this.scroller.scrollHeight
  }
}

function row(log, began, phaseTitle) {
  const title = log.phase === undefined ? null : phaseTitle(log.phase)
  return h(
    "li",
    {},
    h("span", { class: "at" }, `+${duration(log.at - began)}`),
    h("div", {}, title ? stranger("span", { class: "tag" }, title) : null, long(log.message)),
  )
}

/** Text of any length: its beginning, and the rest on demand. */
export function long(text) {
  if (text.length <= LONG) return stranger("p", { class: "text" }, text)
  const shown = stranger("p", { class: "text" }, beginning(text))
  const more = h(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        shown.textContent = text
        more.remove()
      },
    },
    `Show all ${text.length.toLocaleString("en")} characters`,
  )
  return h("div", {}, shown, more)
}

function beginning(text) {
  const end = text.codePointAt(LONG - 1) > 0xffff ? LONG - 1 : LONG
  return `${text.slice(0, end)}…`
}
