//! A process with all that it starts: told to end together, and never left behind.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A running process, on Unix with its process group. Dropping it kills them.
///
/// On Unix the process is waited for last, after every signal to its group: as long as it is not, its id
/// cannot pass to a stranger.
#[derive(Debug)]
pub(crate) struct Process {
    leader: Child,
    #[cfg(unix)]
    some_child_ended: tokio::signal::unix::Signal,
}

/// The ends of its pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl Process {
    /// Starts a process with all three streams piped.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Self, Pipes)> {
        Self::spawn_with(command, Stdio::piped())
    }

    /// The same, with this as its standard input.
    pub(crate) fn spawn_with(command: &mut Command, stdin: Stdio) -> io::Result<(Self, Pipes)> {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(unix)]
        let some_child_ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
        let mut leader = command.spawn()?;
        let pipes =
            Pipes { stdin: leader.stdin.take(), stdout: leader.stdout.take(), stderr: leader.stderr.take() };
        let process = Self {
            leader,
            #[cfg(unix)]
            some_child_ended,
        };
        Ok((process, pipes))
    }

    /// Its id, until [`finish`](Self::finish) was awaited.
    pub(crate) fn id(&self) -> Option<u32> {
        self.leader.id()
    }

    /// Ends what is left of it and gives the status of the process itself.
    pub(crate) async fn finish(mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.leader.wait().await
    }
}

#[cfg(unix)]
impl Process {
    /// Returns once the process itself has ended; others of its group may be running.
    pub(crate) async fn ended(&mut self) {
        // The listener is older than the process, so that no end falls between the look and the wait.
        while self.runs() && self.some_child_ended.recv().await.is_some() {}
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&mut self) {
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn runs(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.group().is_some_and(|leader| matches!(waitid(WaitId::Pid(leader), look), Ok(None)))
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group() {
            // It may be gone; that is what is wanted.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// The group's id, which is that of the process that leads it. None once that was waited for.
    fn group(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.id()?).ok()?)
    }
}

#[cfg(not(unix))]
impl Process {
    /// Returns once the process has ended.
    pub(crate) async fn ended(&mut self) {
        // Its status is told again by `finish`.
        let _ = self.leader.wait().await;
    }

    /// Ends the process: there is no way to ask it.
    pub(crate) fn terminate(&mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        // It may be gone; that is what is wanted.
        let _ = self.leader.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process itself is waited for by tokio, in the background.
        self.kill();
    }
}

/// Hands over what comes until the end of the stream.
pub(crate) async fn read<E>(
    stream: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut bytes = vec![0; 16 * 1024];
    // A stream that breaks has nothing more to say.
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        take(&bytes[..count])?;
    }
    Ok(())
}

/// How a process ended.
pub(crate) fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => status.to_string(),
    }
}
