// What the tests share: the command, a browser, and a wire that can be cut.

import { spawn, execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer, connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { chromium } from "playwright-core"

export const ROOT = fileURLToPath(new URL("../../", import.meta.url))
export const FANFOLD = process.env.FANFOLD ?? join(ROOT, "target/debug/fanfold")
/** How long a test waits for something, in milliseconds. Nothing takes nearly as long on a machine that is fast enough. */
const PATIENCE = 180_000
export const script = (name) => fileURLToPath(new URL(`scripts/${name}.js`, import.meta.url))
export const run = promisify(execFile)

/** A browser with a profile of its own; `close` it. */
export async function browser() {
  const profile = await mkdtemp(join(tmpdir(), "fanfold-browser-"))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    viewport: { width: 1440, height: 900 },
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  })
  context.setDefaultTimeout(PATIENCE)
  return {
    context,
    close: async () => {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Starts the command and waits for the address of its page. */
export async function fanfold(...args) {
  const child = spawn(FANFOLD, args, { cwd: tmpdir(), stdio: ["ignore", "pipe", "pipe"] })
  const said = { out: "", err: "" }
  child.stdout.on("data", (data) => (said.out += data))
  const over = new Promise((resolve) => child.on("close", resolve))
  const url = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`fanfold ${args.join(" ")} did not say the address of its page, but: ${said.err}`)), PATIENCE)
    child.stderr.on("data", (data) => {
      said.err += data
      const address = /look at (\S+)/.exec(said.err)
      if (!address) return
      clearTimeout(late)
      resolve(address[1])
    })
    over.then(() => {
      clearTimeout(late)
      reject(new Error(`fanfold ended without a page: ${said.err}`))
    })
  }).catch((error) => {
    child.kill("SIGKILL")
    throw error
  })
  return {
    url,
    said,
    /** Sends a signal. */
    signal: (name) => child.kill(name),
    /** Ends it as if the machine had lost its power. */
    kill: async () => {
      child.kill("SIGKILL")
      await over
    },
    stop: async () => {
      // Once for a run that goes on, once for the page that stays.
      child.kill("SIGINT")
      const again = setInterval(() => child.kill("SIGINT"), 500)
      const patience = setTimeout(() => child.kill("SIGKILL"), 60_000)
      await over
      clearInterval(again)
      clearTimeout(patience)
    },
  }
}

/** Runs a script to its end and gives what `--json` printed. */
export async function lines(name, args, ...options) {
  const given = ["run", script(name), "--json", "--agents", "scripted", "--args", JSON.stringify(args ?? {}), ...options]
  try {
    return (await run(FANFOLD, given, { cwd: tmpdir(), maxBuffer: 1 << 28 })).stdout
  } catch (error) {
    if (!error.stdout) throw error
    return error.stdout
  }
}

/** A wire to a page that can be cut: connections die, and new ones are refused until it is mended. */
export async function wire(url) {
  const to = new URL(url)
  const open = new Set()
  let whole = true
  const server = createServer((near) => {
    if (!whole) return near.destroy()
    const far = connect(Number(to.port), to.hostname)
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => open.delete(socket))
    }
    near.pipe(far).pipe(near)
    near.on("close", () => far.destroy())
    far.on("close", () => near.destroy())
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  const near = new URL(url)
  near.port = server.address().port
  const cut = () => open.forEach((socket) => socket.destroy())
  return {
    url: near.href,
    cut: () => ((whole = false), cut()),
    mend: () => (whole = true),
    close: () => (server.close(), cut()),
  }
}

/** A page that tells what goes wrong in it. */
export async function open(context, url, options = {}) {
  const page = await context.newPage()
  const faults = []
  page.on("pageerror", (error) => faults.push(String(error)))
  page.on("console", (message) => {
    const text = message.text()
    // That the network is gone is what some tests are about.
    if (message.type() === "error" && !/net::ERR_|401|Failed to load resource/.test(text)) faults.push(text)
  })
  if (options.media) await page.emulateMedia(options.media)
  if (options.size) await page.setViewportSize(options.size)
  await page.goto(url)
  return { page, faults }
}

/** Waits until a condition holds in the page. @param what it is, in words: a failure says it, and what the page shows */
export async function until(page, what, condition, arg) {
  try {
    await page.waitForFunction(condition, arg, { timeout: PATIENCE, polling: 50 })
  } catch (cause) {
    const shown = await page.evaluate(() => [document.title, document.body.innerText].join("\n").slice(0, 2000)).catch((error) => String(error))
    throw new Error(`waited in vain for ${what}. The page shows:\n${shown}`, { cause })
  }
}

/** Waits until the run is in this state. */
export const reaches = (page, word) => until(page, `the run to be "${word}"`, (word) => document.querySelector(".pill")?.textContent === word, word)

/** Waits until so many of the run's agents, or more, are in a state. */
export const counts = (page, n, state) =>
  until(page, `${n} agents to be ${state}`, ([n, state]) => Number(new RegExp(`([\\d,]+) ${state}`).exec(document.querySelector(".overall .counts")?.textContent)?.[1]) >= n, [n, state])

/** Waits until an agent runs, or has run: a slow browser may come too late to see it run. */
export const begins = (page) => page.waitForSelector(".row.agent[data-state=running], .row.agent[data-state=completed]")
