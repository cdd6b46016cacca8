//! Where a script returns its value.

use super::lex;
use super::tokens::{Role, Tokens};

/// The `return` statement of the script itself that gave a value with this path, such as `findings[2].title`: the only one
/// there is, or the only one that names where the path begins.
pub(super) fn find(body: &str, path: &str) -> Option<usize> {
    let tokens = Tokens::scan(body);
    let returns: Vec<usize> = (0..tokens.list.len()).filter(|at| is_of_the_script(&tokens, *at)).collect();
    let name = path.split(|c| !lex::continues_word(c)).next().unwrap_or_default();
    let names =
        |at: &usize| (*at..end(&tokens, *at)).any(|at| tokens.word(at).trim_matches(['"', '\'']) == name);
    let found = match &returns[..] {
        [only] => *only,
        _ => only(returns.iter().copied().filter(names))?,
    };
    Some(tokens.list[found].start)
}

/// Whether a `return` statement begins with this token, and not in a function of the script's.
fn is_of_the_script(tokens: &Tokens<'_>, at: usize) -> bool {
    let mut around = std::iter::successors(tokens.list[at].inside, |bracket| tokens.list[*bracket].inside);
    tokens.word(at) == "return"
        && (tokens.begins_statement(at) || tokens.word(at - 1) == ")")
        && around.all(|bracket| tokens.list[bracket].role == Role::Block)
}

/// Where the statement that begins with a token ends at the latest.
fn end(tokens: &Tokens<'_>, start: usize) -> usize {
    let inside = tokens.list[start].inside;
    let ends = |at: &usize| {
        let token = &tokens.list[*at];
        token.inside == inside && (tokens.word(*at) == ";" || tokens.word(*at) == "return")
            || inside.is_some_and(|bracket| tokens.list[bracket].pair == Some(*at))
    };
    (start + 1..tokens.list.len()).find(ends).unwrap_or(tokens.list.len())
}

fn only(mut found: impl Iterator<Item = usize>) -> Option<usize> {
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_returned_where_its_path_is_named() {
        for (body, path, line) in [
            ("return { a: x }", "a", Some(1)),
            ("\nconst f = () => { return 1 }\nreturn f()", "", Some(3)),
            ("if (x) return { a: 1 }\nreturn { b: 2 }", "b.c", Some(2)),
            ("if (x) {\n return { a: 1, 'b': 1 } }\nreturn { c: 2 }", "b[1]", Some(2)),
            ("if (x) return { a: 1 }\nreturn { a: 2 }", "a", None),
            ("if (x) return f()\nreturn g()", "a", None),
            ("for (const a of b) if (a) return a.b\nreturn { c: { return: 1 } }", "c", Some(2)),
            ("class A { f() { return { a: 1 } } }\nfunction g() { return { a: 2 } }", "a", None),
            ("items.map((item) => {\n  return { a: item }\n})\nreturn { a: 1 }", "a", Some(4)),
            ("try {\n  return { a: 1 }\n} finally {}\nreturn null", "a", Some(2)),
            ("", "a", None),
            ("return", "", Some(1)),
        ] {
            let found = find(body, path).map(|at| body[..at].lines().count().max(1) as u32);
            let found = found.map(|line| line + u32::from(body[..find(body, path).unwrap()].ends_with('\n')));
            assert_eq!(found, line, "{body:?} {path}");
        }
    }
}
