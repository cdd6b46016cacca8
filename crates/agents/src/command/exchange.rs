//! One exchange with a process: the prompt in, the answer out, both at once and within bounds.

use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;

use crate::escapes;
use crate::process::{Pipes, Process, describe, read};
use crate::text::{self, Tail};

/// How much of the end of standard error, or of standard output in its stead, goes into a diagnostic, in
/// bytes.
const DIAGNOSTIC_BYTES: usize = 8 * 1024;

/// How long descendants may go on writing to the answer once the process itself has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// What a process said.
#[derive(Debug)]
pub(super) struct Output {
    stdout: Vec<u8>,
    stderr: Tail,
}

/// Why an exchange was broken off.
#[derive(Debug)]
pub(super) enum Break<S> {
    /// The answer is longer than allowed.
    TooLong,
    /// It was told to stop.
    Stopped(S),
}

/// Writes the prompt, reads the answer, and returns once the process itself has ended.
///
/// Once `stop` is ready, the process is told to end and has `grace` to do so. After an exchange that was
/// broken off the process may be running; after any, others of its group may.
pub(super) async fn exchange<S>(
    process: &mut Process,
    pipes: Pipes,
    prompt: &str,
    max_answer_bytes: usize,
    stop: impl Future<Output = S>,
    grace: Duration,
) -> Result<Output, Break<S>> {
    let mut output = Output { stdout: Vec::new(), stderr: Tail::new(DIAGNOSTIC_BYTES) };
    let streams = talk(pipes, prompt, max_answer_bytes, &mut output);
    attend(process, streams, stop, grace).await?;
    Ok(output)
}

/// Serves the three streams until all are closed.
async fn talk<S>(
    pipes: Pipes,
    prompt: &str,
    max_answer_bytes: usize,
    output: &mut Output,
) -> Result<(), Break<S>> {
    let Output { stdout, stderr } = output;
    let answer = read(pipes.stdout, |bytes| {
        stdout.extend_from_slice(bytes);
        if stdout.len() > max_answer_bytes { Err(Break::TooLong) } else { Ok(()) }
    });
    let diagnostic = read(pipes.stderr, |bytes| {
        stderr.push(bytes);
        Ok(())
    });
    tokio::try_join!(write(pipes.stdin, prompt), answer, diagnostic)?;
    Ok(())
}

/// Waits for the process while its streams are served.
async fn attend<S>(
    process: &mut Process,
    streams: impl Future<Output = Result<(), Break<S>>>,
    stop: impl Future<Output = S>,
    grace: Duration,
) -> Result<(), Break<S>> {
    let mut streams = pin!(streams.fuse());
    let reason = tokio::select! {
        biased;
        reason = stop => reason,
        done = undisturbed(process, &mut streams) => return done,
    };
    process.terminate();
    // It may talk while it cleans up: a closed pipe would kill it.
    let served = async {
        let _ = streams.await;
        std::future::pending().await
    };
    tokio::select! {
        () = process.ended() => {}
        () = tokio::time::sleep(grace) => {}
        () = served => {}
    }
    Err(Break::Stopped(reason))
}

/// The same, without being told to stop.
async fn undisturbed<S>(
    process: &mut Process,
    streams: &mut (impl Future<Output = Result<(), Break<S>>> + Unpin),
) -> Result<(), Break<S>> {
    tokio::select! {
        biased;
        done = &mut *streams => {
            done?;
            process.ended().await;
        }
        // A descendant that holds the pipes open must not hold up the answer.
        () = process.ended() => tokio::select! {
            biased;
            done = streams => done?,
            () = tokio::time::sleep(DRAIN) => {}
        },
    }
    Ok(())
}

impl Output {
    /// The answer as text, without the line ends at its end.
    pub(super) fn answer(self) -> String {
        let mut text = escapes::decode(self.stdout);
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        text
    }

    /// Why it failed: its status, and the end of what it said.
    pub(super) fn diagnostic(&self, status: ExitStatus) -> String {
        let mut said = self.stderr.text();
        if said.is_empty() {
            // Some agents tell their errors here.
            said = text::tail(&self.stdout, DIAGNOSTIC_BYTES);
        }
        let separator = if said.is_empty() { "" } else { ": " };
        format!("{}{separator}{said}", describe(status))
    }
}

/// Writes the prompt and closes the stream.
async fn write<E>(stdin: Option<ChildStdin>, prompt: &str) -> Result<(), E> {
    if let Some(mut stdin) = stdin {
        // A process need not read its prompt.
        let _ = stdin.write_all(prompt.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}
