// What the page says of runs that it cannot see, and of agents that say nothing.

import assert from "node:assert/strict"
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, describe, test } from "node:test"
import { browser, counts, fanfold, lines, open, reaches, script, until } from "./support.js"

let chrome
let folder

before(async () => {
  chrome = await browser()
  folder = await mkdtemp(join(tmpdir(), "fanfold-truth-"))
})
after(async () => {
  await chrome?.close()
  await rm(folder, { recursive: true, force: true })
})

const hanging = (...options) => fanfold("run", script("hangs"), "--view", "--view-cancel", "--agents", "scripted", "--limits", '{"maxConcurrentAgents": 3}', ...options)

/** Looks at a run of three agents that hang. */
async function watched(...options) {
  const server = await hanging(...options)
  const { page, faults } = await open(chrome.context, server.url)
  await counts(page, 3, "running")
  const close = async () => {
    await page.close()
    await server.stop()
  }
  return { server, page, faults, close }
}

/** Cancels the run. */
async function cancel(page) {
  await page.getByRole("button", { name: "Cancel run" }).click()
  await page.locator("dialog").getByRole("button", { name: "Cancel run" }).click()
}

/** Nothing on the page says that the run goes on. */
async function isLost(page) {
  await reaches(page, "Connection lost")
  assert.match(await page.title(), /^Connection lost · /)
  assert.equal(await page.locator(".overall .counts").textContent(), "3 agents · 3 last seen unfinished")
  assert.equal(await page.locator(".row.agent[data-state=running], .row.live").count(), 0)
  assert.equal(await page.locator(".row.agent").first().locator(".unseen").textContent(), "Last seen unfinished: ")
  assert.equal(await page.getByRole("button", { name: "Cancel run" }).isVisible(), false)
  const elapsed = await page.locator(".elapsed").textContent()
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal(await page.locator(".elapsed").textContent(), elapsed, "its time stands still")
}

describe("a run that cannot be seen is not told to be running", () => {
  test("when its server was killed", async () => {
    const { server, page, faults, close } = await watched()
    try {
      await server.kill()
      await isLost(page)
      assert.match(await page.locator(".connection").textContent(), /does not answer/)
      assert.deepEqual(faults, [])
    } finally {
      await close()
    }
  })

  test("when another server has its address and another token", async () => {
    const { server, page, close } = await watched()
    let other
    try {
      await server.kill()
      other = await hanging("--listen", new URL(server.url).host)
      await until(page, "the page to ask for the token", () => /token/.test(document.querySelector(".connection").textContent))
      await isLost(page)
    } finally {
      await other?.stop()
      await close()
    }
  })

  test("when its server was stopped, until it goes on", async () => {
    const { server, page, faults, close } = await watched()
    try {
      server.signal("SIGSTOP")
      await isLost(page)
      server.signal("SIGCONT")
      await reaches(page, "Running")
      await counts(page, 3, "running")
      assert.deepEqual(faults, [])
    } finally {
      server.signal("SIGCONT")
      await close()
    }
  })

  test("when the tab was suspended over its end", async () => {
    const { server, page, close } = await watched()
    try {
      const session = await page.context().newCDPSession(page)
      await session.send("Page.setWebLifecycleState", { state: "frozen" })
      const other = await open(chrome.context, server.url)
      await cancel(other.page)
      await reaches(other.page, "Cancelled")
      await other.page.close()
      await session.send("Page.setWebLifecycleState", { state: "active" })
      await reaches(page, "Cancelled")
    } finally {
      await close()
    }
  })
})

test("a log that is cut and written again is shown as it is", async () => {
  const whole = await lines("fan", { pause: 1, spread: 1 })
  const all = whole.split("\n")
  const part = (n) => `${all.slice(0, n).join("\n")}\n`
  const file = join(folder, "cut.jsonl")
  await writeFile(file, part(300))
  const server = await fanfold("view", file)
  const { page, faults } = await open(chrome.context, server.url)
  const agents = (what, condition) => until(page, what, condition, /^([\d,]+) agents/.source)
  try {
    await reaches(page, "Interrupted")
    await counts(page, 50, "completed")
    await writeFile(file, part(12))
    await agents("fewer than twelve agents", (pattern) => Number(new RegExp(pattern).exec(document.querySelector(".overall .counts").textContent)?.[1] ?? 0) < 12)
    assert.equal(await page.locator(".pill").textContent(), "Interrupted")
    await appendFile(file, all.slice(12).join("\n"))
    await reaches(page, "Completed")
    assert.equal(await page.locator(".overall .counts").textContent(), "200 agents · 197 completed · 3 failed")
    await page.getByRole("tab", { name: /Logs/ }).click()
    assert.equal(await page.locator(".logs li").count(), 20)
    assert.deepEqual(faults, [])
  } finally {
    await page.close()
    await server.stop()
  }
})

test("nine tabs of one browser see a run to its end", async () => {
  const { server, page, close } = await watched()
  const others = []
  try {
    for (let i = 0; i < 8; i++) others.push((await open(chrome.context, server.url)).page)
    for (const other of others) await reaches(other, "Running")
    // The last one can still ask for something.
    await cancel(others.at(-1))
    for (const tab of [page, ...others]) await reaches(tab, "Cancelled")
  } finally {
    for (const other of others) await other.close()
    await close()
  }
})

test("agents that are silent are told to be, with the time", async () => {
  const { page, faults, close } = await watched()
  try {
    await until(page, "three agents to be quiet", () => [...document.querySelectorAll(".row.agent .hint")].filter((hint) => /^quiet \d+ s$/.test(hint.textContent)).length === 3)
    await page.locator(".row.agent").first().click()
    await until(page, "the chosen agent to be quiet", () => /Now\s*quiet \d+ s/.test(document.querySelector(".chosen").textContent))
    assert.deepEqual(faults, [])
  } finally {
    await close()
  }
})

test("agents that failed alike are one problem", async () => {
  const server = await fanfold("run", script("alike"), "--view", "--agents", "scripted")
  const { page, faults } = await open(chrome.context, server.url)
  try {
    await reaches(page, "Completed")
    await page.getByRole("tab", { name: /Problems/ }).click()
    assert.equal(await page.getByRole("tab", { name: /Problems/ }).locator(".badge").textContent(), "13")
    const problems = await page.locator(".problems li").allTextContents()
    assert.equal(problems.length, 2)
    assert.match(problems[0], /^Failed: try \d+and 11 others.*not signed in/)
    assert.match(problems[1], /^Failed: try 5.*no answer/)
    await page.locator(".problems .others .link").last().click()
    assert.match(await page.locator("#panel-agent").textContent(), /Failed.*not signed in/)
    assert.deepEqual(faults, [])
  } finally {
    await page.close()
    await server.stop()
  }
})
