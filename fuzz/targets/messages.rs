//! A hostile guest: it calls what it imports in any order with any text, in a run without the sandbox.

#![no_main]

use arbitrary::Arbitrary;
use fanfold::fuzzing::{Ending, Message, start};
use fanfold::{Support, event_stream};
use fanfold_fuzz::deeds::{Deed, Json, Planned, plan};
use fanfold_fuzz::{block_on, finish, limits};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    script: String,
    calls: Vec<Call>,
    end: Last,
    deeds: Vec<Deed>,
    /// Which options the provider honours.
    supports: [bool; 9],
}

#[derive(Arbitrary, Debug)]
enum Call {
    Agent { prompt: String, options: Options },
    Long { kind: u8, kilobytes: u8 },
    Phase(String),
    Log(String),
    Await,
    Yield,
    Forget,
    Cancel,
}

#[derive(Arbitrary, Debug)]
enum Options {
    None,
    Label(String),
    Schema(Json),
    Value(Json),
    Text(String),
}

#[derive(Arbitrary, Debug)]
enum Last {
    Json(Json),
    Text(String),
    Report {
        json: String,
        never_awaited: u32,
        places: Vec<String>,
        rejections: Vec<String>,
        swallowed: Vec<(String, String)>,
        swallowed_count: u32,
        repairs: Vec<(String, String, String, Option<String>)>,
    },
    Failure {
        code: Option<Code>,
        message: String,
        stack: String,
        path: Option<String>,
    },
    Trap,
    Never,
}

#[derive(Arbitrary, Debug)]
enum Code {
    Known(u8),
    Any(String),
}

impl From<Call> for Message {
    fn from(call: Call) -> Self {
        match call {
            Call::Agent { prompt, options } => Self::Agent { prompt, options: options.into() },
            Call::Long { kind, kilobytes } => {
                let text = "🌍\n".repeat(200 * usize::from(kilobytes));
                match kind % 4 {
                    0 => Self::Agent { prompt: text, options: "{}".into() },
                    1 => Self::Agent { prompt: "p".into(), options: text },
                    2 => Self::Phase(text),
                    _ => Self::Log(text),
                }
            }
            Call::Phase(title) => Self::Phase(title),
            Call::Log(message) => Self::Log(message),
            Call::Await => Self::Await,
            Call::Yield => Self::Yield,
            Call::Forget => Self::Forget,
            Call::Cancel => Self::Cancel,
        }
    }
}

impl From<Options> for String {
    fn from(options: Options) -> Self {
        match options {
            Options::None => "{}".into(),
            Options::Label(label) => serde_json::json!({ "label": label }).to_string(),
            Options::Schema(Json(mut schema)) => {
                if let Some(fields) = schema.as_object_mut() {
                    fields.insert("type".into(), "object".into());
                }
                serde_json::json!({ "schema": schema }).to_string()
            }
            Options::Value(Json(value)) => value.to_string(),
            Options::Text(text) => text,
        }
    }
}

impl From<Last> for Ending {
    fn from(last: Last) -> Self {
        let value = |json| Self::Value {
            json,
            never_awaited: 0,
            never_awaited_places: Vec::new(),
            unhandled_rejections: Vec::new(),
            swallowed: Vec::new(),
            swallowed_count: 0,
            repairs: Vec::new(),
        };
        match last {
            Last::Json(Json(json)) => value(json.to_string()),
            Last::Text(json) => value(json),
            Last::Report { json, never_awaited, places, rejections, swallowed, swallowed_count, repairs } => {
                Self::Value {
                    json,
                    never_awaited,
                    never_awaited_places: places,
                    unhandled_rejections: rejections,
                    swallowed,
                    swallowed_count,
                    repairs,
                }
            }
            Last::Failure { code, message, stack, path } => {
                Self::Failure { code: code.map(Code::text), message, stack, path }
            }
            Last::Trap => Self::Trap,
            Last::Never => Self::Never,
        }
    }
}

impl Code {
    fn text(self) -> String {
        let all = fanfold::ErrorCode::ALL;
        match self {
            Self::Known(n) => all[usize::from(n) % all.len()].to_string(),
            Self::Any(text) => text,
        }
    }
}

fuzz_target!(|input: Input| {
    let mut support = Support::default();
    let claims = [
        &mut support.schema,
        &mut support.model,
        &mut support.provider,
        &mut support.isolation,
        &mut support.timeout,
        &mut support.retries,
        &mut support.effort,
        &mut support.agent_type,
        &mut support.stall,
    ];
    for (claim, supported) in claims.into_iter().zip(input.supports) {
        *claim = supported;
    }
    plan(input.deeds);
    let messages: Vec<Message> = input.calls.into_iter().map(Message::from).collect();
    let calls = messages.iter().filter(|message| matches!(message, Message::Agent { .. })).count();
    block_on(async {
        let (observer, events) = event_stream();
        let run = start(&input.script, messages, input.end.into(), limits(), Planned(support), observer);
        if let Ok(run) = run {
            let result = finish(run, events).await;
            assert!(result.agents_started as usize <= calls);
        }
    });
});
