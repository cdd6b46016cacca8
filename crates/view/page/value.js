// A value as a tree that unfolds. Built as it is unfolded, so that a large value costs nothing until it is looked at.

import { h, icon, stranger } from "./dom.js"
import { long } from "./logs.js"

const CHUNK = 100

/** @param value parsed JSON */
export function tree(value) {
  return h("div", { class: "tree" }, node(null, value, 0))
}

function node(key, value, depth) {
  const name = key === null ? null : stranger("span", { class: "key" }, String(key))
  if (value === null || typeof value !== "object") return h("div", { class: "leaf" }, name, leaf(value))
  const isArray = Array.isArray(value)
  const keys = isArray ? null : Object.keys(value)
  const size = isArray ? value.length : keys.length
  if (size === 0) return h("div", { class: "leaf" }, name, h("span", { class: "json" }, isArray ? "[]" : "{}"))
  const details = h(
    "details",
    { open: depth < 2 && size <= 20 },
    h("summary", {}, icon("chevron"), name, h("span", { class: "size" }, isArray ? `[${size}]` : `{${size}}`)),
  )
  const body = h("div", { class: "body" })
  details.append(body)
  let built = 0
  const build = () => {
    const end = Math.min(built + CHUNK, size)
    for (; built < end; built++) {
      const [k, v] = isArray ? [built, value[built]] : [keys[built], value[keys[built]]]
      body.append(node(k, v, depth + 1))
    }
    if (built < size) {
      const more = h("button", { type: "button", class: "quiet", onclick: () => (more.remove(), build()) }, `Show more of the ${size - built} left`)
      body.append(more)
    }
  }
  const unfold = () => {
    if (details.open && built === 0) build()
  }
  details.addEventListener("toggle", unfold)
  unfold()
  return details
}

function leaf(value) {
  if (typeof value !== "string") return h("span", { class: `json ${typeof value}` }, String(value))
  const text = long(value)
  text.classList.add("string")
  return text
}
