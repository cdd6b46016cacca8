// Which page to show: a run, or the list of them. The address says it behind a `#`.

import load from "./fanfold_types.js"
import * as server from "./server.js"
import { h } from "./dom.js"
import { RunPage } from "./run.js"
import { HistoryPage } from "./history.js"

const place = document.getElementById("page")
let current = null
let turn = 0

async function show() {
  const mine = ++turn
  server.takeToken()
  try {
    const list = await server.runs()
    const asked = new URLSearchParams(location.hash.slice(1)).get("run")
    // A view of one run needs no list.
    const key = asked ?? (list.runs.length === 1 ? list.runs[0].key : null)
    const details = key === null ? null : await server.about(key)
    if (mine !== turn) return
    put(details === null ? new HistoryPage(list) : new RunPage(details, { home: list.runs.length > 1 }))
  } catch (error) {
    if (mine === turn) complain(error)
  }
}

function put(page) {
  current?.stop()
  current = page
  place.replaceChildren(page.element)
}

function complain(error) {
  current?.stop()
  current = null
  const refused = error instanceof server.Refused
  place.replaceChildren(
    h(
      "main",
      { class: "message" },
      h("h1", {}, refused ? "This page needs its whole address" : "This page cannot be shown"),
      h("p", {}, refused ? "Open the address as it was printed, with the #token=… at its end." : error.message),
      refused ? null : h("button", { type: "button", onclick: show }, "Try again"),
    ),
  )
}

addEventListener("hashchange", show)
// A service that mounts this page may have runs before the wasm is there.
await load()
await show()
