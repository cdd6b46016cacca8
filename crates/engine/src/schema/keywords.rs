//! The keywords of JSON Schema 2020-12, and those of other drafts and of OpenAPI whose meaning is clear: what each holds,
//! and whether it says which values are valid.

use serde_json::Value;

/// What stands behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A schema.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by names that are not keywords.
    Named,
    /// Any value; nothing in it is a keyword.
    Data,
    /// A list of such values.
    DataList,
    Number,
    Text,
    Flag,
    /// The name of a type, or a list of them.
    Types,
    /// A list of names.
    Names,
    /// Lists of names by names.
    NamesByName,
    /// Whatever the metaschema says.
    Other,
}

impl Content {
    /// Whether this is what must stand there, its parts left aside.
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Schema => value.is_object() || value.is_boolean(),
            Self::List => value.as_array().is_some_and(|list| !list.is_empty()),
            Self::Named => value.is_object(),
            Self::Data | Self::Other => true,
            Self::DataList => value.is_array(),
            Self::Number => value.is_number(),
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Types => match value {
                Value::Array(types) => !types.is_empty() && types.iter().all(is_type),
                only => is_type(only),
            },
            Self::Names => is_names(value),
            Self::NamesByName => value.as_object().is_some_and(|lists| lists.values().all(is_names)),
        }
    }

    /// What must stand there.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Schema => "a schema (an object, true or false)",
            Self::List => "a list of one schema or more",
            Self::Named => "an object of schemas",
            Self::Data | Self::Other => "a value",
            Self::DataList => "a list of values",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Types => "a type, or a list of types",
            Self::Names => "a list of the names of properties",
            Self::NamesByName => "an object of lists of the names of properties",
        }
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// A keyword.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// Whether it can change which values are valid.
    pub(super) constrains: bool,
    /// The keyword that must stand beside it for it to have an effect.
    pub(super) needs: Option<&'static str>,
}

const fn rule(name: &'static str, content: Content) -> Keyword {
    Keyword { name, content, constrains: true, needs: None }
}

const fn beside(needs: &'static str, name: &'static str, content: Content) -> Keyword {
    Keyword { name, content, constrains: true, needs: Some(needs) }
}

const fn note(name: &'static str, content: Content) -> Keyword {
    Keyword { name, content, constrains: false, needs: None }
}

const ALL: [Keyword; 64] = [
    note("$schema", Content::Text),
    note("$id", Content::Text),
    note("$anchor", Content::Text),
    note("$dynamicAnchor", Content::Text),
    note("$vocabulary", Content::Other),
    note("$comment", Content::Text),
    note("$defs", Content::Named),
    rule("$ref", Content::Text),
    rule("$dynamicRef", Content::Text),
    rule("allOf", Content::List),
    rule("anyOf", Content::List),
    rule("oneOf", Content::List),
    rule("not", Content::Schema),
    rule("if", Content::Schema),
    beside("if", "then", Content::Schema),
    beside("if", "else", Content::Schema),
    rule("prefixItems", Content::List),
    rule("items", Content::Schema),
    rule("contains", Content::Schema),
    beside("contains", "maxContains", Content::Number),
    beside("contains", "minContains", Content::Number),
    rule("properties", Content::Named),
    rule("patternProperties", Content::Named),
    rule("additionalProperties", Content::Schema),
    rule("propertyNames", Content::Schema),
    rule("unevaluatedItems", Content::Schema),
    rule("unevaluatedProperties", Content::Schema),
    rule("dependentSchemas", Content::Named),
    rule("dependentRequired", Content::NamesByName),
    rule("type", Content::Types),
    rule("const", Content::Data),
    rule("enum", Content::DataList),
    rule("multipleOf", Content::Number),
    rule("maximum", Content::Number),
    rule("exclusiveMaximum", Content::Number),
    rule("minimum", Content::Number),
    rule("exclusiveMinimum", Content::Number),
    rule("maxLength", Content::Number),
    rule("minLength", Content::Number),
    rule("pattern", Content::Text),
    rule("format", Content::Text),
    rule("maxItems", Content::Number),
    rule("minItems", Content::Number),
    rule("uniqueItems", Content::Flag),
    rule("maxProperties", Content::Number),
    rule("minProperties", Content::Number),
    rule("required", Content::Names),
    note("contentEncoding", Content::Text),
    note("contentMediaType", Content::Text),
    note("contentSchema", Content::Schema),
    note("title", Content::Text),
    note("description", Content::Text),
    note("default", Content::Data),
    note("examples", Content::DataList),
    note("deprecated", Content::Flag),
    note("readOnly", Content::Flag),
    note("writeOnly", Content::Flag),
    // Of earlier drafts.
    note("id", Content::Text),
    note("definitions", Content::Named),
    rule("additionalItems", Content::Schema),
    rule("dependencies", Content::Named),
    // Of OpenAPI.
    rule("nullable", Content::Flag),
    rule("x-nullable", Content::Flag),
    note("example", Content::Data),
];

/// The names of the types.
pub(super) const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// The formats of JSON Schema. Others are not checked, and not warned of: OpenAPI and model APIs have many.
pub(super) const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The keyword with this name.
pub(super) fn keyword(name: &str) -> Option<&'static Keyword> {
    ALL.iter().find(|keyword| keyword.name == name)
}

/// The keyword that an unknown name was probably meant to be: the closest one, by two letters at most and by half of the
/// keyword's own at most.
pub(super) fn meant(name: &str) -> Option<&'static Keyword> {
    let small = name.to_lowercase();
    let near = ALL.iter().filter(|keyword| keyword.name.len().abs_diff(name.len()) <= 2);
    let distances = near.map(|keyword| (strsim::osa_distance(&small, &keyword.name.to_lowercase()), keyword));
    let close = distances.filter(|(distance, keyword)| *distance <= (keyword.name.len() / 2).min(2));
    close.min_by_key(|(distance, _)| *distance).map(|(_, keyword)| keyword)
}

/// What to write instead of a keyword of another draft or language whose meaning cannot be kept.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "discriminator" => {
            "is a keyword of OpenAPI; leave it out, and give each branch a `const` of its own for that property"
        }
        "$recursiveRef" | "$recursiveAnchor" => "is a keyword of draft 2019-09; use {\"$ref\": \"#\"}",
        "divisibleBy" => "is a keyword of draft-03; use multipleOf",
        "disallow" => "is a keyword of draft-03; use not",
        "extends" => "is a keyword of draft-03; use allOf",
        "min" => "is not a keyword; use minimum, minLength or minItems",
        "max" => "is not a keyword; use maximum, maxLength or maxItems",
        "optional" => "is not a keyword; leave the property out of required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_keywords_are_recognised_and_other_words_are_not() {
        for (name, keyword) in [
            ("requierd", Some("required")),
            ("require", Some("required")),
            ("Required", Some("required")),
            ("tpye", Some("type")),
            ("typ", Some("type")),
            ("emun", Some("enum")),
            ("itmes", Some("items")),
            ("min_length", Some("minLength")),
            ("minLenght", Some("minLength")),
            ("additional_properties", Some("additionalProperties")),
            ("addtionalPropertys", None),
            ("anyof", Some("anyOf")),
            ("ref", Some("$ref")),
            ("If", Some("if")),
            ("defualt", Some("default")),
            ("examples", None),
            ("ui", None),
            ("tag", None),
            ("name", None),
            ("propertyOrder", None),
            ("markdownDescription", None),
            ("errorMessage", None),
            ("", None),
        ] {
            let meant = meant(name).filter(|keyword| keyword.name != name).map(|keyword| keyword.name);
            assert_eq!(meant, keyword, "{name}");
        }
    }

    #[test]
    fn every_keyword_stands_once_in_the_table() {
        for keyword in &ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == keyword.name).count(), 1, "{}", keyword.name);
            assert!(keyword.needs.is_none_or(|needs| super::keyword(needs).is_some()), "{}", keyword.name);
        }
    }
}
