// How many agents ran at once, over the same time as the rows below, with the limit as a line.

import { h, svg, setText, duration } from "./dom.js"
import { stairs, ticks } from "./rows.js"

const HEIGHT = 48

export class Chart {
  constructor() {
    this.area = svg("path", { class: "area" })
    this.limitLine = svg("path", { class: "limit" })
    this.picture = svg("svg", { viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, this.area, this.limitLine)
    this.most = h("span", { class: "most" })
    this.axis = h("div", { class: "axis", "aria-hidden": "true" })
    this.element = h("div", { class: "chart" }, this.most, h("div", { class: "plot" }, this.picture), this.axis)
  }

  /** @param agents that may have changed @param view `{from, length, now, peak, limit}` */
  update(agents, { from, length, now, peak, limit }) {
    const top = Math.max(peak, limit ?? 0, 1)
    const x = (at) => ((at - from) / length) * 1000
    const y = (n) => HEIGHT - 1 - (n / top) * (HEIGHT - 8)
    let path = `M0 ${HEIGHT}`
    let height = 0
    // Steps that are closer than a pixel are drawn as their highest.
    let pending = null
    const step = (at, n) => {
      path += `L${x(at).toFixed(1)} ${y(height).toFixed(1)}L${x(at).toFixed(1)} ${y(n).toFixed(1)}`
      height = n
    }
    for (const [at, n] of stairs(agents)) {
      if (pending && x(at) - x(pending[0]) < 1) pending[1] = Math.max(pending[1], n)
      else {
        if (pending) step(...pending)
        pending = [at, n]
      }
      pending[2] = n
    }
    if (pending) {
      step(pending[0], pending[1])
      if (pending[2] !== pending[1]) step(pending[0], pending[2])
    }
    path += `L${x(now).toFixed(1)} ${y(height).toFixed(1)}L${x(now).toFixed(1)} ${HEIGHT}Z`
    this.area.setAttribute("d", path)
    this.limitLine.setAttribute("d", limit ? `M0 ${y(limit).toFixed(1)}H1000` : "")
    const words = limit ? `${peak} of at most ${limit} at once` : `${peak} at once`
    setText(this.most, words)
    this.picture.setAttribute("aria-label", `Agents over time: ${words}`)
    if (this.length !== length) {
      this.length = length
      const marks = ticks(length)
      this.tick = (marks[1] ?? length) / length
      this.axis.replaceChildren(
        ...marks.map((at) => {
          const tick = h("span", {}, at === 0 ? "0" : duration(at).replace(".0 s", " s"))
          tick.style.left = `${(at / length) * 100}%`
          return tick
        }),
      )
    }
  }
}
