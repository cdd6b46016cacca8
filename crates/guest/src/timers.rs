//! Timers, which the host keeps; the half that scripts see is `guest-js/header.js`.

use std::cell::Cell;

use rquickjs::{Ctx, Function, IntoJs as _, Object, Result, Value};

use crate::fanfold::workflow::timers;
use crate::{clock, hooks, task, with_sandbox};

thread_local! {
    /// Timers that have neither fired nor been cleared.
    static SET: Cell<usize> = const { Cell::new(0) };
    /// Whether somebody waits for the next one that fires.
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Adds the functions that the JavaScript half calls.
pub(crate) fn add_to<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("setTimer", Function::new(ctx.clone(), set)?)?;
    host.set("clearTimer", Function::new(ctx.clone(), clear)?)
}

/// Whether the script has something to wait for.
pub(crate) fn are_set() -> bool {
    SET.get() > 0
}

/// `host.setTimer(ms)`: the timer's number, or the failure for the JavaScript half to throw.
fn set<'js>(ctx: Ctx<'js>, delay_ms: f64) -> Result<Value<'js>> {
    // What is out of range becomes the end of it.
    match timers::set(delay_ms as u32) {
        Ok(timer) => {
            SET.set(SET.get() + 1);
            if !LISTENING.replace(true) {
                wit_bindgen::spawn_local(listen());
            }
            timer.into_js(&ctx)
        }
        Err(failure) => Ok(hooks::failure_object(&ctx, failure)?.into_value()),
    }
}

/// `host.clearTimer(timer)`, for one that is set.
fn clear(timer: u32) {
    timers::clear(timer);
    SET.set(SET.get().saturating_sub(1));
}

/// Fires timers as long as there are any. When the last one is cleared it goes on waiting, for those to come.
async fn listen() {
    while !task::is_over() && are_set() {
        match timers::next().await {
            Ok(fired) => {
                SET.set(SET.get().saturating_sub(1));
                clock::advance(fired.now_ms);
                task::resume(|ctx| with_sandbox(|sandbox| sandbox.hooks.fire(ctx, fired.timer)));
            }
            Err(failure) => {
                SET.set(0);
                task::give_up(failure);
                break;
            }
        }
    }
    LISTENING.set(false);
}
