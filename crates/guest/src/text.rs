//! JavaScript strings as well-formed UTF-8.

use rquickjs::{Ctx, Exception, Result, Value, qjs};

/// The text of a JavaScript string, each lone surrogate replaced by U+FFFD: what crosses the boundary is UTF-8.
///
/// # Errors
/// When QuickJS cannot convert the value, which for strings means that memory ran out.
pub(crate) fn from_js<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<String> {
    let mut length = 0usize;
    // SAFETY: the context is alive, the value belongs to it, and `length` outlives the call.
    let start = unsafe { qjs::JS_ToCStringLen(ctx.as_raw().as_ptr(), &raw mut length, value.as_raw()) };
    if start.is_null() {
        return Err(Exception::throw_internal(ctx, "a string could not be read"));
    }
    // SAFETY: QuickJS gave `length` bytes that stay until they are freed below.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    let text = well_formed(bytes);
    // SAFETY: it came from JS_ToCStringLen and is not used again.
    unsafe { qjs::JS_FreeCString(ctx.as_raw().as_ptr(), start) };
    Ok(text)
}

/// QuickJS writes a lone surrogate as the three bytes that UTF-8 would give it if it were a character.
fn well_formed(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => {
                let (good, bad) = bytes.split_at(error.valid_up_to());
                // The check above found these valid.
                text.push_str(&String::from_utf8_lossy(good));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = bad.get(3..).unwrap_or_default();
            }
        }
    }
}
