//! `agent()`: the promise of a call, the place where it was made, and the answer.
//!
//! This is the busiest part of most runs. It is here and not in JavaScript because each closure, each array of
//! arguments and each frame of a stack would cost about as much as the rest of a call.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use rquickjs::function::This;
use rquickjs::{Ctx, Function, Object, Persistent, Promise, Result, String as JsString, Value, qjs};

use crate::fanfold::workflow::agent::{Reply, Request, run};
use crate::hooks::{failure_object, save};
use crate::{task, text, with_sandbox};

/// Most places of calls that are told.
const MAX_PLACES: usize = 50;

pub(crate) struct Agents {
    /// The `agent` that scripts have.
    hook: Persistent<Function<'static>>,
    /// What promises of calls inherit from: it tells when one is seen.
    prototype: Persistent<Object<'static>>,
    /// `(stack, failure)` to a WorkflowError.
    error: Persistent<Function<'static>>,
    /// `(promise, reason, handled)`: that a rejection has a handler or has none.
    rejected: Persistent<Function<'static>>,
    stack: Stack,
    /// Calls that were made.
    calls: Cell<u32>,
    /// Calls whose promise nothing has looked at, by where that is.
    unseen: RefCell<HashMap<*mut qjs::JSObject, Unseen>>,
}

struct Unseen {
    /// Keeps it where it is.
    promise: Persistent<Promise<'static>>,
    call: Rc<Call>,
}

/// A call that was made.
#[derive(Default)]
struct Call {
    number: u32,
    /// Where, as lines of a stack; none for a call that was refused at once.
    place: Option<Persistent<Value<'static>>>,
    is_over: Cell<bool>,
    watcher: Cell<Option<Watcher>>,
}

/// Who gets the answer to a call besides its promise.
struct Watcher {
    promise: Persistent<Promise<'static>>,
    item: u32,
    gave: Persistent<Function<'static>>,
    failed: Persistent<Function<'static>>,
}

/// How the stack of a call is written down.
struct Stack {
    capture: Persistent<Function<'static>>,
    limit: Persistent<Function<'static>>,
    set_limit: Persistent<Function<'static>>,
    error: Persistent<Object<'static>>,
    /// What it is written to.
    sheet: Persistent<Object<'static>>,
}

/// Adds `host.agent`, `host.refuse`, `host.seen` and `host.watch`.
pub(crate) fn add_to<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("agent", Function::new(ctx.clone(), call)?)?;
    host.set("refuse", Function::new(ctx.clone(), refuse)?)?;
    host.set("seen", Function::new(ctx.clone(), seen)?)?;
    host.set("watch", Function::new(ctx.clone(), watch)?)
}

impl Agents {
    /// Takes what the JavaScript half made.
    pub(crate) fn new<'js>(ctx: &Ctx<'js>, hooks: &Object<'js>) -> Result<Self> {
        let error: Object = ctx.globals().get("Error")?;
        let object: Object = ctx.globals().get("Object")?;
        let describe: Function = object.get("getOwnPropertyDescriptor")?;
        let limit: Object = describe.call((error.clone(), "stackTraceLimit"))?;
        let stack = Stack {
            capture: save(ctx, &error, "captureStackTrace")?,
            limit: save(ctx, &limit, "get")?,
            set_limit: save(ctx, &limit, "set")?,
            error: Persistent::save(ctx, error),
            sheet: Persistent::save(ctx, Object::new(ctx.clone())?),
        };
        Ok(Self {
            hook: save(ctx, hooks, "agent")?,
            prototype: Persistent::save(ctx, hooks.get::<_, Object>("agentPromise")?),
            error: save(ctx, hooks, "agentError")?,
            rejected: save(ctx, hooks, "rejected")?,
            stack,
            calls: Cell::new(0),
            unseen: RefCell::default(),
        })
    }

    /// Calls whose promise nothing ever looked at.
    pub(crate) fn never_awaited(&self) -> u32 {
        u32::try_from(self.unseen.borrow().len()).unwrap_or(u32::MAX)
    }

    /// Where the first of those calls were made, each place once.
    pub(crate) fn never_awaited_places(&self, ctx: &Ctx<'_>) -> Vec<String> {
        let unseen = self.unseen.borrow();
        let mut calls: Vec<&Call> = unseen.values().map(|unseen| &*unseen.call).collect();
        calls.sort_unstable_by_key(|call| call.number);
        let places = calls.into_iter().filter_map(|call| call.place.clone());
        let mut told = Vec::new();
        for place in places.filter_map(|place| text::from_js(ctx, &place.restore(ctx).ok()?).ok()) {
            if told.len() == MAX_PLACES {
                break;
            }
            if !told.contains(&place) {
                told.push(place);
            }
        }
        told
    }

    /// Makes the promise of a call.
    fn promise<'js>(
        &self,
        ctx: &Ctx<'js>,
        call: Rc<Call>,
    ) -> Result<(Promise<'js>, Function<'js>, Function<'js>)> {
        let (promise, resolve, reject) = Promise::new(ctx)?;
        promise.set_prototype(Some(&self.prototype.clone().restore(ctx)?))?;
        let unseen = Unseen { promise: Persistent::save(ctx, promise.clone()), call };
        self.unseen.borrow_mut().insert(address(promise.as_value()), unseen);
        Ok((promise, resolve, reject))
    }

    /// Where the script calls `agent()` just now, as lines of a stack. Its author is in the first one, or in the
    /// second if a native function made the call.
    fn place<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let Stack { limit, set_limit, error, .. } = &self.stack;
        let error = error.clone().restore(ctx)?;
        let set_limit = set_limit.clone().restore(ctx)?;
        let limit: Value = limit.clone().restore(ctx)?.call((This(error.clone()),))?;
        let frames = |most: i32| {
            set_limit.call::<_, ()>((This(error.clone()), most))?;
            self.frames(ctx)
        };
        let mut place = frames(1);
        if place
            .as_ref()
            .is_ok_and(|place| text::from_js(ctx, place).is_ok_and(|place| place.ends_with("(native)\n")))
        {
            place = frames(2);
        }
        set_limit.call::<_, ()>((This(error), limit))?;
        place
    }

    fn frames<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let Stack { capture, sheet, .. } = &self.stack;
        let sheet = sheet.clone().restore(ctx)?;
        let () = capture.clone().restore(ctx)?.call((sheet.clone(), self.hook.clone().restore(ctx)?))?;
        sheet.get("stack")
    }
}

/// `host.agent(prompt, options)`: asks the host, and gives the promise of its answer.
fn call<'js>(ctx: Ctx<'js>, prompt: Value<'js>, options: Value<'js>) -> Result<Promise<'js>> {
    let request = Request { prompt: text::from_js(&ctx, &prompt)?, options: text::from_js(&ctx, &options)? };
    with_sandbox(|sandbox| {
        let place = Persistent::save(&ctx, sandbox.agents.place(&ctx)?);
        let number = sandbox.agents.calls.get().wrapping_add(1);
        sandbox.agents.calls.set(number);
        let call = Rc::new(Call { number, place: Some(place), ..Call::default() });
        let (promise, resolve, reject) = sandbox.agents.promise(&ctx, call.clone())?;
        let resolve = Persistent::save(&ctx, resolve);
        let reject = Persistent::save(&ctx, reject);
        task::spawn_call(async move {
            let answer = run(request).await;
            move |ctx: &Ctx<'_>| -> Result<()> {
                call.is_over.set(true);
                let watcher = call.watcher.take();
                let value = match answer {
                    Ok(Reply::None) => Value::new_null(ctx.clone()),
                    Ok(Reply::Text(text)) => JsString::from_str(ctx.clone(), &text)?.into_value(),
                    Ok(Reply::Json(json)) => ctx.json_parse(json)?,
                    Err(failure) => {
                        let error = with_sandbox(|sandbox| sandbox.agents.error.clone().restore(ctx))?;
                        let place = call.place.clone().map(|place| place.restore(ctx)).transpose()?;
                        let error: Value = error.call((place, failure_object(ctx, failure)?))?;
                        return reject_with(ctx, &error, reject, watcher);
                    }
                };
                let () = resolve.restore(ctx)?.call((value.clone(),))?;
                match watcher {
                    Some(watcher) => watcher.gave.restore(ctx)?.call((watcher.item, value)),
                    None => Ok(()),
                }
            }
        });
        Ok(promise)
    })
}

fn reject_with<'js>(
    ctx: &Ctx<'js>,
    error: &Value<'js>,
    reject: Persistent<Function<'static>>,
    watcher: Option<Watcher>,
) -> Result<()> {
    let reject = reject.restore(ctx)?;
    let () = reject.call((error,))?;
    let Some(watcher) = watcher else { return Ok(()) };
    // Somebody knows of it, though no handler does.
    let rejected = with_sandbox(|sandbox| sandbox.agents.rejected.clone().restore(ctx))?;
    let () = rejected.call((watcher.promise.restore(ctx)?, (), true))?;
    watcher.failed.restore(ctx)?.call((watcher.item, error))
}

/// `host.refuse(error)`: the promise of a call that cannot be made.
fn refuse<'js>(ctx: Ctx<'js>, error: Value<'js>) -> Result<Promise<'js>> {
    let call = Rc::new(Call { is_over: Cell::new(true), ..Call::default() });
    let (promise, _, reject) = with_sandbox(|sandbox| sandbox.agents.promise(&ctx, call))?;
    let () = reject.call((error,))?;
    Ok(promise)
}

/// `host.seen(promise)`: something looks at it.
fn seen(promise: Value<'_>) {
    // What is dropped here may end other objects, which must find the list free.
    let _seen = with_sandbox(|sandbox| sandbox.agents.unseen.borrow_mut().remove(&address(&promise)));
}

/// `host.watch(promise, item, gave, failed)`: calls `gave(item, value)` or `failed(item, error)` when the call has its
/// answer, as an await would do at once afterwards. False if this is not the promise of a call that waits for its
/// answer and that nothing has looked at.
fn watch<'js>(
    ctx: Ctx<'js>,
    promise: Value<'js>,
    item: u32,
    gave: Function<'js>,
    failed: Function<'js>,
) -> bool {
    let found = with_sandbox(|sandbox| {
        let mut unseen = sandbox.agents.unseen.borrow_mut();
        match unseen.entry(address(&promise)) {
            Entry::Occupied(found) if !found.get().call.is_over.get() => Some(found.remove()),
            _ => None,
        }
    });
    let Some(Unseen { promise, call }) = found else { return false };
    let (gave, failed) = (Persistent::save(&ctx, gave), Persistent::save(&ctx, failed));
    call.watcher.set(Some(Watcher { promise, item, gave, failed }));
    true
}

/// Where an object is: no other is there as long as it lives. Null for what is no object.
fn address(value: &Value<'_>) -> *mut qjs::JSObject {
    if !value.is_object() {
        return std::ptr::null_mut();
    }
    // SAFETY: it is an object; the pointer is compared and never followed.
    unsafe { qjs::JS_VALUE_GET_PTR(value.as_raw()).cast() }
}
