//! Values that leave a script, and what a script says as it throws.

use fanfold::{ErrorCode, Event, RunResult, StartRequest};
use serde_json::{Value, json};

use crate::support::{engine, limits, request, run};

const HEADER: &str = "export const meta = { name: 'test', description: 'a test' }\n";

/// Runs a script that has a header. Its text begins on line 2.
async fn header(script: &str) -> (RunResult, Vec<Event>) {
    let (engine, _) = engine(limits(json!({})));
    run(&engine, StartRequest::new(format!("{HEADER}{script}"))).await.expect("it starts")
}

fn value(result: &RunResult) -> Value {
    serde_json::from_str(result.value.get()).expect("JSON")
}

/// What `JSON.stringify` makes of values in the header dialect, and what is said of each.
#[tokio::test]
async fn a_script_with_a_header_returns_what_json_stringify_takes() {
    let gone = "is undefined and was left out";
    for (script, expected, warnings) in [
        ("return { a: 1, b: undefined }", json!({"a": 1}), vec![format!("b {gone}")]),
        (
            "return { a: { b: [{ c: undefined }] } }",
            json!({"a": {"b": [{}]}}),
            vec![format!("a.b[0].c {gone}")],
        ),
        (
            "return { f() {}, g: class {} }",
            json!({}),
            vec!["f is a function and was left out".into(), "g is a function and was left out".into()],
        ),
        ("return { s: Symbol('s') }", json!({}), vec!["s is a symbol and was left out".into()]),
        (
            "return { [Symbol('s')]: 1, a: 1 }",
            json!({"a": 1}),
            vec!["it has a property whose key is a symbol, which was left out".into()],
        ),
        (
            "return [undefined, () => 1, Symbol('s')]",
            json!([null, null, null]),
            vec![
                "[0] is undefined and became null".into(),
                "[1] is a function and became null".into(),
                "[2] is a symbol and became null".into(),
            ],
        ),
        ("return [1, , 2]", json!([1, null, 2]), vec!["[1] is a hole in the array and became null".into()]),
        (
            "const a = [1]; a.b = 2; return a",
            json!([1]),
            vec!["b is an extra property of an array and was left out".into()],
        ),
        (
            "return { m: 'abc'.match(/b/) }",
            json!({"m": ["b"]}),
            vec!["m.index is an extra".into(), "m.input is an extra".into(), "m.groups is an extra".into()],
        ),
        (
            "return [NaN, Infinity, -Infinity]",
            json!([null, null, null]),
            vec![
                "[0] is NaN and became null".into(),
                "[1] is Infinity and became null".into(),
                "[2] is -Infinity and became null".into(),
            ],
        ),
        ("return [-0, 1e21, 0.1]", json!([0, 1e21, 0.1]), vec![]),
        (
            "return { d: new Date(0) }",
            json!({"d": "1970-01-01T00:00:00.000Z"}),
            vec!["d became what its toJSON() gave".into()],
        ),
        ("return { d: new Date(NaN) }", json!({"d": null}), vec!["d became what its toJSON() gave".into()]),
        (
            "return { u: new URL('http://a/b') }",
            json!({"u": "http://a/b"}),
            vec!["u became what its toJSON() gave".into()],
        ),
        ("return { a: 1, toJSON() { return 5 } }", json!(5), vec!["it became what its toJSON() gave".into()]),
        (
            "return { a: { toJSON(key) { return `under ${key}` } } }",
            json!({"a": "under a"}),
            vec!["a became".into()],
        ),
        (
            "return [{ toJSON(key) { return typeof key + key } }]",
            json!(["string0"]),
            vec!["[0] became".into()],
        ),
        (
            "return { a: { toJSON() {} } }",
            json!({}),
            vec!["a has a toJSON() that gave undefined and was left out".into()],
        ),
        (
            "return { a: { toJSON() { return { toJSON() { return 1 } } } } }",
            json!({"a": {}}),
            vec!["a became".into(), "a.toJSON is a function".into()],
        ),
        ("return { toJSON: 1 }", json!({"toJSON": 1}), vec![]),
        (
            "BigInt.prototype.toJSON = function () { return `${this}` }; return { n: 10n }",
            json!({"n": "10"}),
            vec!["n became what its toJSON() gave".into()],
        ),
        (
            "return { p: Promise.resolve(1) }",
            json!({"p": {}}),
            vec!["p is a promise and became {}: await it".into()],
        ),
        (
            "return { m: new Map([[1, 2]]), s: new Set([1]) }",
            json!({"m": {}, "s": {}}),
            vec![
                "m is a Map, of which JSON takes no entries".into(),
                "s is a Set, of which JSON takes no elements".into(),
            ],
        ),
        (
            "return { e: new Error('lost') }",
            json!({"e": {}}),
            vec!["e is an error, of which JSON takes no message".into()],
        ),
        (
            "return { r: /a/, w: new WeakMap() }",
            json!({"r": {}, "w": {}}),
            vec!["r is an instance".into(), "w is an instance".into()],
        ),
        (
            "return new Uint8Array([7, 8])",
            json!({"0": 7, "1": 8}),
            vec!["it is an instance of a class".into()],
        ),
        (
            "class P { #hidden = 1; x = 1; get y() { return 2 } } return new P()",
            json!({"x": 1}),
            vec!["it is an instance of a class, of which JSON takes its own properties alone".into()],
        ),
        ("return { get a() { return 1 } }", json!({"a": 1}), vec![]),
        (
            "return Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } })",
            json!({"own": 2}),
            vec!["it is an instance".into()],
        ),
        ("return Object.assign(Object.create(null), { a: 1 })", json!({"a": 1}), vec![]),
        (
            "return [new String('s'), new Number(2), new Boolean(false)]",
            json!(["s", 2, false]),
            vec![
                "[0] is an object around a primitive value".into(),
                "[1] is an object around".into(),
                "[2] is an object around".into(),
            ],
        ),
        ("return new Proxy({ a: 1 }, {})", json!({"a": 1}), vec![]),
        (
            "return new Proxy(new Proxy([1, undefined], {}), {})",
            json!([1, null]),
            vec!["[1] is undefined and became null".into()],
        ),
        ("return () => 1", json!(null), vec!["it is a function and became null".into()]),
        ("return Symbol('s')", json!(null), vec!["it is a symbol and became null".into()]),
        ("return undefined", json!(null), vec![]),
        ("return", json!(null), vec![]),
        ("return agent('x')", json!("echo:x"), vec![]),
        (
            "const a = { b: undefined }; return [a, a]",
            json!([{}, {}]),
            vec![format!("[0].b {gone}"), format!("[1].b {gone}")],
        ),
        (
            r#"return { "__proto__": 1, ["__proto__"]: 2, "\ud800": "\ud800" }"#,
            json!({"__proto__": 2, "\u{fffd}": "\u{fffd}"}),
            vec![],
        ),
        (
            "Object.prototype.toJSON = () => 'all'; return { a: 1 }",
            json!("all"),
            vec!["it became what its toJSON() gave".into()],
        ),
    ] {
        let (result, _) = header(script).await;
        assert_eq!(result.error, None, "{script}");
        assert_eq!(value(&result), expected, "{script}");
        assert_eq!(result.warnings.len(), warnings.len(), "{script}: {:?}", result.warnings);
        for (got, wanted) in result.warnings.iter().zip(&warnings) {
            assert!(got.starts_with(&format!("the value returned: {wanted}")), "{script}: {got}");
            assert!(got.ends_with(" (line 2)"), "{script}: {got}");
        }
    }
}

#[tokio::test]
async fn what_json_stringify_refuses_is_refused_with_its_path() {
    for (script, path, says) in [
        ("const a = {}; a.b = { a }; return a", "b.a", "contains itself"),
        ("const a = []; a.push(a); return { a }", "a[0]", "contains itself"),
        ("return { n: 10n }", "n", "is a BigInt"),
        ("return { n: Object(10n) }", "n", "is a BigInt"),
        ("return { get a() { throw new Error('no') } }", "a", r#"its getter threw "no""#),
        ("return { a: { toJSON() { throw new Error('no') } } }", "a", r#"its toJSON() threw "no""#),
        ("return { a: { get toJSON() { throw new Error('no') } } }", "a", r#"its toJSON threw "no""#),
        ("return { a: new Proxy({}, { ownKeys() { throw new Error('no') } }) }", "a", "cannot be read"),
        (
            "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy }",
            "proxy",
            "cannot be read",
        ),
        (
            "let a = {}; for (let i = 0; i < 101; i++) a = { a }; return a",
            "",
            "is nested deeper than 100 levels",
        ),
    ] {
        let (result, _) = header(script).await;
        let error = result.error.expect(script);
        assert_eq!(error.code, Some(ErrorCode::ResultUnserializable), "{script}: {error}");
        assert!(error.message.contains(says), "{script}: {error}");
        assert!(path.is_empty() || error.path.as_deref() == Some(path), "{script}: {error:?}");
    }
}

/// The other form of a script stays strict, whatever a header would allow.
#[tokio::test]
async fn a_script_with_meta_beside_it_is_held_to_plain_data() {
    let (engine, _) = engine(limits(json!({})));
    for (script, path) in [
        ("return { a: undefined }", "a"),
        ("return [NaN]", "[0]"),
        ("return { d: new Date(0) }", "d"),
        ("return { m: new Map() }", "m"),
        ("return { a: 1, toJSON() { return 5 } }", "toJSON"),
        ("return [1, , 2]", "[1]"),
        ("return new Proxy([1], {})", ""),
    ] {
        let (result, _) = run(&engine, request(script)).await.expect("it starts");
        let error = result.error.expect(script);
        assert_eq!(
            (error.code, error.path.as_deref()),
            (Some(ErrorCode::ResultUnserializable), Some(path)),
            "{script}"
        );
    }
    let script = "return await agent('json:{}', { schema: { type: 'object', description: undefined } })";
    let (result, _) = run(&engine, request(script)).await.expect("it starts");
    let error = result.error.expect("it is refused");
    assert_eq!(
        (error.code, error.path.as_deref()),
        (Some(ErrorCode::InvalidArgument), Some("schema.description"))
    );
}

#[tokio::test]
async fn warnings_are_bounded_and_each_is_told_once() {
    let (result, _) = header("return Array.from({ length: 5000 }, (_, i) => ({ i, x: undefined }))").await;
    assert_eq!((result.error, result.warnings.len()), (None, 21));
    assert!(result.warnings[19].contains("[19].x is undefined"), "{:?}", result.warnings);
    assert_eq!(result.warnings[20], "more parts of values were not plain JSON data");

    let many = "
        const schema = { type: 'object', description: undefined }
        for (let i = 0; i < 50; i++) await agent('json:{}', { schema })
        return 1";
    let (result, _) = header(many).await;
    assert_eq!(
        result.warnings,
        ["agent() options: schema.description is undefined and was left out (line 4)"]
    );

    let long = format!("return {{ {}: undefined }}", "x".repeat(100_000));
    let (result, _) = header(&long).await;
    assert!(result.warnings.len() == 1 && result.warnings[0].len() < 500, "{:?}", result.warnings);
}

/// The options of a hook are the script's orders: they are not guessed at, but for what is in a schema.
#[tokio::test]
async fn what_a_hook_is_given_itself_is_checked_and_what_lies_within_is_taken() {
    for (script, says) in [
        ("return await agent('x', { label: () => 1 })", "label is a function"),
        ("return await agent('x', { model: Promise.resolve('m') })", "model is a promise: await it"),
        ("return await agent('x', { timeoutMs: NaN })", "timeoutMs is NaN"),
        ("return await agent('x', { schema: new Map() })", "schema is not a plain object"),
        ("return await agent('x', new Map([['label', 'l']]))", "the value is not a plain object"),
        ("return await agent('x', Promise.resolve({}))", "the value is a promise"),
        ("return await agent(undefined)", "takes a prompt string first"),
        ("return await workflow({ script: () => 1 })", "script is a function"),
        (
            "return await workflow('x', agent('y'))",
            "workflow() args must be plain data: the value is a promise",
        ),
        (
            "return await workflow('x', () => 1)",
            "workflow() args must be plain data: the value is a function",
        ),
        ("return await workflow('x', { n: 1n })", "n is a BigInt"),
        ("log(undefined)", "takes a message string"),
    ] {
        let (result, _) = header(script).await;
        let error = result.error.expect(script);
        assert_eq!(error.code, Some(ErrorCode::InvalidArgument), "{script}: {error}");
        assert!(error.message.contains(says), "{script}: {error}");
    }
    let inner = r#""export const meta = { name: 'inner', description: 'd' }\nreturn { args, u: undefined }""#;
    let script = format!(
        "const input = {{ x: undefined, d: new Date(5) }}\nreturn await workflow({{ script: {inner} }}, input)"
    );
    let (result, _) = header(&script).await;
    assert_eq!(value(&result), json!({"args": {"d": "1970-01-01T00:00:00.005Z"}}));
    assert_eq!(
        result.warnings,
        [
            "workflow {script}: the value returned: u is undefined and was left out (line 2)",
            "workflow() args: x is undefined and was left out (line 3)",
            "workflow() args: d became what its toJSON() gave (line 3)",
        ]
    );
}

#[tokio::test]
async fn what_is_thrown_is_told() {
    for (script, text) in [
        ("throw { message: 'no files to read' }", "no files to read"),
        ("throw { name: 'HttpError', message: 'gone', code: 410 }", "HttpError: gone\n  code: 410"),
        ("throw { message: 'x', cause: { status: 500 } }", "x\n  caused by: {\"status\":500}"),
        ("throw new (class { message = 'of a class'; name = '' })()", "of a class"),
        ("throw { get message() { return 'read' } }", "read"),
        ("throw Object.assign(() => 1, { message: 'of a function' })", "of a function"),
        ("throw 'text'", "text"),
        ("throw 7", "7"),
        ("throw undefined", "undefined"),
        ("throw null", "null"),
        ("throw 10n", "10"),
        ("throw Symbol('s')", "Symbol(s)"),
        ("throw [1, { a: 'b' }]", r#"[1,{"a":"b"}]"#),
        ("throw { code: 1 }", "[object Object]\n  {\"code\":1}"),
        ("throw { message: { text: 'deep' } }", "[object Object]\n  {\"message\":{\"text\":\"deep\"}}"),
        ("throw { message: '', status: 500 }", "[object Object]\n  {\"message\":\"\",\"status\":500}"),
        ("throw Object.create(null)", "[object Object]\n  {}"),
        ("throw { toString() { return 'says this' } }", "says this"),
        ("throw { get message() { throw 1 }, a: 1 }", "[object Object]\n  {\"a\":1}"),
        ("throw new Proxy({ a: 1 }, { get() { throw 1 } })", "[object Object]\n  an object"),
        ("throw { get a() { while (true) {} }, b: 1 }", "[object Object]\n  {\"b\":1}"),
        (
            "throw { a: { b: { c: { d: { e: 1 } } } } }",
            "[object Object]\n  {\"a\":{\"b\":{\"c\":{\"d\":{…}}}}}",
        ),
        ("const a = {}; a.a = a; throw a", "[object Object]\n  {\"a\":{\"a\":{\"a\":{\"a\":{…}}}}}"),
        ("throw Promise.resolve(1)", "[object Promise]"),
    ] {
        let (result, _) = header(script).await;
        let error = result.error.expect(script);
        assert_eq!((error.code, &*error.message), (None, text), "{script}");
    }
}

#[tokio::test]
async fn errors_tell_their_code_and_what_caused_them() {
    for (script, lines) in [
        (
            "throw new Error('a', { cause: new TypeError('b', { cause: 'c' }) })",
            &["Error: a", "  caused by: TypeError: b", "  caused by: c"][..],
        ),
        ("throw Object.assign(new Error('a'), { code: 'ENOENT' })", &["Error: a", "  code: ENOENT"]),
        (
            "throw new AggregateError([new Error('one'), { message: 'two' }], 'all failed')",
            &["AggregateError: all failed", "  error 1: Error: one", "  error 2: two"],
        ),
        (
            "await Promise.any([Promise.reject(new Error('one'))])",
            &["AggregateError", "  error 1: Error: one"],
        ),
        (
            "const e = new Error('a'); e.cause = e; throw e",
            &["Error: a", "  caused by: Error: a", "  caused by: Error: a"],
        ),
        (
            "throw Object.defineProperty(new Error('a'), 'cause', { get() { throw 1 } })",
            &["Error: a", "    at"],
        ),
    ] {
        let (result, _) = header(script).await;
        let error = result.error.expect(script);
        let told: Vec<&str> = error.message.lines().collect();
        assert!(told.len() >= lines.len(), "{script}: {error}");
        for (told, line) in told.iter().zip(lines) {
            assert!(told.starts_with(line), "{script}: {error}");
        }
        // A chain without an end has one.
        assert!(told.len() < 12, "{script}: {error}");
    }
}

/// What is thrown may be of any size, and may run code when it is looked at.
#[tokio::test]
async fn what_is_thrown_is_told_within_bounds() {
    for script in [
        "throw Array.from({ length: 100000 }, (_, i) => ({ i, text: 'x'.repeat(100) }))",
        "throw Object.fromEntries(Array.from({ length: 100000 }, (_, i) => ['k' + i, 'x'.repeat(1000)]))",
        "throw { message: 'x'.repeat(1e6), cause: { message: 'y'.repeat(1e6) } }",
        "throw { deep: [[[['x'.repeat(1e6)]]]], more: 'y'.repeat(1e6) }",
    ] {
        for script in [script.to_owned(), format!("await parallel([() => {{ {script} }}]); return 1")] {
            let (result, _) = header(&script).await;
            let told = result.error.map(|error| error.message).or_else(|| result.warnings.first().cloned());
            let told = told.expect(&script);
            assert!(told.len() < 5000 && told.len() > 10, "{script}: {} bytes", told.len());
        }
    }
}

#[tokio::test]
async fn errors_that_became_null_are_told_without_running_code() {
    let script = "
        let ran = 0
        await parallel([
          () => { throw { message: 'a message', code: 'E1' } },
          () => { throw { status: 500 } },
          () => { throw new Error('outer', { cause: new Error('inner') }) },
          () => { throw { get message() { ran++; return 'x' } } },
          () => { throw new Proxy({}, { get() { ran++ }, getOwnPropertyDescriptor() { ran++ }, ownKeys() { ran++; return [] } }) },
          () => { throw { toJSON() { ran++ }, toString() { ran++ } } },
        ])
        return ran";
    let (result, _) = header(script).await;
    assert_eq!(value(&result), json!(0));
    let told: Vec<&str> =
        result.warnings.iter().map(|warning| warning.split_once(": ").expect("a text").1).collect();
    for (told, wanted) in told.iter().zip([
        "thunks[0] became null: a message\n  code: E1",
        "thunks[1] became null: {\"status\":500}",
        "thunks[2] became null: Error: outer\n  caused by: Error: inner\n    at",
        "thunks[3] became null: {}",
        "thunks[4] became null: an object",
        "thunks[5] became null: {\"toJSON\":a function,\"toString\":a function}",
    ]) {
        assert!(told.starts_with(wanted), "{told}");
    }
    assert_eq!(told.len(), 6);
}

#[tokio::test]
async fn fields_of_meta_that_are_not_known_are_told_with_their_lines() {
    let (engine, _) = engine(limits(json!({})));
    let script = "export const meta = {\n  name: 'n',\n  description: 'd',\n  version: 1,\n  phases: [{ title: 'A', colour: 'red' }],\n}\nreturn 1";
    let (result, _) = run(&engine, StartRequest::new(script)).await.expect("it starts");
    assert_eq!(
        result.warnings,
        [
            "meta.phases[0].colour is not a known field (known: title, detail, provider, model), and is ignored (line 5)",
            "meta.version is not a known field (known: name, description, whenToUse, phases, args), and is ignored (line 4)",
        ]
    );
    let nested = "return await workflow({ script: \"export const meta = { name: 'i', description: 'd', x: 1 }; return 1\" })";
    let (result, _) = header(nested).await;
    assert_eq!(result.warnings.len(), 1);
    assert!(
        result.warnings[0].starts_with("workflow {script}: meta.x is not a known field"),
        "{:?}",
        result.warnings
    );

    let fields: String = (0..1000).map(|i| format!("x{i}: 1, ")).collect();
    let script = format!("export const meta = {{ name: 'n', description: 'd', {fields} }}; return 1");
    let (result, _) = run(&engine, StartRequest::new(script)).await.expect("it starts");
    assert_eq!(result.warnings.len(), 11);
    assert_eq!(result.warnings[10], "meta: 990 more unknown fields are ignored");
}
