//! Syntax errors in better words, with a hint where the text shows what the author meant.
//!
//! QuickJS says what it stumbled over and on which line, but not in which column. Both are found again among the
//! line's tokens. A hint is given only for what is seen there; what QuickJS says stays otherwise.

use std::ops::Range;

use fanfold_types::{ErrorCode, WorkflowError};

use super::lex::{Cursor, Unclosed};
use super::source::Source;
use super::string::{self, JsString};
use super::tokens::{Fault, Kind, PREFIXES, Role, Tokens};
use super::typescript;
use super::words::{MAX_MESSAGE, MAX_NAME, brief, shown};

/// Makes an error of a syntax error that QuickJS reports on a line. `body` is what it was given.
pub(super) fn explain(source: &Source, body: &str, message: &str, line: u32) -> WorkflowError {
    let tokens = Tokens::scan(body);
    let line = line.max(1);
    let range = on_line(source, &tokens, line);
    let report = Report { source, tokens: &tokens, message, line, range };
    let token = report.token();
    let stopped = token.map_or(usize::MAX, |at| tokens.list[at].start);
    let hint = report.hint();
    let earliest = hint.as_ref().map_or(stopped, |(at, _)| *at);
    let fault = report.fault().filter(|(at, _)| *at <= earliest);
    if let Some((at, message)) = fault.or(hint) {
        return source.error(ErrorCode::ScriptParse, at, message);
    }
    if line > source.lines() {
        let (line, column) = source.end();
        return ErrorCode::ScriptParse.error(report.at_the_end()).at(line, column);
    }
    let message = report.in_words(token);
    match token.or(report.range.clone().next()) {
        Some(at) => source.error(ErrorCode::ScriptParse, tokens.list[at].start, message),
        None => ErrorCode::ScriptParse.error(message).at(line, 1),
    }
}

/// The tokens that end on a line.
fn on_line(source: &Source, tokens: &Tokens<'_>, line: u32) -> Range<usize> {
    let start = tokens.list.partition_point(|token| source.line_of(token.end) < line);
    let end = tokens.list.partition_point(|token| source.line_of(token.end) <= line);
    start..end
}

/// What is known of a syntax error.
struct Report<'a> {
    source: &'a Source,
    tokens: &'a Tokens<'a>,
    /// What QuickJS says, and on which line.
    message: &'a str,
    line: u32,
    /// The tokens of the line.
    range: Range<usize>,
}

impl Report<'_> {
    /// What the line shows besides what QuickJS says of it, and where.
    fn hint(&self) -> Option<(usize, String)> {
        let t = self.tokens;
        let start = |at: usize| t.list[at].start;
        let module = || self.range.clone().find_map(|at| Some((start(at), self.module(at)?)));
        let typescript = || {
            let (at, what) = typescript::find(t, self.range.clone())?;
            let message =
                format!("this is TypeScript ({what}); scripts are plain JavaScript, so remove all types");
            Some((start(at), message))
        };
        let misplaced_await = || {
            let at =
                *t.misplaced_awaits.iter().find(|at| self.range.contains(at) && is_operand(t, **at + 1))?;
            let message = "`await` stands in a function that is not async; write `async` before the function";
            Some((start(at), message.to_string()))
        };
        let redeclared = || self.message.contains("redefinition").then(|| self.redeclared())?;
        module().or_else(typescript).or_else(misplaced_await).or_else(redeclared)
    }

    /// What to say of an `import` or `export` statement that begins with a token.
    fn module(&self, at: usize) -> Option<String> {
        let t = self.tokens;
        let next = t.list.get(at + 1);
        let message = match t.word(at) {
            _ if !t.begins_statement(at) => return None,
            "export" if t.word(at + 1) == "const" && t.word(at + 2) == "meta" => {
                "`export const meta` must be the first statement, once: nothing but comments and directives may \
                 stand before it"
            }
            "export" if matches!(t.word(at + 1), "type" | "interface" | "enum" | "declare" | "abstract") => {
                return None;
            }
            "export" => {
                "a script exports nothing but its leading `export const meta = {…}`: remove `export`, and return the \
                 result with `return`"
            }
            "import" if next.is_some_and(|next| matches!(next.kind, Kind::Word | Kind::Text)) => NO_MODULES,
            "import" if matches!(t.word(at + 1), "{" | "*") => NO_MODULES,
            _ => return None,
        };
        Some(message.into())
    }

    /// A fault of the text that explains an error on this line.
    fn fault(&self) -> Option<(usize, String)> {
        let t = self.tokens;
        let token = |at: usize| t.list[at].start;
        let (at, message) = match t.fault? {
            Fault::Unclosed(Unclosed { what, at }) => (at, format!("this {what} is not closed")),
            Fault::Extra(at) if t.word(at) == "}" => {
                (token(at), "this `}` closes nothing: there is a closing brace too many".into())
            }
            Fault::Extra(at) => (token(at), format!("this `{}` closes nothing", t.word(at))),
            Fault::Mismatch(open, close) => {
                let message = format!("{} is not closed before this `{}`", self.bracket(open), t.word(close));
                (token(close), message)
            }
            Fault::Open(_) => return None,
        };
        // QuickJS never gets past it. If it did, the scanner has guessed wrong.
        let line = self.source.line_of(at);
        let plausible = match t.fault? {
            Fault::Unclosed(Unclosed { what: "string" | "regular expression", .. }) => line == self.line,
            Fault::Mismatch(open, _) => (self.source.line_of(token(open))..=line).contains(&self.line),
            _ => line <= self.line,
        };
        plausible.then_some((at, message))
    }

    /// What to say of an error behind the last line, where what encloses the script stands.
    fn at_the_end(&self) -> String {
        if let Some(Fault::Open(at)) = self.tokens.fault {
            return format!("unexpected end of the script: {} is never closed", self.bracket(at));
        }
        if self.message.contains("nexpected ") || self.message.starts_with("expecting") {
            return "unexpected end of the script: its last statement is not finished".into();
        }
        brief(self.message, MAX_MESSAGE)
    }

    /// The innermost bracket around a token that nothing closes.
    fn open_bracket(&self, at: usize) -> Option<usize> {
        let list = &self.tokens.list;
        // Any other fault has ended the scan before the brackets could be closed.
        matches!(self.tokens.fault, Some(Fault::Open(_))).then_some(())?;
        let mut around = std::iter::successors(list[at].inside, |bracket| list[*bracket].inside);
        around.find(|bracket| list[*bracket].pair.is_none())
    }

    fn bracket(&self, at: usize) -> String {
        let token = self.tokens.list[at];
        let (start, text) = match token.kind {
            Kind::TemplatePart => (token.end - "${".len(), "${"),
            _ => (token.start, self.tokens.word(at)),
        };
        let (line, column) = self.source.place(start);
        format!("the `{text}` on line {line}, column {column}")
    }

    /// What is declared on this line, or before it, for the second time.
    fn redeclared(&self) -> Option<(usize, String)> {
        let t = self.tokens;
        let mut declared = std::collections::HashMap::new();
        (1..self.range.end).find_map(|at| {
            let lexical = matches!(t.word(at - 1), "const" | "let" | "class");
            let declares = lexical || matches!(t.word(at - 1), "var" | "function");
            if !declares || t.list[at].kind != Kind::Word || t.word(at) == "extends" {
                return None;
            }
            let first = *declared.entry((t.list[at].inside, t.word(at))).or_insert((at, lexical));
            if first.0 == at || !(first.1 || lexical) {
                return None;
            }
            let line = self.source.line_of(t.list[first.0].start);
            let name = brief(t.word(at), MAX_NAME);
            let mut message = format!("`{name}` is declared already on line {line}; rename one of them");
            if let keyword @ ("const" | "let" | "var") = t.word(at - 1) {
                message.push_str(&format!(", or assign without `{keyword}`"));
            }
            Some((t.list[at].start, message))
        })
    }

    /// The token that the message is about.
    fn token(&self) -> Option<usize> {
        let (t, message) = (self.tokens, self.message);
        let mut range = self.range.clone();
        let behind_operand = |at: usize| at.checked_sub(1).is_some_and(|last| t.ends_operand(last));
        let quoted = message.split_once('\'').and_then(|(_, rest)| Some(rest.rsplit_once('\'')?.0));
        match message {
            "Unexpected number" => return range.find(|&at| t.list[at].kind == Kind::Number),
            "Unexpected string" => return range.find(|&at| t.list[at].kind == Kind::Text),
            "Unexpected string template" => return range.find(|&at| t.list[at].kind == Kind::Template),
            "Unexpected regexp" => return range.find(|&at| t.list[at].kind == Kind::Regex),
            "expecting ';'" => {
                return range.find(|&at| behind_operand(at) && !t.list[at].new_line && ends_statement(t, at));
            }
            "missing initializer for variable" => {
                let declared = |at: usize| at.checked_sub(2).is_some_and(|before| t.word(before) == "const");
                return range.find(|&at| declared(at) && !matches!(t.word(at), "=" | "of" | "in"));
            }
            "invalid number literal" | "Octal literals are not allowed in strict mode" => {
                let refused = |at: usize| string::number(t.word(at)).is_err();
                return range.find(|&at| t.list[at].kind == Kind::Number && refused(at));
            }
            "variable name expected" => {
                return self.missing_name(&["const", "let", "var", ","], &["[", "{"]);
            }
            "function name expected" => return self.missing_name(&["function", "*"], &["*", "("]),
            "missing formal parameter" => return self.missing_name(&["(", ","], &["[", "{", "...", ")"]),
            "expecting field name" => return self.missing_name(&[".", "?."], &["(", "["]),
            "invalid property name" => return self.missing_name(&["{", ","], &["[", "...", "}", "*"]),
            _ if message.contains(" escape sequence") => {
                let cursor = |at: usize| Cursor::new(t.text, t.list[at].start);
                let refused = |at: usize| JsString::default().read(&mut cursor(at)).is_err();
                return range.find(|&at| t.list[at].kind == Kind::Text && refused(at));
            }
            _ if quoted == Some("")
                || message.contains("character")
                || message == "Invalid or unexpected token" =>
            {
                return range.find(|&at| t.list[at].kind == Kind::Other);
            }
            _ => {}
        }
        let keyword =
            message.strip_prefix("unsupported keyword: ").or(message.strip_prefix("invalid keyword: "));
        let text = keyword.or(quoted)?;
        let in_expression = message.starts_with("unexpected token in expression");
        let named: Vec<usize> = range.filter(|&at| t.word(at) == text).collect();
        // An operand was expected, or something other than one.
        let fits = named.iter().find(|&&at| behind_operand(at) != in_expression);
        fits.or(named.first()).copied()
    }

    /// The first token that stands where a name must, behind one of some words, and neither is one nor one of the
    /// others that may stand there.
    fn missing_name(&self, behind: &[&str], others: &[&str]) -> Option<usize> {
        let t = self.tokens;
        let is_name = |at: usize, last: usize| match t.list[at].kind {
            Kind::Word => {
                matches!(t.word(last), "." | "?." | "{")
                    || !(PREFIXES.contains(&t.word(at)) || t.word(at) == "this")
            }
            Kind::Text | Kind::Number => {
                t.word(last) == "{" || t.list[at].inside.is_some_and(|brace| t.word(brace) == "{")
            }
            _ => others.contains(&t.word(at)),
        };
        self.range.clone().find(|&at| {
            at.checked_sub(1).is_some_and(|last| behind.contains(&t.word(last)) && !is_name(at, last))
        })
    }

    /// What QuickJS says, in words that name the token.
    fn in_words(&self, token: Option<usize>) -> String {
        let Some(at) = token else { return brief(self.message, MAX_MESSAGE) };
        let t = self.tokens;
        let shown = shown(t.text, t.list[at].start);
        let shown = shown.strip_prefix("a ").unwrap_or(&shown);
        let touches = |last: &usize| t.list[*last].end == t.list[at].start && t.list[at].kind == Kind::Word;
        let behind = at.checked_sub(1).filter(touches).map(|last| t.list[last].kind);
        let mut message = match self.message.split_once(' ') {
            _ if t.word(at).starts_with(['“', '”', '‘', '’', '„']) => {
                return format!("{shown} is a typographic quote; write plain quotes");
            }
            _ if matches!(behind, Some(Kind::Text | Kind::Template)) => {
                let quote = &t.text[t.list[at].start - 1..t.list[at].start];
                format!(
                    "unexpected {shown} behind a string; to have {quote} inside the string, write \\{quote}"
                )
            }
            _ if self.message == "expecting ';'" => {
                format!("unexpected {shown}: an operator, a `;` or a new line is missing before it")
            }
            Some(("Unexpected" | "unexpected" | "unsupported", _)) => format!("unexpected {shown}"),
            _ => brief(self.message, MAX_MESSAGE),
        };
        if let Some(open) = self.open_bracket(at) {
            message.push_str(&format!("; {} is never closed", self.bracket(open)));
        }
        message
    }
}

/// Whether an operand of an expression begins with this token, and nothing else could.
fn is_operand(t: &Tokens<'_>, at: usize) -> bool {
    let Some(token) = t.list.get(at) else { return false };
    match token.kind {
        Kind::Word => !matches!(t.word(at), "in" | "instanceof" | "of"),
        kind => !matches!(kind, Kind::Punct | Kind::Other),
    }
}

/// Whether a statement that could end before this token must.
fn ends_statement(t: &Tokens<'_>, at: usize) -> bool {
    let in_statement = t.list[at].inside.is_none_or(|bracket| t.word(bracket) == "{");
    let is_modified = matches!(t.word(at.saturating_sub(1)), "async" | "static" | "get" | "set" | "of");
    let ends = match t.word(at) {
        ":" => !matches!(t.list[at].role, Role::Ternary | Role::Label | Role::Field),
        "!" | "@" => true,
        _ => t.list[at].kind == Kind::Other || (is_operand(t, at) && !is_modified),
    };
    in_statement && ends
}

pub(super) const NO_MODULES: &str = "a script is one file and its sandbox has no modules to import; put the code that \
                                     you need into the script itself, or have a workflow of its own do the work: \
                                     workflow({scriptPath})";
