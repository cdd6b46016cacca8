//! Scripts, providers and callers that mean harm: what breaks engines of this kind, in small.
//!
//! Each topic has scripts as the rows of a table, which all go through [`row::check`], and tests for what a
//! script alone cannot do. Both say which class of fault they are of, and a class without any is a failure.

mod cancelling;
mod cost;
mod escape;
mod honesty;
mod memory;
mod nested;
mod prompt;
mod providers;
mod row;
mod runaway;
mod stack;
mod text;
mod timers;
mod waiting;

use std::collections::BTreeSet;

/// The classes of fault, by number.
const CLASSES: [(u8, &str); 37] = [
    (1, "a loop without end, wherever a script's code can run"),
    (2, "microtasks without end"),
    (3, "narration without end"),
    (4, "one operation that takes for ever"),
    (5, "agents without end"),
    (6, "memory without end"),
    (7, "garbage in cycles"),
    (8, "nesting and recursion"),
    (9, "memory that ends while agents run"),
    (10, "many runs, and runs that are long"),
    (11, "waiting for nothing"),
    (12, "waiting for much, in any order"),
    (13, "agents that never answer"),
    (14, "providers that break"),
    (15, "runs that share their slots"),
    (16, "a script that goes on after it was cancelled"),
    (17, "a script that spins after it was cancelled"),
    (18, "cancelling in the instant of the end"),
    (19, "cancelling and disposing more than once"),
    (20, "cancelling before the start"),
    (21, "ways out of the sandbox"),
    (22, "overwritten intrinsics"),
    (23, "forged errors"),
    (24, "time and chance"),
    (25, "options that are no plain objects"),
    (26, "text that is not well-formed"),
    (27, "cutting text"),
    (28, "how a script's text may begin, end and look"),
    (29, "headers that compute"),
    (30, "places in the author's text"),
    (31, "text that leaves its wrapper"),
    (32, "failures that a script hides"),
    (33, "answers that nobody waits for"),
    (34, "rejections that nobody handles"),
    (35, "errors after an await"),
    (36, "timers"),
    (37, "workflows inside of workflows"),
];

/// Makes a test for each kind of runtime from every `class: function`, and notes the classes.
macro_rules! on_both_runtimes {
    ($($class:literal: $name:ident,)*) => {
        /// The classes that the tests of this module are of.
        pub(super) const CLASSES: &[u8] = &[$($class),*];

        mod on_a_current_thread_runtime {
            $(#[tokio::test]
            async fn $name() {
                super::$name().await;
            })*
        }

        mod on_a_multi_thread_runtime {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name().await;
            })*
        }
    };
}
use on_both_runtimes;

#[test]
fn every_class_of_fault_has_a_test() {
    let tables = [
        cancelling::rows,
        cost::rows,
        escape::rows,
        honesty::rows,
        memory::rows,
        nested::rows,
        runaway::rows,
        stack::rows,
        text::rows,
        timers::rows,
        waiting::rows,
    ];
    let tests = [
        cancelling::CLASSES,
        cost::CLASSES,
        escape::CLASSES,
        honesty::CLASSES,
        memory::CLASSES,
        nested::CLASSES,
        providers::CLASSES,
        runaway::CLASSES,
        stack::CLASSES,
        text::CLASSES,
        timers::CLASSES,
        waiting::CLASSES,
    ];
    let mut covered: BTreeSet<u8> = tables.iter().flat_map(|rows| rows()).map(|row| row.class).collect();
    covered.extend(tests.concat());
    let missing: Vec<_> = CLASSES.iter().filter(|(class, _)| !covered.remove(class)).collect();
    assert!(missing.is_empty(), "nothing tests {missing:?}");
    assert!(covered.is_empty(), "there are no classes {covered:?}");
}
