export const meta = { name: 'args-array', description: 'The arguments are a list' }

if (!Array.isArray(args) || args.length === 0) throw new Error('pass a list of issue numbers')
const triaged = await pipeline(
  args,
  (n) => agent(`Triage issue #${n}.`, { label: `triage #${n}`, schema: { type: 'object', properties: { label: { type: 'string' } } } }),
  (t, n, i) => ({ n, i, label: t?.label ?? 'unknown' }),
)
return triaged
