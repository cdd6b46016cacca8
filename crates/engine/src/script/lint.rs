//! What a run would ignore or refuse, where the text alone tells it.
//!
//! This looks at tokens. It does not know what a variable holds, so options that are put together elsewhere go
//! unseen; and it says nothing of a name that the script uses for something of its own.

use std::collections::{HashMap, HashSet};

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::{Map, Value};

use super::names::{self, absent};
use super::source::Source;
use super::tokens::{Kind, Tokens};
use super::{Dialect, literal};
use crate::agent_types::AgentTypes;
use crate::options;
use crate::schema::{Ignored, Schemas};
use crate::subagents::AgentOptions;

/// Nobody reads more.
pub(super) const MAX_WARNINGS: usize = 100;

/// Finds them, in the order of the text.
pub(super) fn find(
    source: &Source,
    body: &str,
    dialect: Dialect,
    types: Option<&dyn AgentTypes>,
) -> Vec<WorkflowError> {
    let tokens = Tokens::scan(body);
    let lint = Lint {
        source,
        own: names::own(&tokens),
        asked: names::asked(&tokens),
        constants: constants(&tokens),
        tokens,
        dialect,
        types,
    };
    let mut found = Vec::new();
    let mut constants = HashSet::new();
    for at in 0..lint.tokens.list.len() {
        if found.len() >= MAX_WARNINGS {
            break;
        }
        lint.global(at, &mut found);
        lint.call(at, &mut constants, &mut found);
    }
    for at in names::unknown(&lint.tokens, dialect) {
        lint.unknown(at, &mut found);
    }
    found.sort_by_key(|warning| (warning.line, warning.column));
    found.truncate(MAX_WARNINGS);
    found
}

struct Lint<'a> {
    source: &'a Source,
    tokens: Tokens<'a>,
    /// Names that the script gives a meaning of its own, somewhere.
    own: HashSet<&'a str>,
    /// Names of which the script asks whether they are there: what follows `typeof` or `globalThis.`.
    asked: HashSet<&'a str>,
    /// Where the objects are that constants hold, by the tokens of their braces.
    constants: HashMap<&'a str, usize>,
    dialect: Dialect,
    types: Option<&'a dyn AgentTypes>,
}

impl Lint<'_> {
    /// A global that scripts do not have.
    fn global(&self, at: usize, found: &mut Vec<WorkflowError>) {
        let tokens = &self.tokens;
        let (before, name, after) = (self.before(at), tokens.word(at), tokens.word(at + 1));
        if tokens.list[at].kind != Kind::Word
            || matches!(before, "." | "?." | "typeof")
            || self.own.contains(name)
            || self.asked.contains(name)
        {
            return;
        }
        let used = before == "new" || matches!(after, "(" | "." | "?.");
        if name == "import" && after == "(" {
            let message =
                "import() finds no modules: a script is one file; put the code that you need into the script";
            found.push(self.at(at, WorkflowError::thrown(message)));
        } else if let Some(why) = absent(name, self.dialect).filter(|_| used && !names::is_method(tokens, at))
        {
            found.push(self.at(at, WorkflowError::thrown(format!("{name} is not defined in scripts {why}"))));
        }
    }

    /// A name that nothing gives a meaning, and of which nothing more is known.
    fn unknown(&self, at: usize, found: &mut Vec<WorkflowError>) {
        let name = self.tokens.word(at);
        let meant = names::meant(name, &self.own, self.dialect).unwrap_or_default();
        let message = format!("{name} is not defined {meant}");
        found.push(self.at(at, WorkflowError::thrown(message.trim_end())));
    }

    /// The options of a call of `agent()`, as far as they are written there.
    fn call(&self, at: usize, constants: &mut HashSet<usize>, found: &mut Vec<WorkflowError>) {
        let tokens = &self.tokens;
        let is_call =
            tokens.list[at].kind == Kind::Word && tokens.word(at) == "agent" && tokens.word(at + 1) == "(";
        if !is_call || matches!(self.before(at), "." | "?." | "function") || self.own.contains("agent") {
            return;
        }
        let open = at + 1;
        let close = tokens.list[open].pair.unwrap_or(tokens.list.len());
        let comma = self.comma(open + 1, close);
        let Some(brace) = comma.map(|comma| comma + 1).filter(|at| tokens.word(*at) == "{") else { return };
        let Some(end) = tokens.list[brace].pair.filter(|end| matches!(tokens.word(end + 1), ")" | ","))
        else {
            return;
        };
        let mut key = brace + 1;
        while key < end {
            self.option(key, constants, found);
            key = self.comma(key, end).map_or(end, |comma| comma + 1);
        }
    }

    /// The first comma from a token on that is in no bracket which begins there.
    fn comma(&self, mut at: usize, end: usize) -> Option<usize> {
        while at < end && self.tokens.word(at) != "," {
            at = self.tokens.list[at].pair.filter(|pair| *pair > at).unwrap_or(at) + 1;
        }
        (at < end).then_some(at)
    }

    fn option(&self, key: usize, constants: &mut HashSet<usize>, found: &mut Vec<WorkflowError>) {
        let tokens = &self.tokens;
        let text = tokens.word(key);
        let name = match tokens.list[key].kind {
            Kind::Word => text,
            Kind::Text if !text.contains('\\') && text.len() >= 2 => &text[1..text.len() - 1],
            // Spread or computed.
            _ => return,
        };
        let after = tokens.word(key + 1);
        if !matches!(after, ":" | "," | "}") {
            return;
        }
        let value = (after == ":").then_some(key + 2);
        let ends = |at: usize| matches!(tokens.word(at), "," | "}");
        if value.is_some_and(|value| tokens.word(value) == "undefined" && ends(value + 1))
            || name.starts_with('_')
        {
            return;
        }
        if !options::KNOWN.contains(&name) {
            if let Err(error) = check(name, Value::Null) {
                found.push(self.at(key, error));
            }
            return;
        }
        let constant = |at: usize| self.constants.get(tokens.word(at)).copied();
        let place = match value {
            Some(value) if tokens.list[value].kind == Kind::Word && ends(value + 1) => {
                constant(value).or(Some(value))
            }
            Some(value) => Some(value),
            None => constant(key),
        };
        let Some(place) = place else { return };
        // What a constant is has been told where it was used first.
        let is_constant = value != Some(place);
        if is_constant && !constants.insert(place) {
            return;
        }
        let Some(value) = self.literal(place, name) else { return };
        if name == "agentType"
            && let (Some(types), Some(name)) = (self.types, value.as_str())
            && types.find(name).is_none()
        {
            let message = format!("nobody defines the agentType {name:?}: {}", types.how_to_define());
            found.push(self.at(place, ErrorCode::AgentStart.error(message)));
        }
        match check(name, value) {
            Err(error) => found.push(self.at(place, error)),
            Ok(options) => {
                for Ignored { path, message } in options.validator.iter().flat_map(|schema| schema.ignored())
                {
                    let warning = WorkflowError::thrown(format!("agent() option {path} {message}"));
                    found.push(self.at(place, warning.on(path)));
                }
            }
        }
    }

    /// The value that begins with a token, if it is a literal as a whole.
    fn literal(&self, at: usize, name: &str) -> Option<Value> {
        let (value, end) = literal::read(self.source, self.tokens.list[at].start, name).ok()?;
        let next = self.tokens.list.partition_point(|token| token.start < end);
        let ends = match self.tokens.list.get(next) {
            None => true,
            Some(token) => matches!(self.tokens.word(next), "," | "}" | ";" | ")") || token.new_line,
        };
        ends.then_some(value)
    }

    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.tokens.word(before))
    }

    fn at(&self, token: usize, error: WorkflowError) -> WorkflowError {
        let (line, column) = self.source.place(self.tokens.list[token].start);
        error.at(line, column)
    }
}

/// What the engine says of an option, alone.
fn check(name: &str, value: Value) -> Result<AgentOptions, WorkflowError> {
    let options = Value::Object(Map::from_iter([(name.to_owned(), value)]));
    options::parse(&options.to_string(), &Schemas::default()).map(|(options, _)| options)
}

/// Constants that are objects, if their names are given once.
fn constants<'a>(tokens: &Tokens<'a>) -> HashMap<&'a str, usize> {
    let mut constants = HashMap::new();
    let mut twice = HashSet::new();
    for at in 0..tokens.list.len() {
        if !matches!(tokens.word(at), "const" | "let" | "var") {
            continue;
        }
        let name = tokens.word(at + 1);
        let is_object =
            tokens.word(at) == "const" && tokens.word(at + 2) == "=" && tokens.word(at + 3) == "{";
        if constants.contains_key(name) || !is_object {
            twice.insert(name);
        } else {
            constants.insert(name, at + 3);
        }
    }
    constants.retain(|name, _| !twice.contains(name));
    constants
}
