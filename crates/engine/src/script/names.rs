//! The names of a script: those that it declares, those that it has without that, and those that it lacks.

use std::collections::{HashMap, HashSet};

use super::Dialect;
use super::tokens::{Kind, Role, Tokens};
use crate::closest::closest;

/// What scripts call to have work done.
pub(super) const HOOKS: [&str; 6] = ["agent", "workflow", "parallel", "pipeline", "phase", "log"];

/// The other globals of every script. `tests/it/names.rs` compares them with those of the sandbox.
#[rustfmt::skip]
const GLOBALS: [&str; 66] = [
    "args", "budget",
    "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array",
    "Boolean", "DataView", "Date", "DisposableStack", "Error", "EvalError", "FinalizationRegistry", "Float16Array",
    "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array", "InternalError",
    "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError",
    "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String", "SuppressedError", "Symbol", "SyntaxError", "TypeError",
    "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet",
    "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis", "isFinite",
    "isNaN", "parseFloat", "parseInt", "undefined", "unescape",
];

/// What scripts of the header dialect have besides.
const HEADER: [&str; 5] = ["setTimeout", "clearTimeout", "console", "URL", "URLSearchParams"];

/// Names of its own that a script may have for a misspelled one to be compared with them, and lacking names that are
/// told: texts are large, and comparing names is slow.
const MAX_OWN: usize = 200;
const MAX_UNKNOWN: usize = 20;

/// What every object has, and the global one with them.
#[rustfmt::skip]
const INHERITED: [&str; 12] = [
    "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__", "constructor",
    "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
];

/// Words before `(` or `.` that are no names.
#[rustfmt::skip]
const KEYWORDS: [&str; 44] = [
    "arguments", "async", "await", "break", "case", "catch", "class", "const", "continue",
    "debugger", "default", "delete", "do", "else", "export", "extends", "false", "finally", "for", "function", "get", "if",
    "import", "in", "instanceof", "let", "new", "null", "of", "return", "set", "static", "super", "switch", "this", "throw",
    "true", "try", "typeof", "var", "void", "while", "with", "yield",
];

/// Names that may be the script's own: declared, assigned, parameters or parts of a pattern.
pub(super) fn own<'a>(tokens: &Tokens<'a>) -> HashSet<&'a str> {
    let words = (0..tokens.list.len()).filter(|at| tokens.list[*at].kind == Kind::Word);
    let own = words.filter(|at| {
        let before = at.checked_sub(1).map_or("", |before| tokens.word(before));
        let after = tokens.word(at + 1);
        matches!(before, "const" | "let" | "var" | "function" | "class" | "...")
            || matches!(after, "=>" | "=" | "??=" | "||=" | "&&=")
            || (before == "," && tokens.list.get(at + 1).is_none_or(|after| after.new_line))
            || (matches!(before, "," | "(" | "{" | "[" | ":") && matches!(after, "," | ")" | "}" | "]" | ";"))
    });
    own.map(|at| tokens.word(at)).collect()
}

/// Names of which a script asks whether they are there.
pub(super) fn asked<'a>(tokens: &Tokens<'a>) -> HashSet<&'a str> {
    let asked = (1..tokens.list.len())
        .filter(|at| tokens.word(at - 1) == "typeof" || is_of_the_global_object(tokens, *at));
    asked.map(|at| tokens.word(at)).collect()
}

/// Names that a script uses and nothing gives a meaning: each time they are called, or a property of them is read, and
/// they are nowhere else. The token of each one's first use, in the order of the text.
///
/// Silent where the text is broken, and where it may make names that are not in it.
pub(super) fn unknown(tokens: &Tokens<'_>, dialect: Dialect) -> Vec<usize> {
    let words: Vec<usize> = (0..tokens.list.len()).filter(|at| tokens.list[*at].kind == Kind::Word).collect();
    if tokens.fault.is_some() || words.iter().any(|at| makes_names(tokens, *at)) {
        return Vec::new();
    }
    let mut uses: HashMap<&str, bool> = HashMap::new();
    for at in &words {
        if !is_property(tokens, *at) || is_of_the_global_object(tokens, *at) {
            *uses.entry(tokens.word(*at)).or_insert(true) &= is_use(tokens, *at);
        }
    }
    let unknown = |name: &str| {
        !KEYWORDS.contains(&name)
            && !INHERITED.contains(&name)
            && !name.contains('#')
            && absent(name, dialect).is_none()
            && !globals(dialect).any(|global| global == name)
    };
    let first = words.into_iter().filter(|at| {
        !is_property(tokens, *at) && uses.remove(tokens.word(*at)) == Some(true) && unknown(tokens.word(*at))
    });
    first.take(MAX_UNKNOWN).collect()
}

/// Whether names may come to be here that the text does not spell out.
fn makes_names(tokens: &Tokens<'_>, at: usize) -> bool {
    match tokens.word(at) {
        "eval" | "Function" => true,
        "globalThis" | "this" => tokens.word(at + 1) != ".",
        // The same name can be written in other ways.
        word => word.contains('\\'),
    }
}

/// Whether this is the second half of `globalThis.name` or, at the top of a script, of `this.name`.
fn is_of_the_global_object(tokens: &Tokens<'_>, at: usize) -> bool {
    at.checked_sub(2).is_some_and(|before| matches!(tokens.word(before), "globalThis" | "this"))
}

fn is_property(tokens: &Tokens<'_>, at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| matches!(tokens.word(before), "." | "?."))
}

/// Whether a name is called here or a property of it is read, and it can be nothing else.
fn is_use(tokens: &Tokens<'_>, at: usize) -> bool {
    if is_property(tokens, at) {
        return false;
    }
    let before = at.checked_sub(1).map_or("", |before| tokens.word(before));
    (before == "new" || matches!(tokens.word(at + 1), "(" | "." | "?."))
        // Generators are defined behind a star.
        && !matches!(before, "function" | "class" | "*")
        && !is_method(tokens, at)
}

/// Whether a name is that of a method which is defined here.
pub(super) fn is_method(tokens: &Tokens<'_>, at: usize) -> bool {
    let list = &tokens.list;
    let close = list.get(at + 1).and_then(|open| open.pair);
    close.is_some_and(|close| list.get(close + 1).is_some_and(|brace| brace.role == Role::Function))
        && tokens.word(at + 1) == "("
}

/// All names that scripts have without declaring them.
pub(super) fn globals<'a>(dialect: Dialect) -> impl Iterator<Item = &'a str> {
    let header = HEADER.into_iter().filter(move |_| dialect == Dialect::Header);
    HOOKS.into_iter().chain(GLOBALS).chain(header)
}

/// What to say of a thrown `ReferenceError: … is not defined`: why scripts lack the global, or which name was meant.
pub(super) fn explain<'a>(
    thrown: &str,
    own: impl FnOnce() -> &'a HashSet<&'a str>,
    dialect: Dialect,
) -> Option<String> {
    let fault = thrown.strip_prefix("ReferenceError: ")?;
    if fault.starts_with("could not load module ") {
        return Some(ONE_FILE.into());
    }
    let name = fault.strip_suffix(" is not defined")?;
    match absent(name, dialect) {
        Some(why) => Some(why.into()),
        None => meant(name, own(), dialect),
    }
}

/// A name that is so much like this one that it may be meant, as a question in parentheses.
pub(super) fn meant(name: &str, own: &HashSet<&str>, dialect: Dialect) -> Option<String> {
    let few = own.len() <= MAX_OWN;
    let own = own.iter().copied().filter(move |_| few);
    closest(name, own.chain(globals(dialect))).map(|meant| format!("(did you mean {meant}?)"))
}

const ONE_FILE: &str = "(a script is one file and its sandbox has no modules: put the code that you need into the \
                        script itself)";

/// Why scripts lack a global that people expect, and what to do instead, in parentheses.
pub(super) fn absent(name: &str, dialect: Dialect) -> Option<&'static str> {
    Some(match name {
        "require" | "module" | "exports" => ONE_FILE,
        "process" | "Buffer" | "__dirname" | "__filename" | "Deno" | "Bun" | "fs" | "path" => {
            "(scripts run in a sandbox, not in Node: no files, no environment, no processes; ask an agent to do it)"
        }
        "fetch" | "XMLHttpRequest" | "WebSocket" => "(scripts have no network: ask an agent to fetch it)",
        "window" | "document" | "navigator" | "localStorage" => {
            "(scripts run in a sandbox, not in a browser)"
        }
        "setInterval" | "setImmediate" | "queueMicrotask" => {
            "(scripts have no such timers: await what you wait for)"
        }
        "setTimeout" | "clearTimeout" if dialect == Dialect::Body => {
            "(scripts have no timers: await what you wait for)"
        }
        "console" if dialect == Dialect::Body => "(scripts have no console: use log(\"…\"))",
        _ => return None,
    })
}
