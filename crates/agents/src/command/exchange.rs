//! One exchange with a process: the prompt in, the answer out, both at once and within bounds.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::Notify;

use crate::escapes;
use crate::policy::{Attempt, Transcript};
use crate::process::{Pipes, Process, read};

/// How long descendants may be silent before they count as done with the answer, once the process itself has ended.
const SILENCE: Duration = Duration::from_millis(500);
/// How long they may go on writing: what is not done by then is no whole answer.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Why an exchange was broken off.
#[derive(Debug, PartialEq)]
pub(super) enum Break {
    /// The answer is longer than allowed.
    TooLong,
    /// The process has ended, and its descendants do not end the answer.
    Unfinished,
    /// It was told to stop, and had said so much.
    Stopped(String),
}

/// Writes the prompt, reads the answer, and returns it once the process itself has ended.
///
/// Once the attempt is stopped, the process is told to end and has `grace` to do so. After an exchange that was
/// broken off the process may be running; after any, others of its group may.
pub(super) async fn exchange(
    process: &mut Process,
    pipes: Pipes,
    prompt: &str,
    max_answer_bytes: usize,
    attempt: &Attempt,
    grace: Duration,
) -> Result<String, Break> {
    let (mut answer, written) = (Vec::new(), Notify::new());
    let streams = talk(pipes, prompt, max_answer_bytes, &mut answer, &written, &attempt.transcript);
    match attend(process, streams, &written, attempt.stopped(), grace).await {
        Ok(()) => Ok(text(answer)),
        Err(Break::Stopped(_)) => Err(Break::Stopped(text(answer))),
        Err(broken) => Err(broken),
    }
}

/// Serves the three streams until all are closed.
async fn talk(
    pipes: Pipes,
    prompt: &str,
    max_answer_bytes: usize,
    answer: &mut Vec<u8>,
    written: &Notify,
    transcript: &Transcript,
) -> Result<(), Break> {
    let said = read(pipes.stdout, |bytes| {
        transcript.output(bytes);
        answer.extend_from_slice(bytes);
        written.notify_one();
        if answer.len() > max_answer_bytes { Err(Break::TooLong) } else { Ok(()) }
    });
    let complained = read(pipes.stderr, |bytes| {
        transcript.stderr(bytes);
        Ok(())
    });
    tokio::try_join!(write(pipes.stdin, prompt), said, complained)?;
    Ok(())
}

/// Waits for the process while its streams are served.
async fn attend(
    process: &mut Process,
    streams: impl Future<Output = Result<(), Break>>,
    written: &Notify,
    stopped: impl Future<Output = ()>,
    grace: Duration,
) -> Result<(), Break> {
    let mut streams = pin!(streams.fuse());
    tokio::select! {
        biased;
        done = undisturbed(process, &mut streams, written) => return done,
        () = stopped => {}
    }
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
    Err(Break::Stopped(String::new()))
}

/// The same, without being told to stop.
async fn undisturbed(
    process: &mut Process,
    streams: &mut (impl Future<Output = Result<(), Break>> + Unpin),
    written: &Notify,
) -> Result<(), Break> {
    tokio::select! {
        biased;
        done = &mut *streams => {
            done?;
            process.ended().await;
        }
        () = process.ended() => rest(streams, written).await?,
    }
    Ok(())
}

/// Reads what descendants still write. One that holds the pipes open and is silent must not hold up the answer; one that
/// writes is not done with it.
async fn rest(
    streams: &mut (impl Future<Output = Result<(), Break>> + Unpin),
    written: &Notify,
) -> Result<(), Break> {
    let mut too_long = pin!(tokio::time::sleep(LONGEST_REST));
    loop {
        tokio::select! {
            biased;
            done = &mut *streams => return done,
            () = &mut too_long => return Err(Break::Unfinished),
            () = written.notified() => {}
            () = tokio::time::sleep(SILENCE) => return Ok(()),
        }
    }
}

/// An answer as text, without the line ends at its end.
fn text(answer: Vec<u8>) -> String {
    let mut text = escapes::decode(answer);
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    text
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
