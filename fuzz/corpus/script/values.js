const seen = new Map([[{}, Symbol("s")]]), made = Object.create(null)
made.__proto__ = { get a() { return [1.5, -0, "\ud800", new Date(0).toJSON(), Math.random()] } }
for (const [key] of seen) made[typeof key] = /^(a|b)*?$/u.exec("abab")?.index ?? 10n ** 20n
function* twice(x) { yield x; yield* [x, `${x}`] }
return { ...made, list: [...twice(1)], typed: Array.from(new Uint8Array(3)) }
