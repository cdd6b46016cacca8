//! What is written to a client that may have stopped reading: a queue and the task that empties it.

use std::time::Duration;

use fanfold::CancellationToken;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// More than this is not queued of what a client can do without, and no request is begun.
const FULL_BYTES: usize = 8 * 1024 * 1024;

/// How long a client has to read what is left at the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// The sending side. Never waits.
#[derive(Clone)]
pub(super) struct Output {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    /// How many bytes are queued.
    queued: watch::Sender<usize>,
    closing: CancellationToken,
    broken: CancellationToken,
}

impl Output {
    /// Writes to this stream. The task ends once the output is closed, or broken.
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> (Self, JoinHandle<()>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let (queued, closing, broken) =
            (watch::Sender::new(0), CancellationToken::new(), CancellationToken::new());
        let output = Self { lines, queued, closing, broken };
        let task = tokio::spawn(write(writer, receiver, output.queued.clone(), output.tokens()));
        (output, task)
    }

    fn tokens(&self) -> (CancellationToken, CancellationToken) {
        (self.closing.clone(), self.broken.clone())
    }

    /// Queues a line.
    pub(super) fn push(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.queued.send_modify(|queued| *queued += line.len());
        // A task that has ended has closed or broken the output.
        let _ = self.lines.send(line);
    }

    /// Whether the client has left much unread.
    pub(super) fn is_full(&self) -> bool {
        *self.queued.borrow() > FULL_BYTES
    }

    /// Waits until the client has read enough.
    pub(super) async fn has_room(&self) {
        let mut queued = self.queued.subscribe();
        // The sender is here.
        let _ = queued.wait_for(|queued| *queued <= FULL_BYTES).await;
    }

    /// Fires when nothing can be written any more.
    pub(super) fn broken(&self) -> &CancellationToken {
        &self.broken
    }

    /// Takes no more: what is queued is written as far as the client reads it within a second.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    queued: watch::Sender<usize>,
    (closing, broken): (CancellationToken, CancellationToken),
) {
    let writing = async {
        loop {
            let line = tokio::select! {
                biased;
                line = lines.recv() => line,
                () = closing.cancelled() => return,
            };
            let Some(line) = line else { return };
            if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
                return;
            }
            queued.send_modify(|queued| *queued -= line.len());
        }
    };
    let late = async {
        closing.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        () = writing => {}
        () = late => {}
    }
    broken.cancel();
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_queued_is_written_before_the_end() {
        let (mut ours, theirs) = tokio::io::duplex(16);
        let (output, task) = Output::new(theirs);
        for _ in 0..100 {
            output.push(b"0123456789".to_vec());
        }
        output.close();
        let mut read = Vec::new();
        ours.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), 1100);
        task.await.unwrap();
        assert!(output.broken().is_cancelled() && !output.is_full());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_holds_nothing_up() {
        let (_ours, theirs) = tokio::io::duplex(16);
        let (output, task) = Output::new(theirs);
        for _ in 0..9 {
            output.push(vec![b'x'; 1 << 20]);
        }
        assert!(output.is_full());
        output.close();
        task.await.unwrap();
        assert!(output.broken().is_cancelled());
    }

    #[tokio::test]
    async fn a_client_that_reads_makes_room_and_one_that_goes_is_told() {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let (output, _task) = Output::new(theirs);
        for _ in 0..9 {
            output.push(vec![b'x'; 1 << 20]);
        }
        let mut read = vec![0; 8 << 20];
        tokio::join!(output.has_room(), async { ours.read_exact(&mut read).await.unwrap() });
        assert!(!output.is_full());
        drop(ours);
        output.push(b"x".to_vec());
        output.broken().cancelled().await;
    }
}
