// Elements and words. Text goes into text nodes and nowhere else: labels and logs are written by strangers.

/** An element with attributes, listeners (`onclick`) and children; children that are null are left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children)
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

/** A picture of a state. What it says must be said in words beside it. */
export function icon(name) {
  return svg("svg", { class: `icon ${name}`, "aria-hidden": "true" }, svg("use", { href: `#${name}` }))
}

/** Sets text only where it differs, so that nothing is laid out again for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** Text by strangers: in its own direction, which it cannot carry over to what follows. */
export function stranger(tag, attributes, text) {
  return h(tag, { dir: "auto", ...attributes }, text)
}

/** Milliseconds as people say them: 340 ms, 4.2 s, 2 min 05 s, 1 h 02 min. */
export function duration(ms) {
  if (!(ms >= 0)) return "–"
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  const seconds = Math.floor(ms / 1000)
  const two = (n) => String(n).padStart(2, "0")
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`
}

/** What states are called. */
export const STATES = {
  waiting: "Waiting",
  queued: "Queued",
  refused: "Refused",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  error: "Failed",
  cancelled: "Cancelled",
  interrupted: "Interrupted",
  planned: "Planned",
}

/** What a state is called. In a run that cannot be seen, what has not ended is not known to be interrupted. */
export const stateWord = (state, lost) => (lost && state === "interrupted" ? "Last seen unfinished" : STATES[state])

const ICONS = { error: "failed", refused: "failed", planned: "waiting", queued: "waiting" }
/** The picture of a run's or agent's state. */
export const stateIcon = (state) => icon(ICONS[state] ?? state)

export const ended = (tally) => tally.completed + tally.failed + tally.cancelled + tally.interrupted
export const started = (tally) => tally.running + ended(tally)

/** How far a group of agents is, as a bar of their states. */
export function progress() {
  const parts = ["completed", "failed", "cancelled", "interrupted", "running"].map((state) => [state, h("i", { class: state })])
  const element = h("span", { class: "progress", "aria-hidden": "true" }, parts.map(([, part]) => part))
  const update = (tally) => {
    for (const [state, part] of parts) {
      part.hidden = !tally[state]
      part.style.flexGrow = tally[state] ?? 0
    }
  }
  return { element, update }
}

/** Says something to those who listen. */
export function announce(text) {
  setText(document.getElementById("announcer"), text)
}
