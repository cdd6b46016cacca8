//! A provider whose children do what the input says, and JSON values from an input.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents, Support};
use futures::future::BoxFuture;
use serde_json::Value;

/// What one child does.
#[derive(Arbitrary, Clone, Debug)]
pub struct Deed {
    /// How long it takes to start, and then to end.
    pub delays_ms: (u8, u8),
    /// Whether it stops when it is told to.
    pub obeys: bool,
    pub id: String,
    pub end: End,
}

/// How a child ends.
#[derive(Arbitrary, Clone, Debug)]
pub enum End {
    Text(String),
    Value(Json),
    Both(String, Json),
    Failed(String),
    Broken(String),
    Cancelled,
    NotStarted(String),
    Never,
}

/// Any JSON value, often a schema, not deep.
#[derive(Clone, Debug)]
pub struct Json(pub Value);

impl<'a> Arbitrary<'a> for Json {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        value(u, 6).map(Self)
    }
}

fn value(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Value> {
    // Names and texts that schemas speak of come up often.
    const NAMES: [&str; 20] = [
        "n",
        "a",
        "type",
        "properties",
        "$ref",
        "__proto__",
        "items",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "$defs",
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "pattern",
        "format",
        "const",
    ];
    const TEXTS: [&str; 8] = ["object", "string", "#", "#/$defs/a", "^(a|b)*$", "date", "integer", "\u{0}🌍"];
    fn one(u: &mut Unstructured<'_>, of: &[&str]) -> arbitrary::Result<String> {
        if u.ratio(2, 3)? { u.choose(of).map(|text| (*text).to_owned()) } else { u.arbitrary() }
    }
    Ok(match u.int_in_range(0..=if depth == 0 { 5 } else { 7 })? {
        0 => Value::Null,
        1 => u.arbitrary::<bool>()?.into(),
        2 => u.arbitrary::<i8>()?.into(),
        3 => u.arbitrary::<i64>()?.into(),
        4 => u.arbitrary::<f64>()?.into(),
        5 => one(u, &TEXTS)?.into(),
        6 => {
            let mut items = Vec::new();
            for _ in 0..u.int_in_range(0..=3)? {
                items.push(value(u, depth - 1)?);
            }
            items.into()
        }
        _ => {
            let mut fields = serde_json::Map::new();
            for _ in 0..u.int_in_range(0..=3)? {
                let name = one(u, &NAMES)?;
                fields.insert(name, value(u, depth - 1)?);
            }
            fields.into()
        }
    })
}

/// What the next children do, in the order of their starts; those that come after answer `more`.
static NEXT: Mutex<VecDeque<Deed>> = Mutex::new(VecDeque::new());

/// Sets what the next children do.
pub fn plan(deeds: impl IntoIterator<Item = Deed>) {
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    next.clear();
    next.extend(deeds);
}

/// The provider whose children do what was planned.
pub struct Planned(pub Support);

impl Subagents for Planned {
    fn start(
        &self,
        _: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let deed = NEXT.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            let Some(Deed { delays_ms, obeys, id, end }) = deed else {
                return Ok(Child::new("more", async { Ok(Answer::text("more")) }));
            };
            wait(delays_ms.0).await;
            if let End::NotStarted(reason) = end {
                return Err(StartError::new(reason));
            }
            Ok(Child::new(id, async move {
                let work = async {
                    wait(delays_ms.1).await;
                    carry_out(end).await
                };
                if !obeys {
                    return work.await;
                }
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Err(ChildError::Cancelled),
                    result = work => result,
                }
            }))
        })
    }

    fn supports(&self) -> Support {
        self.0
    }
}

async fn wait(ms: u8) {
    match ms {
        0..128 => {}
        ms => tokio::time::sleep(Duration::from_millis(ms.into())).await,
    }
}

async fn carry_out(end: End) -> Result<Answer, ChildError> {
    match end {
        End::Text(text) => Ok(Answer::text(text)),
        End::Value(Json(value)) => Ok(Answer::structured(value)),
        End::Both(text, Json(value)) => {
            let mut answer = Answer::text(text);
            answer.structured = Some(value);
            Ok(answer)
        }
        End::Failed(reason) => Err(ChildError::failed(reason)),
        End::Broken(reason) => Err(ChildError::broken(reason)),
        End::Cancelled => Err(ChildError::Cancelled),
        End::NotStarted(_) | End::Never => std::future::pending().await,
    }
}
