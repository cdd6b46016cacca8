//! Recognises TypeScript among tokens that are no JavaScript.
//!
//! Nothing that is looked for here can stand in a JavaScript program that parses, except in one or two places
//! that nobody writes. What could mean something else besides is not claimed to be TypeScript.

use std::ops::Range;

use super::tokens::{Kind, Role, Tokens};

/// How many tokens a type may have for it to be recognised.
const MAX_TYPE: usize = 64;

/// The first of some tokens that shows TypeScript, and what it shows.
pub(super) fn find(tokens: &Tokens<'_>, range: Range<usize>) -> Option<(usize, &'static str)> {
    range.into_iter().find_map(|at| Some((at, construct(tokens, at)?)))
}

fn construct(t: &Tokens<'_>, at: usize) -> Option<&'static str> {
    let next = t.word(at + 1);
    let next_is_name = is_name(t, at + 1) && !t.list[at + 1].new_line;
    match t.word(at) {
        _ if !matches!(t.list[at].kind, Kind::Word | Kind::Punct) => None,
        word @ ("interface" | "type" | "enum" | "namespace" | "declare" | "abstract") => {
            let begins = t.begins_statement(at) || matches!(before(t, at), "export" | "declare" | "const");
            let behind = t.word(at + 2);
            match word {
                _ if !begins || !next_is_name => None,
                "interface" if matches!(behind, "{" | "extends" | "<") => Some("an interface"),
                "type" if matches!(behind, "=" | "<") => Some("a type"),
                "enum" if behind == "{" => Some("an enum"),
                "namespace" if matches!(behind, "{" | ".") => Some("a namespace"),
                "declare" if DECLARATIONS.contains(&next) => Some("a `declare`"),
                "abstract" if next == "class" => Some("an abstract class"),
                _ => None,
            }
        }
        "as" if asserts(t, at) => Some("an `as`"),
        "satisfies" if asserts(t, at) => Some("a `satisfies`"),
        "implements" if next_is_name && is_name(t, at.checked_sub(1)?) => Some("an `implements`"),
        "private" | "public" | "protected" | "readonly" | "override"
            if next_is_name && begins_member(t, at) =>
        {
            Some("a modifier")
        }
        ":" => annotation(t, at),
        "?" if matches!(next, ":" | "," | ")") && is_name(t, at.checked_sub(1)?) && in_parameters(t, at) => {
            Some("an optional parameter")
        }
        "!" => non_null(t, at).then_some("a non-null `!`"),
        "<" => generics(t, at),
        _ => None,
    }
}

const DECLARATIONS: [&str; 8] = ["const", "let", "var", "function", "class", "module", "global", "namespace"];

fn before<'a>(t: &Tokens<'a>, at: usize) -> &'a str {
    at.checked_sub(1).map_or("", |last| t.word(last))
}

fn is_name(t: &Tokens<'_>, at: usize) -> bool {
    t.list.get(at).is_some_and(|token| token.kind == Kind::Word)
}

fn begins_type(t: &Tokens<'_>, at: usize) -> bool {
    let literal = t.list.get(at).is_some_and(|token| token.kind == Kind::Text);
    literal || is_name(t, at) || matches!(t.word(at), "{" | "[" | "(")
}

/// `value as Type` or `value satisfies Type`.
fn asserts(t: &Tokens<'_>, at: usize) -> bool {
    let Some(last) = at.checked_sub(1) else { return false };
    let behind_value = t.ends_operand(last) || (t.word(last) == "}" && !t.begins_statement(at));
    let is_modifier = matches!(t.word(last), "async" | "static" | "get" | "set");
    behind_value && !is_modifier && !t.list[at].new_line && begins_type(t, at + 1) && t.word(at + 2) != "=>"
}

fn begins_member(t: &Tokens<'_>, at: usize) -> bool {
    t.begins_statement(at)
        || matches!(before(t, at), "(" | "," | "static" | "private" | "public" | "protected")
}

/// What a colon shows that belongs to no `? :`, no object and no label.
fn annotation(t: &Tokens<'_>, at: usize) -> Option<&'static str> {
    if matches!(t.list[at].role, Role::Ternary | Role::Label) || !begins_type(t, at + 1) {
        return None;
    }
    let last = at.checked_sub(1)?;
    // The name or the pattern that is given a type.
    let named = if matches!(t.word(last), "!" | "?") { last.checked_sub(1)? } else { last };
    let pattern = if matches!(t.word(named), "}" | "]") { t.list[named].pair? } else { named };
    if matches!(before(t, pattern), "const" | "let" | "var") {
        return Some("the type of a variable");
    }
    if t.word(last) == ")" {
        let paren = t.list[last].pair?;
        return is_function(t, paren, last).then_some("the type of a result");
    }
    if !is_name(t, named) && pattern == named {
        return None;
    }
    let begins_element = matches!(before(t, pattern), "(" | "," | "...") || begins_member(t, pattern);
    match t.list[at].inside {
        Some(bracket) if t.list[bracket].role == Role::Class && begins_element => Some("the type of a field"),
        Some(_) if in_parameters(t, at) && begins_element => Some("the type of a parameter"),
        _ => None,
    }
}

/// Whether a token stands between the parentheses of a function's parameters.
fn in_parameters(t: &Tokens<'_>, at: usize) -> bool {
    let Some(paren) = t.list[at].inside.filter(|bracket| t.word(*bracket) == "(") else { return false };
    match t.list[paren].pair {
        Some(close) => is_function(t, paren, close),
        None => is_declared(t, paren),
    }
}

/// Whether `function` or `catch` stands before a parenthesis.
fn is_declared(t: &Tokens<'_>, paren: usize) -> bool {
    let mut before = (0..paren).rev().take(3).map(|at| t.word(at));
    match before.next() {
        Some("function" | "catch") => true,
        Some("*") => before.next() == Some("function"),
        Some(_) => before
            .next()
            .is_some_and(|word| word == "function" || (word == "*" && before.next() == Some("function"))),
        None => false,
    }
}

/// Whether parentheses hold the parameters of a function.
fn is_function(t: &Tokens<'_>, paren: usize, close: usize) -> bool {
    if is_declared(t, paren) || t.word(close + 1) == "=>" {
        return true;
    }
    // A type may stand between the parentheses and the arrow or the body.
    let is_typed = t.word(close + 1) == ":" && t.list[close + 1].role != Role::Ternary;
    let behind = (close + 1..t.list.len()).take(MAX_TYPE).map(|at| t.word(at));
    let mut behind = behind.take_while(|word| !matches!(*word, ";" | "return"));
    if is_typed && behind.any(|word| word == "=>") {
        return true;
    }
    let in_members =
        t.list[paren].inside.is_some_and(|at| matches!(t.list[at].role, Role::Class | Role::Object));
    let is_method = paren.checked_sub(1).is_some_and(|name| is_name(t, name) && begins_method(t, name));
    in_members && is_method && (is_typed || t.word(close + 1) == "{")
}

fn begins_method(t: &Tokens<'_>, name: usize) -> bool {
    begins_member(t, name) || matches!(before(t, name), "async" | "*" | "get" | "set")
}

/// `value!` before something that goes on from it.
fn non_null(t: &Tokens<'_>, at: usize) -> bool {
    let Some(last) = at.checked_sub(1) else { return false };
    let touches = t.list[last].end == t.list[at].start;
    let ends = t.list.get(at + 1).is_none_or(|next| next.new_line)
        || matches!(t.word(at + 1), "." | "?." | ";" | "," | ")" | "]" | "}")
        || (is_name(t, last) && matches!(t.word(at + 1), "(" | "["));
    touches && ends && t.ends_operand(last)
}

/// `function f<T>(…)`, `new Map<string, number>(…)`, `<T>(…) => …`.
fn generics(t: &Tokens<'_>, at: usize) -> Option<&'static str> {
    let last = at.checked_sub(1)?;
    let names = before(t, last);
    if is_name(t, last)
        && (matches!(names, "function" | "class" | "extends")
            || (names == "*" && before(t, last - 1) == "function"))
    {
        return Some("type parameters");
    }
    let close = closing_angle(t, at)?;
    if t.word(close + 1) != "(" {
        return None;
    }
    if !t.ends_operand(last) {
        let parameters_end = t.list[close + 1].pair?;
        return is_function(t, close + 1, parameters_end).then_some("type parameters");
    }
    let touches = t.list[last].end == t.list[at].start;
    (touches && is_name(t, last)).then_some("type arguments")
}

/// The token that closes an angle bracket, if what it holds can be types.
fn closing_angle(t: &Tokens<'_>, at: usize) -> Option<usize> {
    let mut depth = 0usize;
    (at..t.list.len()).take(MAX_TYPE).find(|&i| {
        match t.word(i) {
            "<" => depth += 1,
            word if word.bytes().all(|b| b == b'>') => depth = depth.saturating_sub(word.len()),
            // Whatever cannot be part of a type ends the search.
            word if !matches!(word, "," | "." | "[" | "]" | "{" | "}" | ":" | "|" | "&" | "?") => {
                depth += usize::from(!matches!(t.list[i].kind, Kind::Word | Kind::Text)) * MAX_TYPE;
            }
            _ => {}
        }
        depth == 0
    })
}
