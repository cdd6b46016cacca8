//! Answers by what the prompt says: for tests, demos and offline use.

use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents, Support};
use futures::future::BoxFuture;

use crate::json;
use crate::record::Record;

/// A provider whose children do what their prompt says.
///
/// | prompt | what the child does |
/// |---|---|
/// | `fail:<diagnostic>` | ends without success |
/// | `infra:<message>` | breaks |
/// | `startfail:<message>` | does not start; it uses up a number all the same |
/// | `json:<json>` | answers that value, lone surrogates in it replaced by U+FFFD |
/// | `sleep:<ms>` | answers `slept` after that time, unless cancelled; the number ends at the first space |
/// | `hang:` | answers nothing until cancelled |
/// | anything else | answers `echo:<prompt>` |
///
/// Children are named `child-1`, `child-2`, … in start order. Every option counts as honoured, so that
/// scripts which use them can be tried; none changes what a child does.
///
/// Clones share what they record: keep one to ask afterwards what the other was asked.
///
/// ```
/// use fanfold::{AgentRequest, CancellationToken, Subagents as _};
/// use fanfold_agents::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agents = Scripted::new();
/// let child = agents.start(AgentRequest::new("hello"), CancellationToken::new()).await?;
/// assert_eq!(child.id, "child-1");
/// assert_eq!(child.result.await?.text, "echo:hello");
/// assert_eq!(agents.requests()[0].prompt, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    record: Record,
}

impl Scripted {
    /// A provider that was asked nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it was asked, in start order, children that did not start included.
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

impl Subagents for Scripted {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        // Now and not in the future: the numbers are those of the calls.
        let (number, running) = self.record.enter(&request);
        Box::pin(async move {
            if let Some(message) = request.prompt.strip_prefix("startfail:") {
                return Err(StartError::new(message));
            }
            let deed = Deed::of(request.prompt);
            Ok(Child::new(format!("child-{number}"), async move {
                let _running = running;
                deed.carry_out(&cancel).await
            }))
        })
    }

    fn supports(&self) -> Support {
        Support::ALL
    }
}

/// What a prompt tells its child to do once it runs.
enum Deed {
    Fail(String),
    Break(String),
    Json(String),
    Sleep(Duration),
    Hang,
    Echo(String),
}

impl Deed {
    fn of(prompt: String) -> Self {
        match prompt.split_once(':') {
            Some(("fail", diagnostic)) => Self::Fail(diagnostic.into()),
            Some(("infra", message)) => Self::Break(message.into()),
            Some(("json", json)) => Self::Json(json.into()),
            Some(("sleep", ms)) => Self::Sleep(milliseconds(ms)),
            Some(("hang", _)) => Self::Hang,
            _ => Self::Echo(prompt),
        }
    }

    async fn carry_out(self, cancel: &CancellationToken) -> Result<Answer, ChildError> {
        match self {
            Self::Fail(diagnostic) => Err(ChildError::failed(diagnostic)),
            Self::Break(message) => Err(ChildError::broken(message)),
            Self::Json(text) => match json::parse(&text) {
                Ok(value) => Ok(Answer::structured(value)),
                Err(error) => Err(ChildError::broken(format!("the prompt's json: is no JSON: {error}"))),
            },
            Self::Sleep(time) => tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ChildError::Cancelled),
                () = tokio::time::sleep(time) => Ok(Answer::text("slept")),
            },
            Self::Hang => {
                cancel.cancelled().await;
                Err(ChildError::Cancelled)
            }
            Self::Echo(prompt) => Ok(Answer::text(format!("echo:{prompt}"))),
        }
    }
}

/// The time that `sleep:` tells; what is no number is none.
fn milliseconds(text: &str) -> Duration {
    let number = text.split(' ').next().unwrap_or_default();
    let seconds = number.parse::<f64>().unwrap_or_default() / 1000.0;
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
