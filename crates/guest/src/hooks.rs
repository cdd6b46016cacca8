//! The native half of the globals; the half that scripts see is `guest-js/hooks.js`.

use std::cell::Cell;

use rquickjs::context::EvalOptions;
use rquickjs::function::Opt;
use rquickjs::{Coerced, Context, Ctx, Function, Object, Persistent, Result, Value, qjs};

use crate::agent::Agents;
use crate::fanfold::workflow::types::{Dialect, Failure, Settings, SwallowedError};
use crate::fanfold::workflow::{budget, progress, workflows};
use crate::json::{self, Natives, NotJson, Rule};
use crate::{agent, clock, repairs, task, text, timers, url};

const SOURCE: &str = include_str!("../../../guest-js/hooks.js");
const HEADER_SOURCE: &str = include_str!("../../../guest-js/header.js");
const URL_SOURCE: &str = include_str!("../../../guest-js/url.js");

/// What a repair of it calls the value of a script.
const RETURNED: &str = "the value returned";

/// What the JavaScript half gave back when it was evaluated.
pub(crate) struct Hooks {
    begin: Persistent<Function<'static>>,
    drive: Persistent<Function<'static>>,
    install_header: Persistent<Function<'static>>,
    fire: Persistent<Function<'static>>,
    loose_ends: Persistent<Function<'static>>,
    object_prototype: Persistent<Object<'static>>,
    unbox: Persistent<Function<'static>>,
    /// Gives the stack of its caller.
    place: Persistent<Function<'static>>,
    /// Whether values are taken as `JSON.stringify` takes them: in the header dialect.
    stringifies: Cell<bool>,
}

/// Errors that nobody saw, for the report.
#[derive(Default)]
pub(crate) struct LooseEnds {
    pub(crate) unhandled_rejections: Vec<String>,
    pub(crate) swallowed_errors: Vec<SwallowedError>,
    pub(crate) swallowed_count: u32,
}

impl Hooks {
    /// Evaluates the JavaScript half, which defines the globals.
    pub(crate) fn install(context: &Context) -> Result<(Self, Agents)> {
        let (hooks, agents, rejected) = context.with(|ctx| Self::evaluate(&ctx))?;
        context.runtime().set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, handled| {
                // Tracking is best effort: it cannot fail a script.
                if let Ok(rejected) = rejected.clone().restore(&ctx) {
                    let _ = rejected.call::<_, ()>((promise, reason, handled));
                }
            },
        )));
        Ok((hooks, agents))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<(Self, Agents, Persistent<Function<'static>>)> {
        let host = Object::new(ctx.clone())?;
        agent::add_to(ctx, &host)?;
        host.set("phase", Function::new(ctx.clone(), tell_phase)?)?;
        host.set("log", Function::new(ctx.clone(), tell_log)?)?;
        host.set("isError", Function::new(ctx.clone(), |value: Value<'_>| value.is_error())?)?;
        host.set("isProxy", Function::new(ctx.clone(), |value: Value<'_>| value.is_proxy())?)?;
        host.set("isPromise", Function::new(ctx.clone(), |value: Value<'_>| value.is_promise())?)?;
        host.set("json", Function::new(ctx.clone(), plain_json)?)?;
        host.set("nulls", Function::new(ctx.clone(), nulls)?)?;
        host.set("workflow", Function::new(ctx.clone(), call_workflow)?)?;
        host.set("spent", Function::new(ctx.clone(), || budget::spent() as f64)?)?;
        host.set("returned", Function::new(ctx.clone(), returned)?)?;
        host.set("threw", Function::new(ctx.clone(), threw)?)?;

        timers::add_to(ctx, &host)?;
        url::add_to(ctx, &host)?;

        let evaluate = |source| {
            let mut options = EvalOptions::default();
            options.filename = Some("fanfold".into());
            ctx.eval_with_options::<Function, _>(source, options)
        };
        let hooks: Object = evaluate(SOURCE)?.call((host.clone(),))?;
        let urls: Object = evaluate(URL_SOURCE)?.call((host.clone(),))?;
        let tools: Object = hooks.get("tools")?;
        let header: Object = evaluate(HEADER_SOURCE)?.call((host, tools, urls))?;

        let random = Function::new(ctx.clone(), clock::random)?.with_name("random")?;
        ctx.globals().get::<_, Object>("Math")?.set("random", random)?;

        let this = Self {
            begin: save(ctx, &hooks, "begin")?,
            drive: save(ctx, &hooks, "drive")?,
            install_header: save(ctx, &header, "install")?,
            fire: save(ctx, &header, "fire")?,
            loose_ends: save(ctx, &hooks, "looseEnds")?,
            object_prototype: Persistent::save(ctx, hooks.get::<_, Object>("objectPrototype")?),
            unbox: save(ctx, &hooks, "unbox")?,
            place: save(ctx, &hooks, "place")?,
            stringifies: Cell::new(false),
        };
        Ok((this, Agents::new(ctx, &hooks)?, save(ctx, &hooks, "rejected")?))
    }

    /// Makes the globals that depend on the run.
    pub(crate) fn begin(&self, ctx: &Ctx<'_>, settings: &Settings) -> Result<()> {
        let budget = match settings.budget_total {
            Some(total) => Value::new_number(ctx.clone(), total as f64),
            None => Value::new_null(ctx.clone()),
        };
        self.stringifies.set(settings.dialect == Dialect::Header);
        let dialect = match settings.dialect {
            Dialect::Header => Some(self.install_header.clone().restore(ctx)?),
            Dialect::Body => None,
        };
        self.begin.clone().restore(ctx)?.call((settings.max_items_per_call, budget, dialect))
    }

    /// Runs a script's function; how it settles comes to [`task::settle`].
    pub(crate) fn drive<'js>(&self, ctx: &Ctx<'js>, script: Function<'js>) -> Result<()> {
        self.drive.clone().restore(ctx)?.call((script,))
    }

    /// Calls the function of a timer that has fired.
    pub(crate) fn fire(&self, ctx: &Ctx<'_>, timer: u32) -> Result<()> {
        self.fire.clone().restore(ctx)?.call((timer,))
    }

    /// What nobody saw of the script.
    pub(crate) fn loose_ends(&self, ctx: &Ctx<'_>) -> Result<LooseEnds> {
        let ends: Option<Object> = self.loose_ends.clone().restore(ctx)?.call(())?;
        let Some(ends) = ends else { return Ok(LooseEnds::default()) };
        let items = texts(ctx, &ends, "items")?.into_iter();
        let errors = texts(ctx, &ends, "errors")?.into_iter();
        Ok(LooseEnds {
            unhandled_rejections: texts(ctx, &ends, "rejections")?,
            swallowed_errors: items.zip(errors).map(|(item, error)| SwallowedError { item, error }).collect(),
            swallowed_count: ends.get("count")?,
        })
    }

    /// Writes a value as JSON. What was made of what is not plain data comes into the report, with `name` for the
    /// value; `place` is as in [`repairs::keep`].
    fn write<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &str,
        value: &Value<'js>,
        rule: Rule,
        place: impl FnOnce(&Self) -> Option<String>,
    ) -> Result<core::result::Result<String, NotJson>> {
        let natives = Natives {
            object_prototype: self.object_prototype.clone().restore(ctx)?,
            unbox: self.unbox.clone().restore(ctx)?,
        };
        let stringify_from = if self.stringifies.get() { rule.stringify_from } else { Rule::NEVER };
        let written = json::write(ctx, &natives, value, Rule { stringify_from, ..rule });
        Ok(written.map(|(json, repairs)| {
            if !repairs.is_empty() {
                repairs::keep(name, repairs, || place(self));
            }
            json
        }))
    }

    /// Where the script is just now, as lines of a stack.
    fn place(&self, ctx: &Ctx<'_>) -> Result<String> {
        let place: Value = self.place.clone().restore(ctx)?.call(())?;
        text::from_js(ctx, &place)
    }
}

fn texts<'js>(ctx: &Ctx<'js>, from: &Object<'js>, name: &str) -> Result<Vec<String>> {
    let texts: Vec<Value> = from.get(name)?;
    texts.iter().map(|value| text::from_js(ctx, value)).collect()
}

/// Keeps a function of an object that the JavaScript half made.
pub(crate) fn save<'js>(
    ctx: &Ctx<'js>,
    from: &Object<'js>,
    name: &str,
) -> Result<Persistent<Function<'static>>> {
    Ok(Persistent::save(ctx, from.get::<_, Function>(name)?))
}

/// `host.workflow(target, args, resolve, reject)`: asks the host to run a workflow inside of this one, and settles the
/// promise when it has ended.
fn call_workflow<'js>(
    ctx: Ctx<'js>,
    target: Value<'js>,
    args: Value<'js>,
    resolve: Function<'js>,
    reject: Function<'js>,
) -> Result<()> {
    let args = if args.is_undefined() { None } else { Some(text::from_js(&ctx, &args)?) };
    let request = workflows::Request { target: text::from_js(&ctx, &target)?, args };
    let resolve = Persistent::save(&ctx, resolve);
    let reject = Persistent::save(&ctx, reject);
    task::spawn_call(async move {
        let answer = workflows::run(request).await;
        move |ctx: &Ctx<'_>| -> Result<()> {
            match answer {
                Ok(json) => resolve.restore(ctx)?.call((ctx.json_parse(json)?,)),
                Err(failure) => reject.restore(ctx)?.call((failure_object(ctx, failure)?,)),
            }
        }
    });
    Ok(())
}

fn tell_phase<'js>(ctx: Ctx<'js>, title: Value<'js>) -> Result<Value<'js>> {
    told(&ctx, progress::phase(&text::from_js(&ctx, &title)?))
}

fn tell_log<'js>(ctx: Ctx<'js>, message: Value<'js>) -> Result<Value<'js>> {
    told(&ctx, progress::log(&text::from_js(&ctx, &message)?))
}

/// `undefined`, or the failure for the JavaScript half to throw.
fn told<'js>(ctx: &Ctx<'js>, answer: core::result::Result<(), Failure>) -> Result<Value<'js>> {
    match answer {
        Ok(()) => Ok(Value::new_undefined(ctx.clone())),
        Err(failure) => Ok(failure_object(ctx, failure)?.into_value()),
    }
}

/// `host.nulls(length)`: an array of so many nulls. Its elements are its own: whatever a script has put on the
/// prototype of every array, assigning to one calls nothing.
fn nulls<'js>(ctx: Ctx<'js>, length: f64) -> Result<Value<'js>> {
    // As many elements as a loop from 0 to below the length sees.
    let nulls = vec![qjs::JS_NULL; length.ceil() as usize];
    // SAFETY: the context is alive, and there are as many values as said, none of which is counted.
    unsafe {
        let array = qjs::JS_NewArrayFrom(ctx.as_raw().as_ptr(), nulls.len() as i32, nulls.as_ptr());
        if qjs::JS_IsException(array) {
            return Err(rquickjs::Error::Exception);
        }
        Ok(Value::from_raw(ctx, array))
    }
}

/// `host.json(value, name, level)`: JSON text, or `{message, path}` when the value is not plain data. Properties of it
/// that are `undefined` count as absent. From the level on, values of the header dialect are taken as `JSON.stringify`
/// takes them.
fn plain_json<'js>(ctx: Ctx<'js>, value: Value<'js>, name: Value<'js>, level: usize) -> Result<Value<'js>> {
    let name = text::from_js(&ctx, &name)?;
    let rule = Rule { skip_undefined: true, stringify_from: level };
    let place = |hooks: &Hooks| Some(hooks.place(&ctx).unwrap_or_default());
    match crate::with_sandbox(|sandbox| sandbox.hooks.write(&ctx, &name, &value, rule, place))? {
        Ok(json) => Ok(rquickjs::String::from_str(ctx, &json)?.into_value()),
        Err(fault) => {
            let object = Object::new(ctx)?;
            object.set_prototype(None)?;
            object.set("message", fault.message)?;
            object.set("path", fault.path)?;
            Ok(object.into_value())
        }
    }
}

/// `host.returned(value)`: the script returned.
fn returned<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<()> {
    if value.is_undefined() {
        task::settle(Ok("null".into()));
        return Ok(());
    }
    let rule = Rule { skip_undefined: false, stringify_from: 0 };
    let written = crate::with_sandbox(|sandbox| sandbox.hooks.write(&ctx, RETURNED, &value, rule, |_| None))?;
    task::settle(written.map_err(|fault| {
        let subject = if fault.path.is_empty() { "it" } else { &fault.path };
        Failure {
            code: Some("RESULT_UNSERIALIZABLE".into()),
            message: format!(
                "the value a script returns must be plain JSON data: {subject} {}. Return only objects, \
                 arrays, strings, finite numbers, booleans and null",
                fault.message
            ),
            stack: String::new(),
            path: Some(fault.path),
        }
    }));
    Ok(())
}

/// `host.threw(text, stack, code?, message?, path?)`: the script threw; the last three for a genuine WorkflowError.
fn threw<'js>(
    ctx: Ctx<'js>,
    shown: Value<'js>,
    stack: Value<'js>,
    code: Opt<Option<Coerced<String>>>,
    message: Opt<Option<Value<'js>>>,
    path: Opt<Option<Value<'js>>>,
) -> Result<()> {
    let optional = |value: Opt<Option<Value<'js>>>| match value.0.flatten() {
        Some(value) => text::from_js(&ctx, &value).map(Some),
        None => Ok(None),
    };
    let stack = text::from_js(&ctx, &stack)?;
    let failure = match (code.0.flatten(), optional(message)?) {
        (Some(code), Some(message)) => Failure { code: Some(code.0), message, stack, path: optional(path)? },
        _ => Failure { code: None, message: text::from_js(&ctx, &shown)?, stack, path: None },
    };
    task::settle(Err(failure));
    Ok(())
}

pub(crate) fn failure_object<'js>(ctx: &Ctx<'js>, failure: Failure) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    // Nothing that the script has put on the prototype of every object has a say in this one.
    object.set_prototype(None)?;
    if let Some(code) = failure.code {
        object.set("code", code)?;
    }
    object.set("message", failure.message)?;
    if let Some(path) = failure.path {
        object.set("path", path)?;
    }
    Ok(object)
}
