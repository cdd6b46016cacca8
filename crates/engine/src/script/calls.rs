//! Which hooks a script calls.

use super::names::HOOKS;
use super::tokens::{Kind, Tokens};

/// The hooks that are called by their names, and in how many places.
pub(super) fn count(body: &str) -> Vec<(&'static str, usize)> {
    let tokens = Tokens::scan(body);
    let is_call = |at: usize, hook: &str| {
        tokens.list[at].kind == Kind::Word
            && tokens.word(at) == hook
            && tokens.word(at + 1) == "("
            && !at.checked_sub(1).is_some_and(|before| matches!(tokens.word(before), "." | "?." | "function"))
    };
    let calls = HOOKS.map(|hook| (hook, (0..tokens.list.len()).filter(|at| is_call(*at, hook)).count()));
    calls.into_iter().filter(|(_, calls)| *calls > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_where_the_text_makes_them() {
        let body = "// agent(1)\nconst s = 'agent(2)' + `agent(3) ${await agent(4)}`\nx.log(1); log ('x')\n\
                    await parallel([() => agent(5)]); phase; function pipeline() {}";
        assert_eq!(count(body), [("agent", 2), ("parallel", 1), ("log", 1)]);
    }
}
