//! What was made of values that are not plain data, for the report.

use std::cell::RefCell;

use crate::fanfold::workflow::types::Repair;
use crate::json::{self, MAX_REPAIRS};

thread_local! {
    static REPAIRS: RefCell<Vec<Repair>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what was made of a value, each repair once. `place` says where the value left the script, as lines of a
/// stack; nothing for the value that it returned.
pub(crate) fn keep(value: &str, mut repairs: Vec<json::Repair>, place: impl FnOnce() -> Option<String>) {
    REPAIRS.with_borrow(|kept| {
        let known = |repair: &json::Repair| {
            let same = |known: &Repair| {
                (&*known.value, &*known.path, &*known.message) == (value, &*repair.path, &*repair.message)
            };
            kept.len() > MAX_REPAIRS || kept.iter().any(same)
        };
        repairs.retain(|repair| !known(repair));
    });
    if repairs.is_empty() {
        return;
    }
    let stack = place();
    REPAIRS.with_borrow_mut(|kept| {
        let room = (MAX_REPAIRS + 1).saturating_sub(kept.len());
        let repair = |json::Repair { path, message }| Repair {
            value: value.into(),
            path,
            message,
            stack: stack.clone(),
        };
        kept.extend(repairs.into_iter().take(room).map(repair));
    });
}

/// All that are kept: at most one more than [`MAX_REPAIRS`], which says that there were others.
pub(crate) fn take() -> Vec<Repair> {
    REPAIRS.take()
}
