//! JavaScript values as JSON. What is not plain data is refused with its path or, where a [`Rule`] says so, taken as
//! `JSON.stringify` takes it, with a note of the path. Nothing is dropped or converted in silence.

use std::fmt::Write as _;
use std::iter::Peekable;

use rquickjs::atom::PredefinedAtom;
use rquickjs::function::This;
use rquickjs::object::{Filter, ObjectKeysIter};
use rquickjs::{Atom, Coerced, Ctx, FromJs as _, Function, Object, Type, Value, qjs};

use crate::text;

/// Levels of arrays and objects in a value, the same for args and results. Below what common JSON parsers take
/// (serde_json: 127), so that whatever leaves the sandbox can be read.
pub(crate) const MAX_DEPTH: usize = 100;

/// Bytes that a JSON string has to escape.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped
};

/// Why a value is not plain data.
pub(crate) struct NotJson {
    /// Where, such as `findings[2].title`; empty for the value itself.
    pub(crate) path: String,
    /// A sentence's end: "is a function".
    pub(crate) message: String,
}

/// What was made of a part of a value that is not plain data.
#[derive(Debug, PartialEq)]
pub(crate) struct Repair {
    /// Where, as in [`NotJson`].
    pub(crate) path: String,
    /// A sentence's end: "is undefined and was left out".
    pub(crate) message: String,
}

/// Most repairs that are told of one value; one more says that there are others.
pub(crate) const MAX_REPAIRS: usize = 20;

/// How much of a path is told.
const MAX_PATH_BYTES: usize = 300;

/// What becomes of what is not plain data.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// Properties of the outermost object that are `undefined` count as absent. Elsewhere they are not plain data.
    pub(crate) skip_undefined: bool,
    /// From this level on values are taken as `JSON.stringify` takes them, and before it they are refused. The outermost
    /// value is at level 0.
    pub(crate) stringify_from: usize,
}

impl Rule {
    /// A level that no value has.
    pub(crate) const NEVER: usize = usize::MAX;
}

/// What the writer asks JavaScript.
pub(crate) struct Natives<'js> {
    /// The prototype of plain objects.
    pub(crate) object_prototype: Object<'js>,
    /// The primitive value in an object around one, such as `new String("x")`; any other object as it is.
    pub(crate) unbox: Function<'js>,
}

/// Writes a value as JSON, and says what it made of what is not plain data: nothing unless the rule is to take it as
/// `JSON.stringify` does. That calls `toJSON`, takes the own properties of instances of classes, leaves out what JSON
/// cannot say, and makes `null` of it in arrays. Values that contain themselves and BigInts are refused in any case.
///
/// Getters are read. The same object may appear twice but not inside itself.
pub(crate) fn write<'js>(
    ctx: &Ctx<'js>,
    natives: &Natives<'js>,
    value: &Value<'js>,
    rule: Rule,
) -> Result<(String, Vec<Repair>), NotJson> {
    let mut writer = Writer {
        ctx,
        natives,
        rule,
        json: String::new(),
        path: String::new(),
        ancestors: Vec::new(),
        repairs: Vec::new(),
    };
    let written = match writer.stringifies() {
        true => writer.member(value.clone(), "", "became null").and_then(|value| writer.value_or_null(value)),
        false => writer.value(value),
    };
    match written {
        Ok(()) => Ok((writer.json, writer.repairs)),
        Err(message) => Err(NotJson { path: writer.path, message }),
    }
}

struct Writer<'a, 'js> {
    ctx: &'a Ctx<'js>,
    natives: &'a Natives<'js>,
    rule: Rule,
    json: String,
    /// Where we are; on a failure it stays at the culprit.
    path: String,
    ancestors: Vec<Value<'js>>,
    repairs: Vec<Repair>,
}

impl<'js> Writer<'_, 'js> {
    /// Whether a value that stands here is taken as `JSON.stringify` takes it.
    fn stringifies(&self) -> bool {
        self.ancestors.len() >= self.rule.stringify_from
    }

    /// Notes what became of the value that stands here, once.
    fn note(&mut self, message: impl Into<String>) {
        let path = &self.path[..self.path.floor_char_boundary(MAX_PATH_BYTES)];
        let is_known = self.repairs.last().is_some_and(|repair| repair.path == path);
        if !is_known && self.repairs.len() <= MAX_REPAIRS {
            self.repairs.push(Repair { path: path.into(), message: message.into() });
        }
    }

    /// What `JSON.stringify` takes for the value that stands here under a key: what its `toJSON` gives, if it has one.
    /// None for what it leaves out; `fate` says what that means.
    fn member(&mut self, value: Value<'js>, key: &str, fate: &str) -> Result<Option<Value<'js>>, String> {
        let to_json = self.to_json(&value)?;
        let value = match &to_json {
            Some(to_json) => {
                let gave = to_json.call((This(value), key));
                gave.map_err(|error| self.thrown("its toJSON()", &error))?
            }
            None => value,
        };
        let what = match value.type_of() {
            Type::Undefined | Type::Uninitialized => "undefined",
            Type::Function | Type::Constructor => "a function",
            Type::Symbol => "a symbol",
            _ => {
                if to_json.is_some() {
                    self.note("became what its toJSON() gave");
                }
                return Ok(Some(value));
            }
        };
        let is = if to_json.is_some() { "has a toJSON() that gave" } else { "is" };
        self.note(format!("{is} {what} and {fate}"));
        Ok(None)
    }

    fn to_json(&self, value: &Value<'js>) -> Result<Option<Function<'js>>, String> {
        let found: rquickjs::Result<Value> = match (value.as_object(), value.type_of()) {
            (Some(object), _) => object.get(PredefinedAtom::ToJSON),
            // Scripts that want BigInts in their JSON define it there.
            (None, Type::BigInt) => {
                let prototype = |class: Object<'js>| class.get::<_, Object>(PredefinedAtom::Prototype);
                let class = self.ctx.globals().get("BigInt");
                class.and_then(prototype).and_then(|prototype| prototype.get(PredefinedAtom::ToJSON))
            }
            _ => return Ok(None),
        };
        let found = found.map_err(|error| self.thrown("its toJSON", &error))?;
        Ok(found.as_function().cloned())
    }

    fn value_or_null(&mut self, value: Option<Value<'js>>) -> Result<(), String> {
        match value {
            Some(value) => self.value(&value),
            None => {
                self.json.push_str("null");
                Ok(())
            }
        }
    }

    fn value(&mut self, value: &Value<'js>) -> Result<(), String> {
        match value.type_of() {
            Type::Null => self.json.push_str("null"),
            Type::Bool => self.json.push_str(if value.as_bool() == Some(true) { "true" } else { "false" }),
            Type::Int => {
                let _ = write!(self.json, "{}", value.as_int().unwrap_or_default());
            }
            Type::Float => self.float(value)?,
            Type::String => self.string(value)?,
            Type::Undefined | Type::Uninitialized => return Err("is undefined, which JSON cannot say".into()),
            Type::BigInt => return Err("is a BigInt, which JSON cannot say; convert it to a string".into()),
            Type::Symbol => return Err("is a symbol".into()),
            Type::Promise if !self.stringifies() => return Err("is a promise: await it".into()),
            Type::Function | Type::Constructor => return Err("is a function".into()),
            _ => self.container(value)?,
        }
        Ok(())
    }

    fn float(&mut self, value: &Value<'js>) -> Result<(), String> {
        let number = value.as_float().unwrap_or_default();
        if !number.is_finite() {
            let name = if number.is_nan() {
                "NaN"
            } else if number > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            if !self.stringifies() {
                return Err(format!("is {name}, which JSON cannot say"));
            }
            self.note(format!("is {name} and became null"));
            self.json.push_str("null");
            return Ok(());
        }
        if number == 0.0 {
            self.json.push('0');
            return Ok(());
        }
        let text =
            Coerced::<String>::from_js(self.ctx, value.clone()).map_err(|error| self.unreadable(&error))?;
        self.json.push_str(&text);
        Ok(())
    }

    fn string(&mut self, value: &Value<'js>) -> Result<(), String> {
        let text = text::from_js(self.ctx, value).map_err(|error| self.unreadable(&error))?;
        self.quoted(&text);
        Ok(())
    }

    fn quoted(&mut self, text: &str) {
        self.json.push('"');
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| ESCAPED[byte as usize]) {
            let (plain, escaped) = rest.split_at(at);
            self.json.push_str(plain);
            // What is escaped is ASCII.
            match escaped.as_bytes()[0] {
                b'"' => self.json.push_str("\\\""),
                b'\\' => self.json.push_str("\\\\"),
                b'\n' => self.json.push_str("\\n"),
                b'\r' => self.json.push_str("\\r"),
                b'\t' => self.json.push_str("\\t"),
                0x08 => self.json.push_str("\\b"),
                0x0c => self.json.push_str("\\f"),
                byte => {
                    let _ = write!(self.json, "\\u{byte:04x}");
                }
            }
            rest = &escaped[1..];
        }
        self.json.push_str(rest);
        self.json.push('"');
    }

    fn container(&mut self, value: &Value<'js>) -> Result<(), String> {
        let stringifies = self.stringifies();
        if self.ancestors.contains(value) {
            return Err("contains itself".into());
        }
        if self.ancestors.len() == MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        let Some(object) = value.as_object() else { return Err("is not plain data".into()) };
        let class = self.class(value, object)?;
        if let Some(Class::Other) = class
            && stringifies
            && let Some(primitive) = self.unboxed(value)?
        {
            self.note("is an object around a primitive value and became that value");
            return self.value(&primitive);
        }
        match class {
            Some(class) if stringifies => self.note(class.became()),
            Some(class) => return Err(class.is().into()),
            None => {}
        }
        match object.own_keys::<Atom>(Filter::new().symbol().enum_only()).next() {
            None => {}
            Some(Ok(_)) if stringifies => {
                self.note("has a property whose key is a symbol, which was left out");
            }
            Some(Ok(_)) => return Err("has a property whose key is a symbol".into()),
            Some(Err(error)) => return Err(self.unreadable(&error)),
        }
        self.ancestors.push(value.clone());
        if let Some(array) = value.as_array() {
            let keys = Some(object.own_keys::<Atom>(Filter::default()).peekable());
            self.array(array.len(), keys, stringifies, |i| array.get(i))?;
        } else if stringifies && is_proxied_array(value) {
            // What it says may be no number.
            let length = object.get::<_, Coerced<f64>>(PredefinedAtom::Length);
            let length = length.map_err(|error| self.unreadable(&error))?.0 as usize;
            let no_keys: Option<Peekable<ObjectKeysIter<'js, Atom<'js>>>> = None;
            self.array(length, no_keys, stringifies, |i| object.get(i as u32))?;
        } else {
            self.object(object)?;
        }
        self.ancestors.pop();
        Ok(())
    }

    /// The primitive value in an object around one.
    fn unboxed(&self, value: &Value<'js>) -> Result<Option<Value<'js>>, String> {
        let unboxed: Value =
            self.natives.unbox.call((value.clone(),)).map_err(|error| self.unreadable(&error))?;
        Ok((!unboxed.is_object()).then_some(unboxed))
    }

    /// Writes the elements of an array, or of what stands for one. `keys` are its own ones: none where nothing is said
    /// of holes and of properties beside the elements.
    fn array(
        &mut self,
        length: usize,
        mut keys: Option<Peekable<ObjectKeysIter<'js, Atom<'js>>>>,
        stringifies: bool,
        get: impl Fn(usize) -> rquickjs::Result<Value<'js>>,
    ) -> Result<(), String> {
        self.json.push('[');
        let outer = self.path.len();
        for i in 0..length {
            let _ = write!(self.path, "[{i}]");
            if let Some(keys) = &mut keys {
                // Own keys come in ascending order, indices first.
                let is_own =
                    keys.peek().is_some_and(|key| key.as_ref().is_ok_and(|key| index(key) == Some(i)));
                if is_own {
                    keys.next();
                } else if stringifies {
                    self.note("is a hole in the array and became null");
                } else if let Some(Err(error)) = keys.next() {
                    return Err(self.unreadable(&error));
                } else {
                    return Err("is a hole in the array".into());
                }
            }
            if i > 0 {
                self.json.push(',');
            }
            let value = get(i).map_err(|error| self.unreadable(&error))?;
            if self.stringifies() {
                let value = self.member(value, &i.to_string(), "became null")?;
                self.value_or_null(value)?;
            } else {
                self.value(&value)?;
            }
            self.path.truncate(outer);
        }
        for key in keys.into_iter().flatten() {
            let key = key.map_err(|error| self.unreadable(&error))?;
            let name = self.key(&key)?;
            self.step(&name);
            if !stringifies {
                return Err("is an extra property of an array".into());
            }
            self.note("is an extra property of an array and was left out");
            self.path.truncate(outer);
        }
        self.json.push(']');
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>) -> Result<(), String> {
        let skips = self.ancestors.len() == 1 && self.rule.skip_undefined;
        let stringifies = self.stringifies();
        let outer = self.path.len();
        let mut first = true;
        self.json.push('{');
        for key in object.own_keys::<Atom>(Filter::default()) {
            let key = key.map_err(|error| self.unreadable(&error))?;
            let name = self.key(&key)?;
            self.step(&name);
            let value: Value = object.get(key).map_err(|error| self.unreadable(&error))?;
            let value = match stringifies {
                true => self.member(value, &name, "was left out")?,
                false => Some(value).filter(|value| !(skips && value.is_undefined())),
            };
            if let Some(value) = value {
                if !first {
                    self.json.push(',');
                }
                first = false;
                self.quoted(&name);
                self.json.push(':');
                self.value(&value)?;
            }
            self.path.truncate(outer);
        }
        self.json.push('}');
        Ok(())
    }

    /// What an object is an instance of, unless it is an array or plain.
    fn class(&self, value: &Value<'js>, object: &Object<'js>) -> Result<Option<Class>, String> {
        if value.is_array() {
            return Ok(None);
        }
        let prototype = object.get_prototype();
        if self.ctx.has_exception() {
            return Err(self.unreadable(&rquickjs::Error::Exception));
        }
        if prototype.is_none_or(|prototype| prototype == self.natives.object_prototype) {
            return Ok(None);
        }
        Ok(Some(match value.type_of() {
            Type::Promise => Class::Promise,
            Type::Exception => Class::Error,
            // A stand-in for an array: JSON.stringify takes it for one.
            Type::Proxy if self.stringifies() && is_proxied_array(value) => return Ok(None),
            _ if is(value, qjs::JS_IsMap) => Class::Map,
            _ if is(value, qjs::JS_IsSet) => Class::Set,
            _ => Class::Other,
        }))
    }

    fn key(&self, key: &Atom<'js>) -> Result<String, String> {
        let key = key.to_value().map_err(|error| self.unreadable(&error))?;
        text::from_js(self.ctx, &key).map_err(|error| self.unreadable(&error))
    }

    fn step(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// What to say of an error that a getter or a proxy threw; it is caught.
    fn unreadable(&self, error: &rquickjs::Error) -> String {
        self.thrown("its getter", error)
    }

    /// The same of what else the script's code threw.
    fn thrown(&self, what: &str, error: &rquickjs::Error) -> String {
        if !error.is_exception() {
            return format!("cannot be read: {error}");
        }
        let thrown = self.ctx.catch();
        match thrown.as_exception().and_then(|exception| exception.message()) {
            Some(message) => format!("cannot be read: {what} threw {message:?}"),
            None => format!("cannot be read: {what} threw"),
        }
    }
}

/// What an object is an instance of, as far as that changes what is said of it.
enum Class {
    Promise,
    Error,
    Map,
    Set,
    Other,
}

impl Class {
    /// Why it is refused.
    fn is(&self) -> &'static str {
        match self {
            Self::Promise => "is a promise: await it",
            _ => "is not a plain object: it is an instance of a class",
        }
    }

    /// What became of it.
    fn became(&self) -> &'static str {
        match self {
            Self::Promise => "is a promise and became {}: await it",
            Self::Error => "is an error, of which JSON takes no message: return its message",
            Self::Map => "is a Map, of which JSON takes no entries: return Object.fromEntries(map)",
            Self::Set => "is a Set, of which JSON takes no elements: return [...set]",
            Self::Other => "is an instance of a class, of which JSON takes its own properties alone",
        }
    }
}

/// Whether a value is a proxy of an array, maybe by way of other proxies.
fn is_proxied_array(value: &Value<'_>) -> bool {
    let mut value = value.clone();
    while value.is_proxy() {
        // SAFETY: the context is alive, and the value is a proxy; what it stands for is null once it was revoked.
        value = unsafe {
            let target = qjs::JS_GetProxyTarget(value.ctx().as_raw().as_ptr(), value.as_raw());
            Value::from_raw(value.ctx().clone(), target)
        };
    }
    value.is_array()
}

/// Asks QuickJS of which kind a value is.
fn is(value: &Value<'_>, kind: unsafe extern "C" fn(qjs::JSValue) -> bool) -> bool {
    // SAFETY: the functions that are given look at the value's kind and nothing else.
    unsafe { kind(value.as_raw()) }
}

fn index(key: &Atom<'_>) -> Option<usize> {
    let value = key.to_value().ok()?;
    match value.as_int() {
        Some(index) => usize::try_from(index).ok(),
        None => value.as_string()?.to_string().ok()?.parse().ok(),
    }
}
