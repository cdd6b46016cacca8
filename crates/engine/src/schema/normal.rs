//! Reads a schema as people write them, and gives one that says the same in JSON Schema 2020-12 alone.
//!
//! Earlier drafts and OpenAPI have keywords and forms that 2020-12 ignores, and it ignores misspelt ones: a schema with
//! them would allow what its author forbids. Here, those with one clear meaning are rewritten, those that say which
//! values are valid and would be ignored are refused, and the others are listed for warnings. The result is the only
//! schema that is used afterwards: to check values, to make them, and to ask for them.

mod references;
mod rewrite;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ptr;

use fanfold_types::WorkflowError;
use serde_json::{Map, Value};

pub(super) use self::references::part;
use self::references::{child, tokens};

use super::Origin;
use super::cost::MAX_NESTING;
use super::keywords::{self, Content, FORMATS, Keyword, TYPES};
use crate::closest::closest;

/// The URI of the draft that every schema is rewritten to.
const DRAFT_2020_12: &str = "https://json-schema.org/draft/2020-12/schema";

/// The drafts that are understood, as `$schema` names them, and whether keywords beside `$ref` count in them.
const DRAFTS: [(&str, bool); 5] = [
    ("draft-04", false),
    ("draft-06", false),
    ("draft-07", false),
    ("draft/2019-09", true),
    ("draft/2020-12", true),
];

/// The most different names that are not keywords.
const MAX_UNKNOWN: usize = 100;

/// The most of them that are told.
const MAX_IGNORED: usize = 20;

/// The longest place that is shown, in characters.
const MAX_PLACE: usize = 200;

/// Something in a schema that has no effect on which values are valid, although it may have been meant to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// Its place: `schema.properties.title.maxlen`.
    pub path: String,
    /// Why it is ignored and what was meant, after the place.
    pub message: String,
}

/// A schema that was understood.
pub(super) struct Normal<'a> {
    /// The same by the keywords of 2020-12; as it was where those are all that it has.
    pub(super) schema: Cow<'a, Value>,
    pub(super) ignored: Vec<Ignored>,
}

/// Understands a schema.
///
/// # Errors
/// The code of the origin, with the place of what says something about values that would not be kept.
pub(super) fn normalise<'a>(schema: &'a Value, origin: &'a Origin) -> Result<Normal<'a>, WorkflowError> {
    let mut reader = Reader {
        origin,
        root: schema,
        place: origin.path.into(),
        nesting: 0,
        refs_stand_alone: refs_stand_alone(schema),
        schemas: HashSet::new(),
        references: Vec::new(),
        unknown: Vec::new(),
        ignored: Vec::new(),
        needs_rewriting: false,
    };
    reader.schema(schema)?;
    let containers = reader.follow()?;
    reader.check_unknown(&containers)?;
    let schema =
        if reader.needs_rewriting { Cow::Owned(reader.rewritten(schema)) } else { Cow::Borrowed(schema) };
    Ok(Normal { schema, ignored: reader.ignored })
}

/// Whether the draft that a schema names is one in which keywords beside `$ref` do not count.
fn refs_stand_alone(schema: &Value) -> bool {
    let name = schema.get("$schema").and_then(Value::as_str).and_then(draft);
    name.is_some_and(|(_, beside)| !beside)
}

/// The draft with this URI.
fn draft(uri: &str) -> Option<(&'static str, bool)> {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    let rest = uri.strip_prefix("https://").or(uri.strip_prefix("http://"))?;
    let name = rest.strip_prefix("json-schema.org/")?.strip_suffix("/schema")?;
    DRAFTS.into_iter().find(|(known, _)| *known == name)
}

struct Reader<'a> {
    origin: &'a Origin,
    root: &'a Value,
    /// Where it reads.
    place: String,
    nesting: u32,
    refs_stand_alone: bool,
    /// The schemas that were found, by where they are in memory.
    schemas: HashSet<*const Value>,
    /// The references that were found, with their places.
    references: Vec<(&'a str, String)>,
    /// The names that stand where keywords do and are not keywords.
    unknown: Vec<Unknown<'a>>,
    ignored: Vec<Ignored>,
    /// Whether anything must be rewritten.
    needs_rewriting: bool,
}

/// A name that is not a keyword.
struct Unknown<'a> {
    name: &'a str,
    content: &'a Value,
    place: String,
}

// ── Finding what is there ───────────────────────────────────────────────────────────────────────────────

impl<'a> Reader<'a> {
    fn schema(&mut self, schema: &'a Value) -> Result<(), WorkflowError> {
        if !Content::Schema.fits(schema) {
            return Err(self.refuse(&mismatch(Content::Schema, schema)));
        }
        if !self.schemas.insert(schema) {
            return Ok(());
        }
        let Value::Object(fields) = schema else { return Ok(()) };
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.refuse(&format!("is nested deeper than {MAX_NESTING} levels")));
        }
        for (name, content) in fields {
            self.within(name, |reader| reader.keyword(name, content, schema, fields))?;
        }
        self.nesting -= 1;
        Ok(())
    }

    fn keyword(
        &mut self,
        name: &'a str,
        content: &'a Value,
        schema: &'a Value,
        beside: &'a Map<String, Value>,
    ) -> Result<(), WorkflowError> {
        let Some(keyword) = keywords::keyword(name) else {
            let place = self.shown();
            self.unknown.push(Unknown { name, content, place });
            return Ok(());
        };
        let is_root = ptr::eq(schema, self.root);
        let has_no_effect = self.refs_stand_alone
            && keyword.constrains
            && beside.contains_key("$ref")
            && !matches!(name, "$ref" | "nullable" | "x-nullable")
            && !(is_root && name == "type");
        if has_no_effect {
            let message = "has no effect beside $ref in the draft that $schema names; put the two into allOf, or leave \
                           $schema out";
            return Err(self.refuse(message));
        }
        if self.other_form(name, content, beside)? {
            self.needs_rewriting = true;
            return Ok(());
        }
        if !keyword.content.fits(content) {
            return Err(self.refuse(&mismatch(keyword.content, content)));
        }
        self.must_not_be_ignored(keyword, content, is_root, beside)?;
        match (keyword.content, content) {
            (Content::Schema, schema) => self.schema(schema),
            (Content::List, Value::Array(list)) => self.list(list),
            (Content::Named, Value::Object(named)) => {
                named.iter().try_for_each(|(name, schema)| self.within(name, |reader| reader.schema(schema)))
            }
            _ => Ok(()),
        }
    }

    fn list(&mut self, schemas: &'a [Value]) -> Result<(), WorkflowError> {
        let outer = self.place.len();
        for (at, schema) in schemas.iter().enumerate() {
            self.place.push_str(&format!("[{at}]"));
            self.schema(schema)?;
            self.place.truncate(outer);
        }
        Ok(())
    }

    /// Reads the content of a keyword if it has a form that only other drafts know. Returns whether it has.
    fn other_form(
        &mut self,
        name: &str,
        content: &'a Value,
        beside: &'a Map<String, Value>,
    ) -> Result<bool, WorkflowError> {
        match (name, content) {
            ("items", Value::Array(schemas)) => {
                if beside.contains_key("prefixItems") {
                    return Err(self.refuse("must be one schema beside prefixItems"));
                }
                self.list(schemas)?;
            }
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) => {
                let bound = bound_of(name);
                if *exclusive && !beside.contains_key(bound) {
                    return Err(self.refuse(&format!("must be a number, or true beside {bound}")));
                }
            }
            ("dependencies", Value::Object(dependencies)) => {
                let twice = ["dependentRequired", "dependentSchemas"];
                if let Some(other) = twice.iter().find(|name| beside.contains_key(**name)) {
                    return Err(self.refuse(&format!("must not stand beside {other}, which says the same")));
                }
                for (name, dependency) in dependencies {
                    self.within(name, |reader| match dependency {
                        Value::Array(_) if Content::Names.fits(dependency) => Ok(()),
                        Value::Array(_) => Err(reader.refuse(&mismatch(Content::Names, dependency))),
                        schema => reader.schema(schema),
                    })?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses or lists a keyword that has no effect where it stands, or not the one that it seems to have.
    fn must_not_be_ignored(
        &mut self,
        keyword: &Keyword,
        content: &'a Value,
        is_root: bool,
        beside: &'a Map<String, Value>,
    ) -> Result<(), WorkflowError> {
        const NAMES: &str = "names a part of the schema, which changes what references mean; leave it out, or put it \
                             into properties if it is one";
        let fault = match (keyword.name, content) {
            ("$ref", Value::String(reference)) => {
                if reference != "#" && !reference.starts_with("#/") {
                    let message = "must refer to a part of this schema by its place, as in {\"$ref\": \"#/$defs/name\"}";
                    return Err(self.refuse(message));
                }
                let place = self.shown();
                self.references.push((reference, place));
                None
            }
            ("$dynamicRef", _) => Some("is not supported; use $ref"),
            ("$id" | "id", _) if !is_root => Some(NAMES),
            ("$schema", Value::String(uri)) if draft(uri).is_none() => Some(
                "names a draft that is not known; leave it out for 2020-12, or name draft-04, draft-06, draft-07, \
                 2019-09 or 2020-12 by the URI of its own schema",
            ),
            ("additionalItems", _) if !beside.get("items").is_some_and(Value::is_array) => Some(
                "counts only beside items that are a list, as in draft-07; beside prefixItems, use items",
            ),
            ("nullable" | "x-nullable", Value::Bool(true)) if is_root => Some(
                "cannot be at the root: the answer is an object, and null stands for an agent that failed",
            ),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(self.refuse(fault));
        }
        if let ("format", Some(format)) = (keyword.name, content.as_str())
            && !FORMATS.contains(&format)
            && let Some(meant) = closest(format, FORMATS.into_iter())
        {
            self.ignore(format!("names no format that is checked; did you mean {meant:?}?"));
        }
        if let Some(needs) = keyword.needs.filter(|needs| !beside.contains_key(*needs)) {
            self.ignore(format!("has no effect without {needs}"));
        }
        self.needs_rewriting |= matches!(
            keyword.name,
            "$schema" | "id" | "additionalItems" | "nullable" | "x-nullable" | "example"
        ) && content.as_str() != Some(DRAFT_2020_12);
        Ok(())
    }

    fn within<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<T, WorkflowError>,
    ) -> Result<T, WorkflowError> {
        let outer = self.place.len();
        self.place.push('.');
        self.place.push_str(name);
        let read = read(self)?;
        self.place.truncate(outer);
        Ok(read)
    }

    fn ignore(&mut self, message: String) {
        if self.ignored.len() < MAX_IGNORED {
            self.ignored.push(Ignored { path: self.shown(), message });
        }
    }

    fn refuse(&self, fault: &str) -> WorkflowError {
        self.origin.refuse_at(&self.shown(), fault)
    }

    fn shown(&self) -> String {
        match self.place.char_indices().nth(MAX_PLACE) {
            Some((end, _)) => format!("{}…", &self.place[..end]),
            None => self.place.clone(),
        }
    }
}

fn mismatch(expected: Content, got: &Value) -> String {
    let shown = match got {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string().chars().take(40).collect(),
    };
    let hint = match (expected, got) {
        (Content::Names, Value::Bool(_)) => {
            "; name the property in the required of the object that has it".to_owned()
        }
        (Content::Types, Value::String(name)) => {
            let meant = closest(name, TYPES.into_iter());
            meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
        }
        _ => String::new(),
    };
    format!("must be {}, got {shown}{hint}", expected.expected())
}

fn bound_of(exclusive: &str) -> &'static str {
    if exclusive == "exclusiveMinimum" { "minimum" } else { "maximum" }
}

// ── References and unknown names ────────────────────────────────────────────────────────────────────────

/// Where a reference leads.
enum Target<'a> {
    /// To a schema that was found.
    Schema,
    /// To a place within the content of an unknown name.
    Within { container: &'a Value, target: &'a Value },
    /// To no schema.
    Nowhere,
}

impl<'a> Reader<'a> {
    /// Follows the references that were found, and reads the schemas that stand outside of all keywords, such as those in
    /// `components`. Returns the contents of unknown names that hold such schemas.
    fn follow(&mut self) -> Result<HashSet<*const Value>, WorkflowError> {
        let mut containers = HashSet::new();
        let mut at = 0;
        while let Some((reference, place)) = self.references.get(at).cloned() {
            at += 1;
            match self.target(reference) {
                Target::Schema => {}
                Target::Within { container, target } => {
                    containers.insert(ptr::from_ref(container));
                    self.place = tokens(reference)
                        .fold(self.origin.path.to_owned(), |place, token| place + "." + &token);
                    self.schema(target)?;
                }
                Target::Nowhere => {
                    return Err(self
                        .origin
                        .refuse_at(&place, &format!("refers to {reference:?}, which is no schema")));
                }
            }
        }
        Ok(containers)
    }

    fn target(&self, reference: &str) -> Target<'a> {
        let mut target = self.root;
        let mut container = None;
        for token in tokens(reference) {
            let is_schema = self.schemas.contains(&ptr::from_ref(target));
            let Some(next) = child(target, &token) else { return Target::Nowhere };
            match keywords::keyword(&token) {
                Some(keyword)
                    if is_schema && matches!(keyword.content, Content::Data | Content::DataList) =>
                {
                    return Target::Nowhere;
                }
                None if is_schema => container = Some(next),
                _ => {}
            }
            target = next;
        }
        match container {
            _ if self.schemas.contains(&ptr::from_ref(target)) => Target::Schema,
            Some(container) => Target::Within { container, target },
            None => Target::Nowhere,
        }
    }

    /// Refuses or lists the unknown names, but for those whose content is in `containers`.
    fn check_unknown(&mut self, containers: &HashSet<*const Value>) -> Result<(), WorkflowError> {
        let mut known: HashMap<&str, Option<&Keyword>> = HashMap::new();
        let mut told = HashSet::new();
        for Unknown { name, content, place } in std::mem::take(&mut self.unknown) {
            if let Some(instead) = keywords::instead(name) {
                return Err(self.origin.refuse_at(&place, instead));
            }
            if name.starts_with("x-") || containers.contains(&ptr::from_ref(content)) {
                continue;
            }
            if known.len() == MAX_UNKNOWN && !known.contains_key(name) {
                let message =
                    format!("is one of more than {MAX_UNKNOWN} different names that are not keywords");
                return Err(self.origin.refuse_at(&place, &message));
            }
            let meant = *known.entry(name).or_insert_with(|| keywords::meant(name));
            let did_you_mean =
                meant.map(|meant| format!("; did you mean {:?}?", meant.name)).unwrap_or_default();
            if meant.is_some_and(|meant| meant.constrains && meant.content.fits(content)) {
                return Err(self
                    .origin
                    .refuse_at(&place, &format!("is not a keyword of JSON Schema{did_you_mean}")));
            }
            if content.get("type").is_some_and(|kind| Content::Types.fits(kind)) {
                let message = "is not a keyword of JSON Schema; if it is a property, put it into properties";
                return Err(self.origin.refuse_at(&place, message));
            }
            if told.insert(name) && self.ignored.len() < MAX_IGNORED {
                let message = format!("is not a keyword of JSON Schema, and is ignored{did_you_mean}");
                self.ignored.push(Ignored { path: place, message });
            }
        }
        Ok(())
    }
}
