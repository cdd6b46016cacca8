class Own extends Error { get name() { return "Own" } }
try { await agent("infra:x") } catch (error) { log(error.code + error.message) }
const all = await parallel([() => agent("p"), () => { throw new Own("m", { cause: 1 }) }, async () => agent("startfail:y")])
throw new Own(String(all))
