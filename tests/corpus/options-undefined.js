export const meta = { name: 'options-undefined', description: 'Options that are only sometimes there' }

const cfg = typeof args === 'object' && args !== null ? args : {}
const opts = {
  label: cfg.label,
  model: cfg.model,
  effort: cfg.effort,
  schema: cfg.structured ? { type: 'object', properties: { ok: { type: 'boolean' } } } : undefined,
  isolation: cfg.isolate ? 'worktree' : undefined,
  agentType: undefined,
  phase: undefined,
}
return [await agent('Say whether the build is green.', opts), await agent('And the docs?', { ...opts, label: 'docs' })]
