//! Plays a script through: every child answers at once, with what the call asked for.

use std::time::Duration;

use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents, Support, Usage,
    UsageMeter,
};
use futures::future::BoxFuture;

use crate::record::Record;
use crate::sample;

/// A provider whose children do nothing and answer what satisfies the call, to see what a script would do before
/// it spends anything.
///
/// Without a schema a child answers `OK: <label>`, and `OK` where the script gave no label. With one it answers a
/// value that is made from the schema, always the same:
///
/// | schema | value |
/// |---|---|
/// | `const`, `enum` | that; the first |
/// | `$ref`, `allOf` | what it refers to; all of them together |
/// | `anyOf`, `oneOf` | the first branch that is not null |
/// | several types | the first that is not null; without any, what `properties`, `items` or `prefixItems` say, else a string |
/// | object | every property in order, then what else is required, by `dependentRequired` too, as strings |
/// | array | two items, or as many as `minItems` and `maxItems` allow |
/// | string | the name of its property (`value` at the root), `#0`, `#1`… in arrays, in the length allowed; one of its `format` |
/// | boolean, number, null | `true`; 1, or what is next to it within the bounds; `null` |
///
/// Children are named `child-1`, `child-2`, … in start order. Every option counts as honoured, and none but the
/// label and the schema changes what a child does.
///
/// Clones share what they record: keep one to ask afterwards what the other was asked.
///
/// ```
/// use fanfold::{AgentRequest, CancellationToken, Subagents as _};
/// use fanfold_agents::DryRun;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agents = DryRun::new();
/// let mut request = AgentRequest::new("What does this do?");
/// let schema = serde_json::json!({"type": "object", "properties": {"points": {"type": "array"}}});
/// request.options.schema = Some(schema);
/// let child = agents.start(request, CancellationToken::new()).await?;
/// let answer = child.result.await?;
/// assert_eq!(answer.structured, Some(serde_json::json!({"points": ["points#0", "points#1"]})));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    record: Record,
    time: Option<Duration>,
    usage: Option<Usage>,
}

impl DryRun {
    /// A provider that was asked nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets each child take this long, for runs in a time that is not the real one (Tokio's can be paused).
    #[must_use]
    pub fn taking(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Has each child say that it has used so much, to see how far a budget goes. Default: they say nothing.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// What it was asked, in start order.
    pub fn requests(&self) -> Vec<AgentRequest> {
        self.record.requests()
    }

    /// How many children run now. A child runs until its result is there or dropped.
    pub fn running(&self) -> usize {
        self.record.running()
    }

    /// The most children that ever ran at once.
    pub fn peak(&self) -> usize {
        self.record.peak()
    }
}

impl Subagents for DryRun {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        // Now and not in the future: the numbers are those of the calls.
        let (number, running) = self.record.enter(&request);
        let (time, usage, meter) = (self.time, self.usage, UsageMeter::default());
        Box::pin(async move {
            let told = meter.clone();
            let child = Child::new(format!("child-{number}"), async move {
                let _running = running;
                if let Some(time) = time {
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => return Err(ChildError::Cancelled),
                        () = tokio::time::sleep(time) => {}
                    }
                }
                if let Some(usage) = usage {
                    meter.add(usage);
                }
                answer(&request)
            });
            Ok(child.metered(told))
        })
    }

    fn supports(&self) -> Support {
        Support::ALL
    }
}

fn answer(request: &AgentRequest) -> Result<Answer, ChildError> {
    match (&request.options.schema, request.options.label.as_deref()) {
        (Some(schema), _) => sample::of(schema).map(Answer::structured).map_err(ChildError::failed),
        (None, None | Some("")) => Ok(Answer::text("OK")),
        (None, Some(label)) => Ok(Answer::text(format!("OK: {label}"))),
    }
}
