//! Tests of the whole module, by topic.

mod header;
mod hint;
mod lint;
mod literal;
mod place;
mod property;

use fanfold_types::Meta;

use super::Script;

/// A script with metadata beside it.
fn body(text: &str) -> Script {
    Script::read(text, Some(Meta::new("n", "d"))).unwrap()
}
