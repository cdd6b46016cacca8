// Which rows there are: phases with their agents under them, as far as they are open and asked for. No DOM.

/**
 * @param phases what has started, by index
 * @param planned titles of phases that have not started
 * @param agents by index
 * @param closed phases (by key) whose agents are folded away
 * @param asks `{text, state}`: what is looked for
 */
export function rowsOf({ phases, planned, agents, closed, asks }) {
  const text = asks.text.trim().toLowerCase()
  const wanted = (agent) =>
    (asks.state === "all" || agent.state === asks.state) && (text === "" || agent.label.toLowerCase().includes(text))
  const groups = new Map()
  for (const agent of agents) {
    if (!wanted(agent)) continue
    const key = agent.phase ?? -1
    const group = groups.get(key)
    if (group) group.push(agent)
    else groups.set(key, [agent])
  }
  const filtered = text !== "" || asks.state !== "all"
  const rows = []
  const add = (agents, level) => {
    for (const agent of agents) rows.push({ kind: "agent", key: `a${agent.index}`, level, agent })
  }
  const loose = groups.get(-1) ?? []
  const grouped = phases.length > 0 || planned.length > 0
  if (loose.length > 0 && !grouped) add(loose, 1)
  else if (loose.length > 0) {
    const open = !closed.has(-1)
    rows.push({ kind: "phase", key: "p-1", id: -1, title: null, open, agents: loose })
    if (open) add(loose, 2)
  }
  for (const phase of phases) {
    const members = groups.get(phase.index) ?? []
    if (filtered && members.length === 0) continue
    const open = members.length > 0 && !closed.has(phase.index)
    rows.push({ kind: "phase", key: `p${phase.index}`, id: phase.index, phase, title: phase.title, open, agents: members })
    if (open) add(members, 2)
  }
  if (!filtered) for (const title of planned) rows.push({ kind: "planned", key: `q${title}`, title })
  return rows
}

/** How much time the timeline shows: all of it, in steps, so that it stands still for a while. */
export function span(ms, running) {
  if (!running) return Math.max(ms, 1)
  const steps = [1, 2, 3, 5, 8, 10, 15, 20, 30, 45, 60].map((n) => n * 1000)
  for (let unit = 1; ; unit *= 60) for (const step of steps) if (ms <= step * unit * 0.98) return step * unit
}

/** Times to write under the timeline. */
export function ticks(length, most = 5) {
  const seconds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]
  const step = 1000 * (seconds.find((s) => (length / 1000 / s) <= most) ?? 86400)
  const marks = []
  for (let at = 0; at <= length && marks.length < 50; at += step) marks.push(at)
  return marks
}

/** How many agents ran when: points of a staircase as [time, agents]. */
export function stairs(agents) {
  const changes = []
  for (const { began, ended } of agents) {
    if (began === undefined) continue
    changes.push([began, 1])
    if (ended !== undefined) changes.push([ended, -1])
  }
  // An agent that makes room and the one that takes it do not run at once.
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  const points = []
  let running = 0
  for (const [at, change] of changes) {
    running += change
    if (points.length > 0 && points[points.length - 1][0] === at) points[points.length - 1][1] = running
    else points.push([at, running])
  }
  return points
}
