//! What is understood, what is refused, and what is named.

use serde_json::json;

use super::super::OPTION;
use super::references::part;
use super::*;

/// A schema with this as its property `p`.
fn root(property: Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

fn understood(schema: &Value) -> Value {
    normalise(schema, &OPTION).unwrap_or_else(|error| panic!("{error}: {schema}")).schema.into_owned()
}

/// The place of what is refused, and why.
fn refusal(schema: &Value) -> (String, String) {
    match normalise(schema, &OPTION) {
        Ok(normal) => panic!("{schema} is understood as {}", normal.schema),
        Err(error) => (error.path.unwrap(), error.message),
    }
}

#[test]
fn a_schema_of_2020_12_stays_as_it_is() {
    for schema in [
        json!({"type": "object"}),
        json!({"$schema": DRAFT_2020_12, "$id": "https://example.com/s", "type": "object", "$comment": "c"}),
        json!({"type": "object", "properties": {"l": {"type": "array", "prefixItems": [{"const": 1}, true], "items": false,
               "contains": {"type": "integer"}, "minContains": 2}, "r": {"$ref": "#"}}, "required": ["l"]}),
        json!({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": false,
               "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": true}, "propertyNames": {"pattern": "^a"},
               "patternProperties": {"^x": {"not": {"type": "null"}}}, "unevaluatedProperties": false}),
        // Names of properties and data are not keywords.
        json!({"type": "object", "properties": {"nullable": {"type": "string"}, "requierd": {}, "items": {"type": "array"},
               "$ref": {"type": "string"}, "id": {}, "example": {}, "min": {}, "const": {"enum": [1]}, "additionalItems": {}},
               "$defs": {"nullable": {}, "discriminator": true}, "required": ["requierd", "nullable"]}),
        json!({"type": "object", "properties": {"p": {"const": {"nullable": true, "requierd": 1, "$ref": "x"},
               "enum": [{"items": []}], "default": {"id": "x", "type": "strin"}, "examples": [{"min": 1}]}}}),
        json!({"type": "object", "x-order": ["a"], "properties": {"p": {"x-nullable-name": "n", "format": "int64"}}}),
    ] {
        let normal = normalise(&schema, &OPTION).unwrap_or_else(|error| panic!("{error}: {schema}"));
        assert!(matches!(normal.schema, Cow::Borrowed(_)), "{schema}");
        assert_eq!((&*normal.schema, normal.ignored), (&schema, vec![]));
    }
}

#[test]
fn forms_with_one_meaning_are_rewritten() {
    for (written, normal) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
        (json!({"type": ["string", "null"], "nullable": true}), json!({"type": ["string", "null"]})),
        (json!({"type": "string", "x-nullable": true}), json!({"type": ["string", "null"]})),
        (
            json!({"nullable": true, "type": "string", "enum": ["a"]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (json!({"enum": ["a", null], "nullable": true}), json!({"enum": ["a", null]})),
        (json!({"nullable": true, "description": "d"}), json!({"description": "d"})),
        (json!({"const": 1, "nullable": true}), json!({"anyOf": [{"const": 1}, {"type": "null"}]})),
        (
            json!({"nullable": true, "allOf": [{"type": "object", "nullable": true}]}),
            json!({"anyOf": [{"allOf": [{"type": ["object", "null"]}]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "array", "items": [{"type": "integer"}, true], "additionalItems": false}),
            json!({"type": "array", "prefixItems": [{"type": "integer"}, true], "items": false}),
        ),
        (json!({"items": [], "additionalItems": {"type": "null"}}), json!({"items": {"type": "null"}})),
        (
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"], "nullable": false}, "e": []}}),
            json!({"dependentRequired": {"a": ["b"], "e": []}, "dependentSchemas": {"c": {"required": ["d"]}}}),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            json!({"exclusiveMinimum": 1, "maximum": 9}),
        ),
        (json!({"maximum": 9, "exclusiveMaximum": true}), json!({"exclusiveMaximum": 9})),
        (json!({"exclusiveMinimum": false}), json!({})),
        (json!({"example": {"nullable": true}}), json!({"examples": [{"nullable": true}]})),
        (json!({"example": 1, "examples": [2]}), json!({"examples": [2]})),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "null"}),
            json!({"type": "null"}),
        ),
    ] {
        for (outer, inner) in [
            (root(written.clone()), root(normal.clone())),
            (root(json!({"items": written})), root(json!({"items": normal}))),
            (root(json!({"anyOf": [true, written]})), root(json!({"anyOf": [true, normal]}))),
            (
                root(json!({"not": {"patternProperties": {"": written}}})),
                root(json!({"not": {"patternProperties": {"": normal}}})),
            ),
            (
                json!({"type": "object", "$defs": {"nullable": written}}),
                json!({"type": "object", "$defs": {"nullable": normal}}),
            ),
            (
                json!({"type": "object", "definitions": {"a": written}}),
                json!({"type": "object", "definitions": {"a": normal}}),
            ),
        ] {
            assert_eq!(understood(&outer), inner);
            assert_eq!(understood(&inner), inner);
        }
    }
    let draft_07 = json!({"$schema": "https://json-schema.org/draft-07/schema", "id": "s", "type": "object"});
    assert_eq!(understood(&draft_07), json!({"$schema": DRAFT_2020_12, "type": "object"}));
}

#[test]
fn references_go_on_leading_where_they_led() {
    for (at, moved) in [
        ("#", "#"),
        ("#/properties/list/items/1", "#/properties/list/prefixItems/1"),
        ("#/properties/list/items/1/items/0", "#/properties/list/prefixItems/1/prefixItems/0"),
        ("#/properties/list/additionalItems", "#/properties/list/items"),
        ("#/properties/list", "#/properties/list"),
        ("#/properties/maybe", "#/properties/maybe"),
        ("#/properties/maybe/allOf/0", "#/properties/maybe/anyOf/0/allOf/0"),
        ("#/properties/maybe/$defs/a~1b%25", "#/properties/maybe/anyOf/0/$defs/a~1b%25"),
        ("#/dependencies/a", "#/dependentSchemas/a"),
        ("#/components/schemas/A", "#/components/schemas/A"),
        ("#/components/schemas/A/items/0", "#/components/schemas/A/prefixItems/0"),
        ("#/lists/1", "#/lists/1"),
    ] {
        let schema = json!({
            "type": "object",
            "properties": {
                "list": {"items": [true, {"items": [{"const": 1}]}], "additionalItems": {"const": 2}},
                "maybe": {"allOf": [{"const": 3}], "nullable": true, "$defs": {"a/b%": {"const": 4}}},
                "r": {"$ref": at},
                "s": {"$ref": "#/components/schemas/A"},
            },
            "dependencies": {"a": {"const": 5}},
            "components": {"schemas": {"A": {"items": [{"const": 6}], "properties": {"x": {"type": "string", "nullable": true}}}}},
            "lists": [{"nullable": "data"}, {"type": "string", "nullable": true}],
        });
        let normal = normalise(&schema, &OPTION).unwrap();
        let unknown: Vec<_> = normal.ignored.iter().map(|ignored| ignored.path.as_str()).collect();
        let lists = if at == "#/lists/1" { vec![] } else { vec!["schema.lists"] };
        assert_eq!(unknown, lists, "{at}");
        assert_eq!(normal.schema["properties"]["r"], json!({"$ref": moved}), "{at}");
        let a = &normal.schema["components"]["schemas"]["A"];
        assert_eq!(a["properties"]["x"], json!({"type": ["string", "null"]}), "{at}");
        let target = part(&normal.schema, moved).unwrap_or_else(|| panic!("{moved} leads nowhere"));
        let before = part(&schema, at).unwrap();
        assert_eq!(target.get("const"), before.get("const"), "{at}");
        assert_eq!(target.is_boolean(), before.is_boolean(), "{at}");
    }
}

#[test]
fn what_would_be_ignored_and_says_something_of_values_is_refused_by_name() {
    for (property, place, word) in [
        (json!({"additionalItems": false}), "additionalItems", "beside items"),
        (json!({"prefixItems": [true], "additionalItems": false}), "additionalItems", "use items"),
        (json!({"items": true, "additionalItems": false}), "additionalItems", "beside items"),
        (json!({"items": [true], "prefixItems": [true]}), "items", "prefixItems"),
        (json!({"requierd": ["a"]}), "requierd", "did you mean \"required\"?"),
        (json!({"Properties": {"a": {}}}), "Properties", "did you mean \"properties\"?"),
        (json!({"min_length": 3}), "min_length", "did you mean \"minLength\"?"),
        (json!({"emun": ["a"]}), "emun", "did you mean \"enum\"?"),
        (json!({"nullabel": true}), "nullabel", "did you mean \"nullable\"?"),
        (json!({"discriminator": {"propertyName": "a"}}), "discriminator", "const"),
        (json!({"min": 3}), "min", "minimum"),
        (json!({"optional": true}), "optional", "required"),
        (json!({"divisibleBy": 3}), "divisibleBy", "multipleOf"),
        (json!({"extends": {}}), "extends", "allOf"),
        (json!({"disallow": "string"}), "disallow", "not"),
        (json!({"$recursiveRef": "#"}), "$recursiveRef", "$ref"),
        (json!({"$dynamicRef": "#a"}), "$dynamicRef", "$ref"),
        (json!({"id": "#a"}), "id", "properties"),
        (json!({"$id": "b"}), "$id", "leave it out"),
        (json!({"severity": {"type": "integer"}}), "severity", "put it into properties"),
        (json!({"exclusiveMinimum": true}), "exclusiveMinimum", "beside minimum"),
        (json!({"nullable": "yes"}), "nullable", "true or false"),
        (json!({"required": true}), "required", "the object that has it"),
        (json!({"type": "STRING"}), "type", "did you mean \"string\"?"),
        (json!({"type": []}), "type", "a list of types"),
        (json!({"properties": {"a": "string"}}), "properties.a", "must be a schema"),
        (json!({"properties": ["a"]}), "properties", "an object of schemas"),
        (json!({"allOf": []}), "allOf", "one schema or more"),
        (json!({"anyOf": [true, 1]}), "anyOf[1]", "must be a schema"),
        (json!({"additionalProperties": "false"}), "additionalProperties", "must be a schema"),
        (json!({"minLength": "3"}), "minLength", "must be a number"),
        (json!({"enum": "a"}), "enum", "a list of values"),
        (json!({"dependencies": {"a": "b"}}), "dependencies.a", "must be a schema"),
        (json!({"dependencies": {"a": [1]}}), "dependencies.a", "names of properties"),
        (json!({"dependencies": {}, "dependentRequired": {}}), "dependencies", "dependentRequired"),
        (json!({"$ref": "https://example.com/a.json"}), "$ref", "by its place"),
        (json!({"$ref": "#a"}), "$ref", "by its place"),
        (json!({"$ref": "#/$defs/missing"}), "$ref", "which is no schema"),
        (json!({"$ref": "#/properties"}), "$ref", "which is no schema"),
        (json!({"$ref": "#/properties/p/default", "default": {}}), "$ref", "which is no schema"),
        (json!({"$ref": "#/properties/p/note", "note": "x"}), "note", "must be a schema"),
        (json!({"$schema": "https://example.com/draft"}), "$schema", "draft"),
        (json!({"$schema": "http://json-schema.org/draft-03/schema#"}), "$schema", "draft"),
    ] {
        let (outer, message) = refusal(&root(property.clone()));
        assert_eq!(outer, format!("schema.properties.p.{place}"));
        assert!(message.contains(&format!("{outer} ")) && message.contains(word), "{message}");
        let (inner, _) = refusal(&json!({"type": "object", "$defs": {"d": {"oneOf": [root(property)]}}}));
        assert!(inner.starts_with("schema.$defs.d.oneOf[0].properties.p."), "{inner}");
    }
    for (schema, place) in [
        (json!({"type": "object", "nullable": true}), "schema.nullable"),
        (json!({"type": "object", "requierd": ["a"]}), "schema.requierd"),
        (json!({"type": "object", "a": {"type": "string"}}), "schema.a"),
    ] {
        assert_eq!(refusal(&schema).0, place);
    }
}

#[test]
fn what_stands_beside_a_reference_counts_or_is_refused() {
    let schema = |draft: &str, beside: Value| {
        let mut property = json!({"$ref": "#/definitions/a"});
        property.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        let mut schema = json!({"type": "object", "properties": {"p": property}, "definitions": {"a": {"type": "integer"}}});
        schema["$schema"] = draft.into();
        schema
    };
    let [old, new] =
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"];
    for beside in [json!({"minimum": 3}), json!({"items": [true]}), json!({"allOf": [true]})] {
        let (place, message) = refusal(&schema(old, beside.clone()));
        let name = beside.as_object().unwrap().keys().next().unwrap();
        assert_eq!(place, format!("schema.properties.p.{name}"));
        assert!(message.contains("allOf"), "{message}");
        understood(&schema(new, beside));
    }
    let normal = understood(&schema(old, json!({"description": "d", "nullable": true})));
    let expected = json!({"anyOf": [{"$ref": "#/definitions/a", "description": "d"}, {"type": "null"}]});
    assert_eq!(normal["properties"]["p"], expected);
    let root = json!({"$schema": old, "type": "object", "$ref": "#/definitions/a", "definitions": {"a": {}}});
    understood(&root);
}

#[test]
fn what_says_nothing_of_values_is_named() {
    for (property, place, word) in [
        (json!({"markdownDescription": "m"}), "markdownDescription", "is not a keyword"),
        (json!({"descripton": "m"}), "descripton", "did you mean \"description\"?"),
        (json!({"note": "m"}), "note", "is ignored"),
        (json!({"errorMessage": {"nullable": true}}), "errorMessage", "is ignored"),
        (json!({"requierd": "yes"}), "requierd", "did you mean \"required\"?"),
        (json!({"then": {"type": "null"}}), "then", "has no effect without if"),
        (json!({"format": "datetime"}), "format", "did you mean \"date-time\"?"),
        (json!({"minContains": 1}), "minContains", "has no effect without contains"),
    ] {
        let schema = root(property);
        let normal = normalise(&schema, &OPTION).unwrap();
        let [ignored] = &*normal.ignored else { panic!("{:?}", normal.ignored) };
        assert_eq!(ignored.path, format!("schema.properties.p.{place}"));
        assert!(ignored.message.contains(word), "{}", ignored.message);
        assert_eq!(*normal.schema, schema);
    }
    let many: Map<String, Value> =
        (0..1000).map(|n| (n.to_string(), json!({"markdownDescription": n, "then": true}))).collect();
    let schema = json!({"type": "object", "properties": many});
    let ignored = normalise(&schema, &OPTION).unwrap().ignored;
    assert_eq!(ignored.len(), MAX_IGNORED);
}

#[test]
fn work_is_bounded() {
    let many: Map<String, Value> = (0..5_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let (_, message) = refusal(&root(many.into()));
    assert!(message.contains("more than 100 different names"), "{message}");
    let deep = (0..MAX_NESTING).fold(json!({"requierd": []}), |schema, _| json!({"not": schema}));
    let (_, message) = refusal(&root(deep));
    assert!(message.contains("nested deeper than 500 levels"), "{message}");
    let (place, _) = refusal(&json!({"type": "object", "properties": {"x".repeat(50_000): 1}}));
    assert!(place.len() < 2 * MAX_PLACE);
}
