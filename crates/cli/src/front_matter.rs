//! The `---` block at the beginning of a Markdown file: a few fields, as people write them.
//!
//! This reads the part of YAML that such files use: a field to a line, quoted or plain texts, texts over several
//! lines, lists. It is not a YAML parser, for two reasons. Many of these files are no YAML: a plain description with
//! `: ` in it is the most common thing in them, and a parser refuses it. And nothing here nests, so nothing can
//! nest too deep.

use std::collections::BTreeMap;

/// A file, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    fields: BTreeMap<String, Value>,
    /// What follows the block.
    pub(crate) body: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<String>),
}

impl FrontMatter {
    /// Reads a file; nothing if it does not begin with such a block.
    ///
    /// # Errors
    /// The line (from 1) and what is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, (usize, String)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let Some(rest) = text.strip_prefix("---\n") else { return Ok(None) };
        let mut block = Vec::new();
        let mut after = rest;
        loop {
            let (line, next) = after.split_once('\n').unwrap_or((after, ""));
            if matches!(line.trim_end(), "---" | "...") {
                after = next;
                break;
            }
            if next.is_empty() && !after.contains('\n') {
                return Err((1, "nothing closes the block: a line `---` is missing".into()));
            }
            block.push(line);
            after = next;
        }
        let mut read = Self { fields: BTreeMap::new(), body: after.trim().to_owned() };
        let mut lines = block.into_iter().zip(2..).peekable();
        while let Some((line, number)) = lines.next() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let field = line
                .split_once(':')
                .filter(|(name, rest)| is_name(name) && (rest.is_empty() || rest.starts_with([' ', '\t'])));
            let Some((name, first)) = field else {
                return Err((number, format!("not a field such as `name: value`: {line:?}")));
            };
            let mut more = Vec::new();
            // A list may stand as far left as its name.
            while let Some((line, _)) =
                lines.next_if(|(line, _)| line.is_empty() || line.starts_with([' ', '\t']) || is_item(line))
            {
                more.push(line);
            }
            let value = value(first.trim(), &more).map_err(|fault| (number, format!("{name}: {fault}")))?;
            if read.fields.insert(name.to_owned(), value).is_some() {
                return Err((number, format!("{name} is there twice")));
            }
        }
        Ok(Some(read))
    }

    /// A field's text; none if it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            Value::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Value::List(list) => Some(list.join(", ")),
        }
    }

    /// A field's items; a text is split at its commas.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let list = match self.fields.get(name)? {
            Value::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
            Value::List(list) => list.clone(),
        };
        Some(list.into_iter().filter(|item| !item.is_empty()).collect())
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

fn is_item(line: &str) -> bool {
    line == "-" || line.starts_with("- ")
}

/// A field's value: what stands beside its name, and the lines below.
fn value(first: &str, more: &[&str]) -> Result<Value, String> {
    let below = || more.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    if let Some(style) = first.strip_prefix(['|', '>'])
        && style.chars().all(|c| matches!(c, '-' | '+' | '1'..='9'))
    {
        return Ok(Value::Text(block(more, first.starts_with('>'))));
    }
    if first.starts_with('[') {
        let whole = [first].into_iter().chain(below()).collect::<Vec<_>>().join(" ");
        let inner = whole.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.ok_or("the list is not closed by `]`")?;
        return items(inner).map(Value::List);
    }
    if first.is_empty() && below().next().is_some_and(is_item) {
        let items = below().map(|line| match line.strip_prefix('-') {
            Some(item) => scalar(item.trim()),
            None => Err(format!("not an item such as `- value`: {line:?}")),
        });
        return items.collect::<Result<_, _>>().map(Value::List);
    }
    // A text that goes on is one text.
    let whole =
        [first].into_iter().chain(below()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    scalar(&whole).map(Value::Text)
}

/// A text of several lines, without their common indentation; folded, if its lines are one.
fn block(lines: &[&str], folded: bool) -> String {
    let indent = |line: &&&str| line.len() - line.trim_start().len();
    let least =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min().unwrap_or(0);
    let lines = lines.iter().map(|line| line.get(least..).unwrap_or("").trim_end());
    if !folded {
        return lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    }
    let mut text = String::new();
    for line in lines {
        match line {
            "" => text.push('\n'),
            line if text.is_empty() || text.ends_with('\n') => text.push_str(line),
            line => text.extend([" ", line]),
        }
    }
    text.trim_end().to_owned()
}

fn items(mut inner: &str) -> Result<Vec<String>, String> {
    let mut items = Vec::new();
    while !inner.trim().is_empty() {
        inner = inner.trim_start();
        let end = match inner.chars().next() {
            Some(quote @ ('"' | '\'')) => inner[1..].find(quote).ok_or("a quotation mark is not closed")? + 2,
            _ => inner.find(',').unwrap_or(inner.len()),
        };
        items.push(scalar(inner[..end].trim())?);
        inner = inner[end..].trim_start();
        inner = inner.strip_prefix(',').unwrap_or(inner);
    }
    Ok(items)
}

/// A text on one line: quoted, or plain and then without a comment at its end.
fn scalar(text: &str) -> Result<String, String> {
    match text.chars().next() {
        Some('"') => {
            let inner = text[1..].strip_suffix('"').ok_or("a quotation mark is not closed")?;
            let mut plain = String::new();
            let mut chars = inner.chars();
            while let Some(c) = chars.next() {
                plain.push(match c {
                    '\\' => match chars.next() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(other) => other,
                        None => return Err("it ends in a backslash".into()),
                    },
                    plain => plain,
                });
            }
            Ok(plain)
        }
        Some('\'') => {
            let inner = text[1..].strip_suffix('\'').ok_or("a quotation mark is not closed")?;
            Ok(inner.replace("''", "'"))
        }
        // `#12` is a number of something; `# twelve` is a comment.
        _ => Ok(text.split(" # ").next().unwrap_or(text).trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_a_file_holds_it_is_read_or_refused(text in "(---\n)?([a-z]{1,3}:|[a-zé:\\-\\[\\],\"'|> \n#\\\\])*(\n---)?") {
            let _ = FrontMatter::read(&text);
        }
    }

    #[test]
    fn fields_are_read_as_people_write_them() {
        let text = "\u{feff}---\r\nname: reviewer\r\ndescription: Use this: for #12. Examples: <example>user: \"x\"</example>\r\n\
                    model: sonnet # fast\r\ncolor: 'it''s red'\r\nquoted: \"a\\n\\\"b\\\"\"\r\n---\r\n\r\nBe strict.\r\n\r\n---\r\nNo mercy.\r\n";
        let read = FrontMatter::read(text).unwrap().unwrap();
        assert_eq!(read.text("name").as_deref(), Some("reviewer"));
        let description = "Use this: for #12. Examples: <example>user: \"x\"</example>";
        assert_eq!(read.text("description").as_deref(), Some(description));
        assert_eq!(read.text("model").as_deref(), Some("sonnet"));
        assert_eq!(read.text("color").as_deref(), Some("it's red"));
        assert_eq!(read.text("quoted").as_deref(), Some("a\n\"b\""));
        assert_eq!(read.text("absent"), None);
        assert_eq!(read.body, "Be strict.\n\n---\nNo mercy.");
    }

    #[test]
    fn lists_may_be_written_in_every_usual_way() {
        for list in [
            "Read, Grep",
            "[Read, Grep]",
            "[\"Read\", 'Grep',]",
            "\n- Read\n- Grep",
            "\n  - Read\n  - \"Grep\"",
            "[Read,\n  Grep]",
        ] {
            let text = format!("---\ntools: {list}\nname: x\n---\n").replace(": \n", ":\n");
            let read = FrontMatter::read(&text).unwrap().unwrap();
            assert_eq!(read.list("tools").unwrap(), ["Read", "Grep"], "{list}");
            assert_eq!(read.text("name").as_deref(), Some("x"), "{list}");
        }
    }

    #[test]
    fn texts_may_take_several_lines() {
        for (written, read_as) in [
            ("|\n  one\n    two\n\n  three", "one\n  two\n\nthree"),
            (">-\n  one\n  two\n\n  three", "one two\nthree"),
            ("one\n  two", "one two"),
        ] {
            let read = FrontMatter::read(&format!("---\nd: {written}\nname: x\n---\nb")).unwrap().unwrap();
            assert_eq!((read.text("d").as_deref(), &*read.body), (Some(read_as), "b"));
        }
    }

    #[test]
    fn a_fault_has_its_line() {
        for (text, line) in [
            ("---\nname: x\n", 1),
            ("---\nname: x\nnonsense\n---\n", 3),
            ("---\na: [x\n---\n", 2),
            ("---\na: 1\na: 2\n---\n", 3),
            ("---\na: \"x\n---\n", 2),
        ] {
            assert_eq!(FrontMatter::read(text).unwrap_err().0, line, "{text}");
        }
        assert_eq!(FrontMatter::read("# A README\n"), Ok(None));
    }
}
