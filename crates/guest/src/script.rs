//! Source text to bytecode, bytecode to a function.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rquickjs::{Ctx, Function, Result, Value, qjs};

use crate::fanfold::workflow::types::SyntaxError;

/// What stack frames call the script.
const FILE: &core::ffi::CStr = c"workflow";

/// A script is the body of an async function.
const BODY: [&str; 2] = ["(async () => {\n\n", "\n})"];

/// A second wrapper, closed in a way that excludes the first: text that leaves one of them early, by a brace of
/// its own, does not parse in the other.
const METHOD: [&str; 2] = ["(class { async run() {\n\n", "\n} })"];

/// The largest text that is parsed as a block: QuickJS takes time that is quadratic in a block's functions.
const MAX_BLOCK_BYTES: usize = 32 << 10;

/// Compiles a script without running any of it.
pub(crate) fn compile(ctx: &Ctx<'_>, source: &str) -> core::result::Result<Vec<u8>, SyntaxError> {
    // Text without a brace leaves no wrapper.
    let may_leave = source.contains('}');
    if may_leave && source.len() <= MAX_BLOCK_BYTES {
        let [open, close] = block(source);
        if let Ok(function) = parse(ctx, [&open, &close], source) {
            return Ok(write(ctx, &function));
        }
        // That may be an error of the block alone. What is wrong with a script is told as of a body.
        drop(ctx.catch());
    }
    let function = parse(ctx, BODY, source).map_err(|_| syntax_error(ctx))?;
    if may_leave {
        parse(ctx, METHOD, source).map_err(|_| syntax_error(ctx))?;
    }
    Ok(write(ctx, &function))
}

/// A wrapper that tells in one parse what the other two tell together, for nearly every script: `break` at its end
/// names a block, so the text must not have closed it, or must have opened another one by a name that is a hash of all of
/// the text. The empty `const` keeps the end from belonging to what the text began, such as `if (x)`.
///
/// In a block, two functions of one name are an error.
fn block(source: &str) -> [String; 2] {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let name = format!("s{:016x}", hasher.finish());
    [format!("(async () => {{ {name}: {{\n\n"), format!("\nconst {{}} = 0; break {name} }} }})")]
}

/// The function that `compile` made, ready to be called.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, program: &[u8]) -> Result<Function<'js>> {
    // SAFETY: bytecode is trusted by contract: the host runs only what `compile` gave it. The context is alive
    // and the slice outlives the call.
    let loaded = unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = qjs::JS_READ_OBJ_BYTECODE as i32;
        let compiled = qjs::JS_ReadObject(raw, program.as_ptr(), program.len() as qjs::size_t, flags);
        if qjs::JS_IsException(compiled) {
            return Err(rquickjs::Error::Exception);
        }
        // Takes the compiled object over.
        value(ctx, qjs::JS_EvalFunction(raw, compiled))?
    };
    loaded.get()
}

/// Compiles a wrapped script. The wrapper's opening takes the lines before the author's line 1.
fn parse<'js>(ctx: &Ctx<'js>, [open, close]: [&str; 2], source: &str) -> Result<Value<'js>> {
    // QuickJS wants a terminating NUL that it does not count; others in the text are just characters.
    let text = [open, source, close, "\0"].concat();
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_STRICT | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    let mut options = qjs::JSEvalOptions {
        version: qjs::JS_EVAL_OPTIONS_VERSION as i32,
        eval_flags: flags as i32,
        filename: FILE.as_ptr(),
        // Zero would mean one.
        line_num: -1,
    };
    // SAFETY: text and options outlive the call, and the context is alive.
    unsafe {
        let length = text.len() as qjs::size_t - 1;
        let compiled = qjs::JS_Eval2(ctx.as_raw().as_ptr(), text.as_ptr().cast(), length, &raw mut options);
        value(ctx, compiled)
    }
}

/// Bytecode with positions, for stack traces, and without source text.
fn write<'js>(ctx: &Ctx<'js>, compiled: &Value<'js>) -> Vec<u8> {
    let flags = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE;
    let mut length: qjs::size_t = 0;
    // SAFETY: the value belongs to the context; QuickJS gives `length` bytes that are copied, then freed.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let start = qjs::JS_WriteObject(raw, &raw mut length, compiled.as_raw(), flags as i32);
        assert!(!start.is_null(), "compiled code can be written");
        let bytecode = std::slice::from_raw_parts(start, length as usize).to_vec();
        qjs::js_free(raw, start.cast());
        bytecode
    }
}

/// Takes over what QuickJS returned; an exception stays pending.
///
/// # Safety
/// `raw` must be a value of this context that nobody else frees.
unsafe fn value<'js>(ctx: &Ctx<'js>, raw: qjs::JSValue) -> Result<Value<'js>> {
    // SAFETY: by the contract of this function.
    unsafe {
        if qjs::JS_IsException(raw) {
            return Err(rquickjs::Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), raw))
    }
}

/// The pending exception as a syntax error. Its line is on the first line of its stack,
/// `    at workflow:LINE:COLUMN`; the column there is of wherever the parser last looked back to.
fn syntax_error(ctx: &Ctx<'_>) -> SyntaxError {
    let thrown = ctx.catch();
    let exception = thrown.as_exception();
    let message =
        exception.and_then(|e| e.message()).unwrap_or_else(|| "the script cannot be compiled".into());
    let stack = exception.and_then(|e| e.stack()).unwrap_or_default();
    let line = stack.lines().next().and_then(|frame| frame.rsplit(':').nth(1)?.parse().ok());
    SyntaxError { message, line: line.unwrap_or(1) }
}
