export const meta = {
  name: "options-worktree",
  description: "Applies fixes side by side, each in a worktree of its own",
  phases: [{ title: "Fix", detail: "one agent per ticket" }, { title: "Collect" }],
}

const tickets = args.tickets
phase("Fix")
const fixes = await parallel(
  tickets.map((t) => () =>
    agent(`Fix ${t.id}: ${t.title}. Commit on a branch named fix/${t.id}.`, {
      label: `fix ${t.id}`,
      phase: "Fix",
      isolation: "worktree",
      agentType: "general-purpose",
      schema: {
        type: "object",
        properties: { branch: { type: "string" }, testsPass: { type: "boolean" }, notes: { type: "string" } },
        required: ["branch", "testsPass"],
      },
    }),
  ),
)
phase("Collect")
const done = fixes.filter(Boolean)
return { fixed: done.filter((f) => f.testsPass).length, branches: done.map((f) => f.branch), failed: tickets.length - done.length }
