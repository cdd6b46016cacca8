//! Single operations that take for ever: each ends in time, with a code or an error of the script's own.

use fanfold::ErrorCode::{MemoryLimit, StackLimit, TimeLimit};

use super::on_both_runtimes;
use super::row::{Row, check, row};

/// What a script writes in a line and a processor works on for long.
const OPERATIONS: &[(&str, &str)] = &[
    ("a regular expression that backtracks", "/^(a+)+$/.test('a'.repeat(40) + '!')"),
    ("a regular expression with alternatives", "/^(a|a?)+$/.test('a'.repeat(40) + '!')"),
    ("a regular expression over a long text", "/(.*)*b/.test('a'.repeat(50000))"),
    ("a regular expression with nested counts", "/((a{1000}){1000}){1000}/.test('a'.repeat(1e6))"),
    ("joining holes", "new Array(1e9) + ''"),
    ("joining holes with text", "Array(1e8).join('abc')"),
    ("sorting", "for (;;) Array.from({ length: 3e5 }, (_, i) => (i * 7919) % 300017).sort()"),
    ("repeating", "'x'.repeat(2 ** 29).length + 'y'.repeat(2 ** 29).length"),
    ("repeating what is wide", "'ж'.repeat(2 ** 29)"),
    ("padding", "'x'.padEnd(2 ** 29, 'ab')"),
    ("squaring an integer", "let n = 3n; for (;;) n *= n"),
    ("a power", "3n ** 100000000n"),
    ("shifting an integer", "for (;;) 1n << 1000000n"),
    ("writing a long integer", "for (;;) (7n ** 200000n).toString()"),
    ("reading a long integer", "for (;;) BigInt('9'.repeat(300000))"),
    ("filling bytes", "for (;;) new Uint8Array(200 << 20).fill(1)"),
    ("filling bytes again", "const b = new Uint8Array(8 << 20); for (;;) b.fill(1)"),
    (
        "a buffer that grows",
        "const b = new ArrayBuffer(8, { maxByteLength: 2 ** 30 }); for (let n = 8; ; n *= 2) b.resize(n)",
    ),
    ("an array of a length", "Array.from({ length: 2 ** 32 - 1 })"),
    ("filling an array", "Array(1e9).fill(0)"),
    ("searching a length", "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)"),
    ("reversing a length", "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })"),
    ("shifting a length", "const a = []; a[2 ** 32 - 2] = 1; for (;;) a.unshift(1)"),
    ("removing from the front", "const a = Array(2e5).fill(0); for (;;) { a.push(a.shift()) }"),
    (
        "joining what refers to itself",
        "const a = []; for (let i = 0; i < 40; i++) a.push(a.slice()); String(a)",
    ),
    ("writing what grows", "let v = [1]; for (let i = 0; i < 40; i++) v = [v, v]; JSON.stringify(v)"),
    ("replacing", "'a'.repeat(1e6).replace(/a/g, '$&'.repeat(1000))"),
    ("replacing all with all", "'a'.repeat(1e5).replaceAll('a', \"$'\")"),
    ("splitting", "for (;;) 'x,'.repeat(1e5).split(',')"),
    ("searching text in text", "for (;;) ('a'.repeat(1e5) + 'b').indexOf('a'.repeat(5e4) + 'c')"),
    ("decoding", "for (;;) decodeURIComponent('%41'.repeat(1e5))"),
    ("normalising", "for (;;) '\\u0344'.repeat(1e5).normalize('NFD')"),
    ("a code unit at a time", "let s = ''; for (;;) s = s.slice(1) + 'x'.repeat(1000)"),
    ("spreading", "Math.max(...Array(1e8).fill(0))"),
    ("flattening", "let v = [1]; for (let i = 0; i < 40; i++) v = [v, v]; v.flat(Infinity)"),
    ("grouping", "Object.groupBy({ *[Symbol.iterator]() { for (let i = 0; ; i++) yield i } }, (n) => n)"),
    ("compiling code", "for (;;) (0, eval)(`(${'1+'.repeat(10000)}1)`)"),
    ("compiling regular expressions", "for (let i = 0; ; i++) new RegExp(`(${'a|'.repeat(10000)}${i})`)"),
    ("registering symbols", "for (let i = 0; ; i++) Symbol.for(`k${i}`)"),
    ("throwing", "for (;;) try { null.x } catch {}"),
    ("finalisers", "const r = new FinalizationRegistry(() => {}); for (;;) r.register({}, 1)"),
];

/// The same, refused by JavaScript itself: too long, too large, too many.
const REFUSED: &[(&str, &str, &str)] = &[
    ("doubling a text", "let s = 'x'; for (;;) s += s", "InternalError: string too long"),
    ("repeating too often", "'x'.repeat(2 ** 31)", "RangeError"),
    ("shifting too far", "1n << (1n << 40n)", "RangeError"),
    ("a buffer that is too large", "new ArrayBuffer(2 ** 31)", "RangeError"),
    ("an array that is too long", "new Array(2 ** 32)", "RangeError"),
    ("an array from too much", "Array.from({ length: 2 ** 40 })", "RangeError"),
    ("too many arguments", "Math.max.apply(null, { length: 1e9 })", "RangeError"),
    (
        "waiting for shared memory",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "ReferenceError: Atomics",
    ),
];

pub(super) fn rows() -> Vec<Row> {
    let stopped =
        OPERATIONS.iter().map(|(name, script)| row(4, name, *script).fails(TimeLimit).fails(MemoryLimit));
    let refused =
        REFUSED.iter().map(|(name, script, error)| row(4, name, *script).throws(error).fails(MemoryLimit));
    stopped.chain(refused).collect()
}

/// The same with room for what else ends for want of memory.
fn rows_with_memory() -> Vec<Row> {
    let roomy = |(name, script): &(&'static str, &'static str)| {
        row(4, name, *script)
            .limit("maxMemoryBytes", 256 << 20)
            .fails(TimeLimit)
            .fails(MemoryLimit)
            .fails(StackLimit)
    };
    OPERATIONS.iter().filter(|(_, script)| !script.contains("for (;;)")).map(roomy).collect()
}

async fn operations_that_take_for_ever_are_stopped() {
    check(rows()).await;
}

async fn operations_that_take_for_ever_are_stopped_with_much_memory_too() {
    check(rows_with_memory()).await;
}

on_both_runtimes! {
    4: operations_that_take_for_ever_are_stopped,
    4: operations_that_take_for_ever_are_stopped_with_much_memory_too,
}
