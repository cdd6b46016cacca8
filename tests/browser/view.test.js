// The page in a real browser, with real runs.

import assert from "node:assert/strict"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, describe, test } from "node:test"
import { begins, browser, counts, fanfold, lines, open, reaches, ROOT, script, until, wire } from "./support.js"

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
/** Where pictures for the documentation go, if they are to be made. */
const PICTURES = process.env.FANFOLD_PICTURES && join(ROOT, "docs")

let chrome
let folder

before(async () => {
  chrome = await browser()
  folder = await mkdtemp(join(tmpdir(), "fanfold-view-"))
})
after(async () => {
  await chrome?.close()
  await rm(folder, { recursive: true, force: true })
})

const live = (name, args, ...options) =>
  fanfold("run", script(name), "--view", "--agents", "scripted", "--args", JSON.stringify(args ?? {}), ...options)

async function picture(page, name) {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}.png`) })
}

/** Everything that axe finds wrong, for reading. */
async function violations(page) {
  // The page's policy lets no script in; the debugger may.
  const session = await page.context().newCDPSession(page)
  await session.send("Runtime.evaluate", { expression: AXE })
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(violations.map((v) => [v.id, v.help, v.nodes.map((n) => [n.target.join(" "), n.failureSummary])])))`,
    awaitPromise: true,
  })
  await session.detach()
  return JSON.parse(result.value)
}

async function replay(name, text) {
  const file = join(folder, `${name}.jsonl`)
  await writeFile(file, text)
  return fanfold("view", file)
}

describe("a live run of 200 agents", () => {
  test("is followed from its start to its value", async () => {
    const server = await live("fan", { pause: 150, spread: 25 }, "--limits", '{"maxConcurrentAgents": 12}')
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await begins(page)
      assert.equal(await page.locator("h1").textContent(), "sweep")
      assert.match(await page.locator(".most").textContent(), /of at most 12 at once/)
      assert.ok(!page.url().includes("token"), "the token stays in the address")
      await until(page, "six rows of agents that have completed", () => document.querySelectorAll(".row.agent[data-state=completed]").length > 5)
      await counts(page, 90, "completed")
      await picture(page, "view-running")
      await reaches(page, "Completed")
      await page.getByRole("tab", { name: "Result" }).and(page.locator("[aria-selected=true]")).waitFor()
      await page.locator(".tree").waitFor()
      assert.equal(await page.locator(".overall .counts").textContent(), "200 agents · 197 completed · 3 failed")
      assert.match(await page.locator(".tree").textContent(), /176 of 180 modules are sound/)
      // What failed and why.
      await page.getByRole("tab", { name: /Problems/ }).click()
      assert.equal(await page.locator(".problems li").count(), 1)
      assert.match(await page.locator(".problems").textContent(), /second look at module 51.*larger than the model's context/)
      await page.locator(".problems .link").first().click()
      assert.equal(await page.locator(".row[aria-selected=true] .label").textContent(), "second look at module 51")
      assert.match(await page.locator("#panel-agent").textContent(), /Failed.*Look twice.*Why.*larger than/)
      // The script, with what became of its phases.
      await page.getByRole("tab", { name: "Script" }).click()
      const marks = await page.locator(".script .mark").allTextContents()
      assert.deepEqual(marks, ["180 of 180", "18 of 18", "2 of 2"])
      // A phase that was planned and never entered is not a phase with nothing in it.
      await page.locator(".grid").focus()
      await page.keyboard.press("End")
      assert.match(await page.locator(".row[aria-selected=true]").textContent(), /Publish.*not reached/)
      // The value is what the command printed.
      await page.getByRole("tab", { name: "Result" }).click()
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()])
      assert.equal(download.suggestedFilename(), "sweep.json")
      assert.equal((await readFile(await download.path(), "utf8")).trim(), server.said.out.trim())
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })

  test("is whole after the connection was lost in the middle", async () => {
    const server = await live("fan", { pause: 120, spread: 20 }, "--limits", '{"maxConcurrentAgents": 8}')
    const cable = await wire(server.url)
    const { page, faults } = await open(chrome.context, cable.url)
    try {
      await counts(page, 20, "completed")
      cable.cut()
      await reaches(page, "Connection lost")
      cable.mend()
      await counts(page, 80, "completed")
      cable.cut()
      cable.mend()
      await reaches(page, "Completed")
      assert.equal(await page.locator(".overall .counts").textContent(), "200 agents · 197 completed · 3 failed")
      await page.getByRole("tab", { name: /Logs/ }).click()
      const logs = await page.locator(".logs li .text").allTextContents()
      assert.equal(logs.length, 20)
      assert.equal(new Set(logs).size, 20)
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      cable.close()
      await server.stop()
    }
  })

  test("goes on after the page was loaded again", async () => {
    const server = await live("hangs")
    const { page } = await open(chrome.context, server.url)
    try {
      await page.waitForSelector(".row.agent[data-state=running]")
      await page.reload()
      await page.waitForSelector(".row.agent[data-state=running]")
      // Another tab has not been given the token.
      const other = await open(chrome.context, new URL(server.url).origin)
      await other.page.getByText("This page needs its whole address").waitFor()
      await other.page.close()
    } finally {
      await page.close()
      await server.stop()
    }
  })
})

describe("cancelling", () => {
  test("is not offered unless it was allowed", async () => {
    const server = await live("hangs")
    const { page } = await open(chrome.context, server.url)
    try {
      await page.waitForSelector(".row.agent[data-state=running]")
      assert.equal(await page.getByRole("button", { name: "Cancel run" }).count(), 0)
    } finally {
      await page.close()
      await server.stop()
    }
  })

  test("from the page ends the run and its agents", async () => {
    const server = await live("hangs", {}, "--view-cancel", "--limits", '{"maxConcurrentAgents": 3}')
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await page.waitForSelector(".row.agent[data-state=running]")
      await until(page, "three rows of running agents", () => document.querySelectorAll(".row.agent[data-state=running]").length === 3)
      await page.getByRole("button", { name: "Cancel run" }).click()
      await page.getByRole("button", { name: "Keep running" }).click()
      assert.equal(await page.locator(".pill").textContent(), "Running")
      await page.getByRole("button", { name: "Cancel run" }).click()
      await page.locator("dialog").getByRole("button", { name: "Cancel run" }).click()
      await reaches(page, "Cancelled")
      assert.equal(await page.locator(".overall .counts").textContent(), "3 agents · 3 cancelled")
      assert.match(await page.locator("#panel-result").textContent(), /CANCELLED/)
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })
})

describe("runs that go wrong", () => {
  test("say why and where", async () => {
    const server = await live("throws")
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await reaches(page, "Failed")
      assert.match(await page.locator("#panel-result").textContent(), /TypeError: the answer had no <b>findings<\/b>/)
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })

  test("say so when they could not even start", async () => {
    const file = join(folder, "torn.js")
    await writeFile(file, "return await agent(")
    const server = await fanfold("run", file, "--view", "--agents", "scripted")
    const { page } = await open(chrome.context, server.url)
    try {
      await reaches(page, "Failed")
      assert.match(await page.locator("#panel-result").textContent(), /line 1.*SCRIPT_PARSE/)
      await page.getByRole("tab", { name: "Script" }).click()
      assert.match(await page.locator(".script .fault").textContent(), /failed here/)
    } finally {
      await page.close()
      await server.stop()
    }
  })
})

describe("a replayed file", () => {
  test("looks as the run did", async () => {
    const server = await replay("sweep", await lines("fan", { pause: 1, spread: 1 }))
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await reaches(page, "Completed")
      assert.equal(await page.locator(".overall .counts").textContent(), "200 agents · 197 completed · 3 failed")
      await page.locator(".tree").waitFor()
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })

  test("without its tail was interrupted", async () => {
    const whole = await lines("fan", { pause: 1, spread: 1 })
    const torn = whole.slice(0, whole.indexOf("\n", whole.length / 3)) + '\n{"type": "workflow/lo'
    const server = await replay("torn", torn)
    const { page } = await open(chrome.context, server.url)
    try {
      await reaches(page, "Interrupted")
      assert.match(server.said.err, /1 lines? could not be read/)
    } finally {
      await page.close()
      await server.stop()
    }
  })

  test("is one of many in a folder", async () => {
    const place = await mkdtemp(join(folder, "history-"))
    await writeFile(join(place, "a.jsonl"), await lines("fan", { pause: 1, spread: 1 }))
    await writeFile(join(place, "b.jsonl"), await lines("throws"))
    await writeFile(join(place, "b.js"), await readFile(script("throws")))
    await writeFile(join(place, "c.jsonl"), (await lines("fan", { pause: 1, spread: 1 })).split("\n").slice(0, 250).join("\n"))
    const server = await fanfold("view", place)
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await page.getByRole("link", { name: "broken" }).waitFor()
      assert.equal(await page.locator("tbody tr").count(), 3)
      assert.deepEqual(await violations(page), [])
      await picture(page, "view-history")
      // A run that comes later is there without asking.
      await writeFile(join(place, "d.jsonl"), await lines("thousand", { agents: 3, pause: 1 }))
      await page.getByRole("link", { name: "thousand" }).waitFor()
      await page.getByRole("link", { name: "broken" }).click()
      await reaches(page, "Failed")
      await page.getByRole("tab", { name: "Script" }).click()
      assert.match(await page.locator(".script").textContent(), /throw new TypeError/)
      await page.getByRole("link", { name: "All runs" }).click()
      await page.getByRole("heading", { name: "Runs" }).waitFor()
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })
})

test("hostile texts are shown and do nothing", async () => {
  const server = await live("hostile")
  const { page, faults } = await open(chrome.context, server.url)
  try {
    await reaches(page, "Completed")
    await page.locator(".tree").waitFor()
    for (const tab of ["Problems", "Logs", "Script", "Result"]) await page.getByRole("tab", { name: tab }).click()
    for (let depth = 0; depth < 3; depth++) await page.evaluate(() => document.querySelectorAll(".tree details").forEach((details) => (details.open = true)))
    const texts = await page.locator(".row.agent .label").allTextContents()
    assert.ok(texts.includes(`<img src=x onerror="window.hacked = 3">`))
    assert.ok(texts.includes("👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽"))
    assert.equal(await page.locator("h1").textContent(), `<img src=x onerror="window.hacked = 1">`)
    assert.equal(await page.evaluate(() => window.hacked), undefined)
    assert.equal(await page.locator("img, #page script, #page b").count(), 0)
    // What runs from right to left does so in its own box, and a long line makes nothing wider.
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
    assert.equal(wide, false)
    await page.getByRole("tab", { name: "Logs" }).click()
    await page.getByRole("button", { name: "Show all 10,240 characters" }).click()
    assert.ok((await page.locator(".logs .text").allTextContents()).includes("W".repeat(10_240)))
    assert.equal(await page.evaluate(() => { const it = document.querySelector(".logs").closest(".scroll"); return it.scrollWidth > it.clientWidth }), false)
    assert.deepEqual(await violations(page), [])
    assert.deepEqual(faults, [])
  } finally {
    await page.close()
    await server.stop()
  }
})

describe("a thousand agents", () => {
  test("cost as much to show as a hundred", async (t) => {
    const cost = {}
    for (const agents of [100, 1000]) {
      const pause = 200
      const server = await live("thousand", { agents, pause }, "--limits", '{"maxConcurrentAgents": 20}')
      const { page } = await open(chrome.context, server.url)
      const session = await page.context().newCDPSession(page)
      await session.send("Performance.enable")
      const metrics = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]))
      await begins(page)
      await page.evaluate(() => {
        window.frames_ = 0
        const next = () => (window.frames_++, requestAnimationFrame(next))
        requestAnimationFrame(next)
      })
      const before = await metrics()
      await reaches(page, "Completed")
      const after = await metrics()
      const frames = await page.evaluate(() => window.frames_)
      const work = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"].reduce((sum, name) => sum + after[name] - before[name], 0)
      cost[agents] = (work * 1000) / frames
      const nodes = await page.locator("*").count()
      const rows = await page.locator(".row").count()
      t.diagnostic(`${agents} agents: ${cost[agents].toFixed(2)} ms of work a frame, ${frames} frames, ${rows} rows, ${nodes} elements`)
      assert.ok(rows < 60, `${rows} rows exist`)
      assert.ok(nodes < 1500, `${nodes} elements exist`)
      await page.close()
      await server.stop()
    }
    assert.ok(cost[1000] < 4 * cost[100] + 4, `${JSON.stringify(cost)} ms a frame`)
  })

  test("can be walked through with the keyboard", async () => {
    const server = await replay("thousand", await lines("thousand", { agents: 1000, pause: 1 }))
    const { page, faults } = await open(chrome.context, server.url)
    try {
      await reaches(page, "Completed")
      const grid = page.getByRole("treegrid", { name: "Agents" })
      await grid.focus()
      const active = () => page.evaluate(() => document.getElementById(document.querySelector(".grid").getAttribute("aria-activedescendant"))?.querySelector(".label").textContent)
      await page.keyboard.press("End")
      assert.equal(await active(), "agent 1000")
      await page.keyboard.press("Home")
      assert.equal(await active(), "All")
      await page.keyboard.press("ArrowDown")
      await page.keyboard.press("Enter")
      assert.match(await page.getByRole("tabpanel", { name: "Agent" }).textContent(), /agent 1Completed|agent 1.*Completed/s)
      await page.keyboard.press("ArrowLeft")
      await page.keyboard.press("ArrowLeft")
      assert.equal(await grid.getAttribute("aria-rowcount"), "1")
      await page.keyboard.press("ArrowRight")
      assert.equal(await grid.getAttribute("aria-rowcount"), "1001")
      await page.getByRole("searchbox", { name: "Find an agent" }).fill("agent 99")
      assert.equal(await page.locator(".found").textContent(), "11 agents")
      assert.deepEqual(faults, [])
    } finally {
      await page.close()
      await server.stop()
    }
  })
})

describe("accessibility", () => {
  for (const [name, media, size] of [
    ["light", { colorScheme: "light" }, { width: 1440, height: 900 }],
    ["dark", { colorScheme: "dark" }, { width: 1440, height: 900 }],
    ["narrow", { colorScheme: "light" }, { width: 390, height: 844 }],
    ["narrow-dark", { colorScheme: "dark" }, { width: 390, height: 844 }],
  ]) {
    test(`has no violations: ${name}`, async () => {
      const server = await replay(`axe-${name}`, await lines("fan", { pause: 20, spread: 10 }, "--limits", '{"maxConcurrentAgents": 12}'))
      const { page, faults } = await open(chrome.context, server.url, { media, size })
      try {
        await reaches(page, "Completed")
        await page.locator(".tree").waitFor()
        assert.deepEqual(await violations(page), [])
        if (name !== "narrow-dark") await picture(page, `view-${name}`)
        for (const tab of ["Problems", "Logs", "Script", "Agent"]) {
          await page.getByRole("tab", { name: tab }).click()
          assert.deepEqual(await violations(page), [], tab)
        }
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
        assert.equal(wide, false)
        assert.deepEqual(faults, [])
      } finally {
        await page.close()
        await server.stop()
      }
    })
  }

  test("has no violations while a run goes on", async () => {
    const server = await live("hangs", {}, "--view-cancel")
    const { page } = await open(chrome.context, server.url)
    try {
      await page.waitForSelector(".row.agent[data-state=running]")
      assert.deepEqual(await violations(page), [])
      await page.getByRole("button", { name: "Cancel run" }).click()
      assert.deepEqual(await violations(page), [])
    } finally {
      await page.close()
      await server.stop()
    }
  })
})
