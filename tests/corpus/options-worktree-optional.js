export const meta = { name: 'options-worktree-optional', description: 'Isolates only where files are written' }

const steps = [
  { name: 'read', writes: false },
  { name: 'write docs', writes: true },
  { name: 'write tests', writes: true },
]
const out = []
for (const step of steps) {
  out.push(await agent(`Do: ${step.name}`, {
    label: step.name,
    isolation: step.writes ? 'worktree' : undefined,
    stallMs: step.writes ? 300000 : undefined,
  }))
}
return out
