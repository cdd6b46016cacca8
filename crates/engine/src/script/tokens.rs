//! The text as tokens, with its brackets paired.
//!
//! This guesses where JavaScript's grammar alone could know: whether `/` divides, whether `{` begins a block.
//! It serves hints about scripts that do not parse, and hints say nothing where it has guessed wrong.

use super::lex::{self, Cursor, Unclosed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Text,
    Regex,
    /// A template literal without `${}`, or what follows the last one.
    Template,
    /// A part of a template literal that ends in `${`.
    TemplatePart,
    Punct,
    /// A character that means nothing in JavaScript.
    Other,
}

/// What a `{` begins or a `:` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    None,
    Block,
    Function,
    Class,
    Object,
    /// The second half of `a ? b : c`.
    Ternary,
    /// Behind the name of an object's field.
    Field,
    /// Behind a label, a `case` or `default`.
    Label,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether a line begins before it.
    pub(super) new_line: bool,
    pub(super) role: Role,
    /// The bracket that it stands in.
    pub(super) inside: Option<usize>,
    /// Of a bracket: its other half.
    pub(super) pair: Option<usize>,
}

/// The first thing that cannot be right, whatever the script means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Unclosed(Unclosed),
    /// Nothing closes this bracket.
    Open(usize),
    /// This bracket closes nothing.
    Extra(usize),
    /// The first bracket is still open where the second, of another kind, closes.
    Mismatch(usize, usize),
}

/// The tokens of a text up to its first fault.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    pub(super) list: Vec<Token>,
    pub(super) fault: Option<Fault>,
    /// Each `await` that stands in a function that is not async.
    pub(super) misplaced_awaits: Vec<usize>,
}

/// A bracket that is open.
struct Level {
    opener: Option<usize>,
    role: Role,
    /// How many `?` wait for their `:`.
    ternaries: u32,
    /// Whether a `case` waits for its `:`.
    case: bool,
    /// Whether a `class` waits for its `{`.
    class: bool,
    is_async: bool,
    /// Inside the expression that an arrow function returns: whether that function is async.
    arrow: Option<bool>,
}

impl Level {
    fn new(opener: Option<usize>, role: Role, is_async: bool) -> Self {
        Self { opener, role, ternaries: 0, case: false, class: false, is_async, arrow: None }
    }
}

impl<'a> Tokens<'a> {
    /// Scans the body of an async function.
    pub(super) fn scan(text: &'a str) -> Self {
        let mut tokens = Self { text, list: Vec::new(), fault: None, misplaced_awaits: Vec::new() };
        tokens.fault = tokens.fill().err();
        tokens
    }

    fn fill(&mut self) -> Result<(), Fault> {
        let mut cursor = Cursor::new(self.text, 0);
        let mut levels = vec![Level::new(None, Role::Function, true)];
        loop {
            let new_line = cursor.gap().map_err(Fault::Unclosed)?;
            let start = cursor.at;
            let Some(level) = levels.last_mut() else { return Ok(()) };
            let Some(c) = cursor.peek() else {
                return level.opener.map_or(Ok(()), |opener| Err(Fault::Open(opener)));
            };
            let part = level.opener.filter(|at| c == '}' && self.list[*at].kind == Kind::TemplatePart);
            let kind = match part {
                Some(part) => template(&mut cursor, self.list[part].start),
                None => self.token(&mut cursor, c),
            };
            let kind = kind.map_err(Fault::Unclosed)?;
            let inside = level.opener;
            let mut token =
                Token { kind, start, end: cursor.at, new_line, role: Role::None, inside, pair: None };
            let at = self.list.len();
            self.end_arrow(level, &token);
            if part.is_some() {
                self.close(&mut token, at, inside);
                levels.pop();
            } else if kind == Kind::Punct && matches!(c, ')' | ']' | '}') {
                let Some(opener) = inside else { return self.fail(token, Fault::Extra(at)) };
                if !matches!((self.word(opener), c), ("(", ')') | ("[", ']') | ("{", '}')) {
                    return self.fail(token, Fault::Mismatch(opener, at));
                }
                self.close(&mut token, at, inside);
                levels.pop();
            } else if kind == Kind::Word {
                self.note_word(level, self.text_of(&token), at);
            } else if kind == Kind::Punct {
                self.note_punct(level, &mut token);
            }
            token.inside = levels.last().and_then(|level| level.opener);
            self.list.push(token);
            if kind == Kind::TemplatePart || (kind == Kind::Punct && matches!(c, '(' | '[' | '{')) {
                let Some(level) = levels.last_mut() else { return Ok(()) };
                let outer_async = level.arrow.unwrap_or(level.is_async);
                let is_async = match token.role {
                    Role::Function => self.function_is_async(at),
                    // What stands in a class but not in a method is no matter of `await`.
                    Role::Class => true,
                    _ => outer_async,
                };
                level.class &= token.role != Role::Class;
                levels.push(Level::new(Some(at), token.role, is_async));
            }
        }
    }

    fn fail(&mut self, token: Token, fault: Fault) -> Result<(), Fault> {
        self.list.push(token);
        Err(fault)
    }

    fn close(&mut self, token: &mut Token, at: usize, opener: Option<usize>) {
        token.pair = opener;
        if let Some(opener) = opener {
            self.list[opener].pair = Some(at);
        }
    }

    /// Reads one token from its first character on.
    fn token(&self, cursor: &mut Cursor<'a>, c: char) -> Result<Kind, Unclosed> {
        let start = cursor.at;
        if matches!(c, '"' | '\'') {
            cursor.string()?;
            return Ok(Kind::Text);
        }
        if c == '`' {
            return template(cursor, start);
        }
        if c == '#' {
            cursor.next();
            return Ok(if cursor.word().is_empty() { Kind::Other } else { Kind::Word });
        }
        if !cursor.word().is_empty() {
            return Ok(Kind::Word);
        }
        let follows_dot = |c: char| c.is_ascii_digit();
        if c.is_ascii_digit() || (c == '.' && cursor.rest()[1..].starts_with(follows_dot)) {
            cursor.skip_while(|c| c == '.' || lex::continues_word(c));
            return Ok(Kind::Number);
        }
        let last = self.list.len().checked_sub(1);
        if c == '/' && !last.is_some_and(|last| self.ends_operand(last)) {
            cursor.regex()?;
            return Ok(Kind::Regex);
        }
        if OPERATORS.iter().any(|operator| cursor.eat(operator)) {
            return Ok(Kind::Punct);
        }
        cursor.next();
        Ok(if "()[]{};,<>+-*/%&|^!~?:=.@".contains(c) { Kind::Punct } else { Kind::Other })
    }

    /// Ends the expression that an arrow function returns, where the token cannot belong to it.
    fn end_arrow(&self, level: &mut Level, token: &Token) {
        let ended = match self.text_of(token) {
            "," | ";" | ":" => true,
            "?" | "." | "?." | "(" | "[" => false,
            _ => {
                token.new_line
                    && token.kind != Kind::Punct
                    && self
                        .list
                        .len()
                        .checked_sub(1)
                        .is_some_and(|last| self.word(last) == "}" || self.ends_operand(last))
            }
        };
        if ended {
            level.arrow = None;
        }
    }

    fn note_word(&mut self, level: &mut Level, word: &str, at: usize) {
        let before = at.checked_sub(1).map_or("", |last| self.word(last));
        if matches!(before, "." | "?.") {
            return;
        }
        self.note_arrow(level, at);
        match word {
            "case" => level.case = true,
            "class" => level.class = true,
            "await" if !level.arrow.unwrap_or(level.is_async) => self.misplaced_awaits.push(at),
            _ => {}
        }
    }

    fn note_punct(&self, level: &mut Level, token: &mut Token) {
        let at = self.list.len();
        let before = at.checked_sub(1).map_or("", |last| self.word(last));
        let text = self.text_of(token);
        if before == "?" && matches!(text, ":" | "," | ")") {
            // TypeScript's optional parameter.
            level.ternaries = level.ternaries.saturating_sub(1);
        }
        level.class &= text != ":";
        match text {
            "{" => token.role = self.brace(level, at),
            "?" => level.ternaries += 1,
            ";" => level.ternaries = 0,
            ":" if level.ternaries > 0 => {
                level.ternaries -= 1;
                token.role = Role::Ternary;
            }
            ":" if level.role == Role::Object => token.role = Role::Field,
            ":" if std::mem::take(&mut level.case) || before == "default" => token.role = Role::Label,
            ":" if matches!(level.role, Role::Block | Role::Function) => {
                let labels = at
                    .checked_sub(1)
                    .is_some_and(|last| self.list[last].kind == Kind::Word && self.begins_statement(last));
                token.role = if labels { Role::Label } else { Role::None };
            }
            _ => {}
        }
        if text != "{" {
            self.note_arrow(level, at);
        }
    }

    /// Notes that an arrow function's expression begins with the token that comes next.
    fn note_arrow(&self, level: &mut Level, at: usize) {
        if let Some(arrow) = at.checked_sub(1).filter(|last| self.word(*last) == "=>") {
            level.arrow = Some(self.arrow_is_async(arrow));
        }
    }

    /// What a `{` begins that comes next.
    fn brace(&self, level: &Level, at: usize) -> Role {
        let Some(last) = at.checked_sub(1) else { return Role::Block };
        let token = self.list[last];
        match self.word(last) {
            _ if level.class => Role::Class,
            "=>" => Role::Function,
            ")" if self.is_condition(&token) => Role::Block,
            ")" => Role::Function,
            ";" | "{" | "}" => Role::Block,
            ":" if token.role == Role::Label => Role::Block,
            _ if self.ends_operand(last) => Role::Block,
            "else" | "do" | "try" | "finally" => Role::Block,
            _ => Role::Object,
        }
    }

    fn arrow_is_async(&self, arrow: usize) -> bool {
        let parameters = arrow.checked_sub(1).map(|last| self.list[last].pair.unwrap_or(last));
        parameters.and_then(|at| at.checked_sub(1)).is_some_and(|before| self.word(before) == "async")
    }

    /// Whether the function whose body begins with this `{` is async.
    fn function_is_async(&self, brace: usize) -> bool {
        let Some(last) = brace.checked_sub(1) else { return true };
        if self.word(last) == "=>" {
            return self.arrow_is_async(last);
        }
        // async function * name ( … ) {    or    async * name ( … ) {
        let mut before = self.list[last].pair.into_iter().flat_map(|paren| (0..paren).rev().take(4));
        before.any(|at| self.word(at) == "async")
    }

    /// Whether an operand of an expression ends with this token.
    pub(super) fn ends_operand(&self, at: usize) -> bool {
        let token = &self.list[at];
        match token.kind {
            Kind::Number | Kind::Text | Kind::Regex | Kind::Template => true,
            Kind::TemplatePart | Kind::Other => false,
            Kind::Word => {
                let is_name = at.checked_sub(1).is_some_and(|last| matches!(self.word(last), "." | "?."));
                is_name || !PREFIXES.contains(&self.word(at))
            }
            Kind::Punct => match self.word(at) {
                "]" | "++" | "--" => true,
                ")" => !self.is_condition(token),
                "}" => token.pair.is_some_and(|brace| self.list[brace].role == Role::Object),
                _ => false,
            },
        }
    }

    /// Whether a closing parenthesis ends the head of an `if`, a loop or the like.
    fn is_condition(&self, close: &Token) -> bool {
        let Some(word) = close.pair.and_then(|paren| paren.checked_sub(1)) else { return false };
        let before = word.checked_sub(1).map_or("", |last| self.word(last));
        match self.word(word) {
            "if" | "for" | "while" | "switch" | "with" | "catch" => !matches!(before, "." | "?."),
            "await" => before == "for",
            _ => false,
        }
    }

    /// Whether a statement or a class member may begin with this token.
    pub(super) fn begins_statement(&self, at: usize) -> bool {
        let Some(last) = at.checked_sub(1) else { return true };
        match self.word(last) {
            ";" | "{" | "}" | "else" | "do" => true,
            _ if self.list[last].role == Role::Label => true,
            _ => self.list[at].new_line && self.ends_operand(last),
        }
    }

    /// The text of a token; empty when there is none.
    pub(super) fn word(&self, at: usize) -> &'a str {
        self.list.get(at).map_or("", |token| self.text_of(token))
    }

    fn text_of(&self, token: &Token) -> &'a str {
        &self.text[token.start..token.end]
    }
}

/// Words that an operand follows.
pub(super) const PREFIXES: [&str; 25] = [
    "return",
    "typeof",
    "instanceof",
    "in",
    "of",
    "new",
    "delete",
    "void",
    "throw",
    "case",
    "else",
    "do",
    "await",
    "yield",
    "const",
    "let",
    "var",
    "extends",
    "default",
    "try",
    "finally",
    "import",
    "export",
    "function",
    "class",
];

/// Operators of more than one character, longer ones before those they begin with.
const OPERATORS: [&str; 33] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
    "**",
];

/// Skips a part of a template literal from its first character, `` ` `` or `}`, on.
fn template(cursor: &mut Cursor<'_>, start: usize) -> Result<Kind, Unclosed> {
    cursor.next();
    Ok(if cursor.template(start)? { Kind::Template } else { Kind::TemplatePart })
}
