// The hooks for engines that have none: the least that the measured scripts need, without checks, caps or a queue.
// The text is evaluated where the script runs; `ask(prompt)` gives a promise.
export const hooks = `
  const agent = (prompt) => ask(prompt);
  const parallel = (thunks) => Promise.all(thunks.map(async (thunk) => { try { return await thunk() } catch { return null } }));
  const pipeline = (items, ...stages) => Promise.all(items.map(async (item, i) => {
    try { let value = item; for (const stage of stages) value = await stage(value, item, i); return value } catch { return null }
  }));
`
export const body = (script) => `(async () => {${script}\n})()`
