//! JavaScript values as strict JSON: what is not plain data is refused with its path, nothing is dropped or
//! converted in silence.

use std::fmt::Write as _;

use rquickjs::object::Filter;
use rquickjs::{Array, Atom, Coerced, Ctx, FromJs as _, Object, Type, Value};

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

/// What to do with properties of the outermost object that are `undefined`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RootUndefined {
    /// They count as absent.
    Skip,
    /// They are refused, as everywhere else.
    Refuse,
}

/// Writes a value as JSON.
///
/// Getters are read, `toJSON` is not called, the same object may appear twice but not inside itself.
pub(crate) fn write<'js>(
    ctx: &Ctx<'js>,
    object_prototype: &Object<'js>,
    value: &Value<'js>,
    root_undefined: RootUndefined,
) -> Result<String, NotJson> {
    let mut writer = Writer {
        ctx,
        object_prototype,
        root_undefined,
        json: String::new(),
        path: String::new(),
        ancestors: Vec::new(),
    };
    match writer.value(value) {
        Ok(()) => Ok(writer.json),
        Err(message) => Err(NotJson { path: writer.path, message }),
    }
}

struct Writer<'a, 'js> {
    ctx: &'a Ctx<'js>,
    object_prototype: &'a Object<'js>,
    root_undefined: RootUndefined,
    json: String,
    /// Where we are; on a failure it stays at the culprit.
    path: String,
    ancestors: Vec<Value<'js>>,
}

impl<'js> Writer<'_, 'js> {
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
            Type::Promise => return Err("is a promise: await it".into()),
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
            return Err(format!("is {name}, which JSON cannot say"));
        }
        if number == 0.0 {
            self.json.push('0');
            return Ok(());
        }
        let text =
            Coerced::<String>::from_js(self.ctx, value.clone()).map_err(|error| self.thrown(&error))?;
        self.json.push_str(&text);
        Ok(())
    }

    fn string(&mut self, value: &Value<'js>) -> Result<(), String> {
        let text = text::from_js(self.ctx, value).map_err(|error| self.thrown(&error))?;
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
        if self.ancestors.contains(value) {
            return Err("contains itself".into());
        }
        if self.ancestors.len() == MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        let Some(object) = value.as_object() else { return Err("is not plain data".into()) };
        match object.own_keys::<Atom>(Filter::new().symbol().enum_only()).next() {
            None => {}
            Some(Ok(_)) => return Err("has a property whose key is a symbol".into()),
            Some(Err(error)) => return Err(self.thrown(&error)),
        }
        self.ancestors.push(value.clone());
        match value.as_array() {
            Some(array) => self.array(array)?,
            None => self.object(object)?,
        }
        self.ancestors.pop();
        Ok(())
    }

    fn array(&mut self, array: &Array<'js>) -> Result<(), String> {
        let mut keys = array.as_object().own_keys::<Atom>(Filter::default());
        self.json.push('[');
        let outer = self.path.len();
        for i in 0..array.len() {
            let _ = write!(self.path, "[{i}]");
            // Own keys come in ascending order, indices first.
            let key = keys.next().transpose().map_err(|error| self.thrown(&error))?;
            if key.and_then(|key| index(&key)) != Some(i) {
                return Err("is a hole in the array".into());
            }
            if i > 0 {
                self.json.push(',');
            }
            let value: Value = array.get(i).map_err(|error| self.thrown(&error))?;
            self.value(&value)?;
            self.path.truncate(outer);
        }
        if let Some(key) = keys.next() {
            let key = key.map_err(|error| self.thrown(&error))?;
            let name = self.key(&key)?;
            self.step(&name);
            return Err("is an extra property of an array".into());
        }
        self.json.push(']');
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>) -> Result<(), String> {
        let prototype = object.get_prototype();
        if self.ctx.has_exception() {
            return Err(self.thrown(&rquickjs::Error::Exception));
        }
        if prototype.is_some_and(|prototype| prototype != *self.object_prototype) {
            return Err("is not a plain object: it is an instance of a class".into());
        }
        let is_root = self.ancestors.len() == 1;
        let outer = self.path.len();
        let mut first = true;
        self.json.push('{');
        for key in object.own_keys::<Atom>(Filter::default()) {
            let key = key.map_err(|error| self.thrown(&error))?;
            let name = self.key(&key)?;
            self.step(&name);
            let value: Value = object.get(key).map_err(|error| self.thrown(&error))?;
            if !(is_root && value.is_undefined() && self.root_undefined == RootUndefined::Skip) {
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

    fn key(&self, key: &Atom<'js>) -> Result<String, String> {
        let key = key.to_value().map_err(|error| self.thrown(&error))?;
        text::from_js(self.ctx, &key).map_err(|error| self.thrown(&error))
    }

    fn step(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// What to say of an error that a getter or a proxy threw; it is caught.
    fn thrown(&self, error: &rquickjs::Error) -> String {
        if !error.is_exception() {
            return format!("cannot be read: {error}");
        }
        let thrown = self.ctx.catch();
        match thrown.as_exception().and_then(|exception| exception.message()) {
            Some(message) => format!("cannot be read: its getter threw {message:?}"),
            None => "cannot be read: its getter threw".into(),
        }
    }
}

fn index(key: &Atom<'_>) -> Option<usize> {
    let value = key.to_value().ok()?;
    match value.as_int() {
        Some(index) => usize::try_from(index).ok(),
        None => value.as_string()?.to_string().ok()?.parse().ok(),
    }
}
