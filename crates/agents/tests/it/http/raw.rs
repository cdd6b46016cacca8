//! A server that sends bytes as they are, for what no well-kept HTTP server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const PING: &[u8] = b": ping\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n";

/// What happens after the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The connection is closed.
    Close,
    /// It is reset.
    Reset,
    /// Keep-alives come, for ever.
    KeepAlive,
    /// Keep-alives come, for ever, and as many as the client takes.
    Flood,
    /// Nothing comes, for ever.
    Silence,
}

pub(super) struct Raw {
    url: String,
    requests: Arc<AtomicUsize>,
    serving: tokio::task::JoinHandle<()>,
}

impl Raw {
    /// A server that answers every request with these bytes.
    pub(super) async fn new(bytes: Vec<u8>, end: End) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::<AtomicUsize>::default();
        let count = requests.clone();
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let (bytes, count) = (bytes.clone(), count.clone());
                connections.spawn(async move {
                    // What the client does of it is its own.
                    let _ = serve(connection, &bytes, end, &count).await;
                });
            }
        });
        Self { url, requests, serving }
    }

    /// A server that answers every request with 200 and this body.
    pub(super) async fn body(content_type: &str, body: &[u8], end: End) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
        Self::new([head.as_bytes(), body].concat(), end).await
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// How many requests came.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(connection: TcpStream, bytes: &[u8], end: End, count: &AtomicUsize) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    connection.read_exact(&mut vec![0; length]).await?;
    count.fetch_add(1, Ordering::SeqCst);
    let mut connection = connection.into_inner();
    connection.write_all(bytes).await?;
    connection.flush().await?;
    match end {
        End::Close => {}
        End::Reset => {
            // What was sent before must have been read.
            tokio::time::sleep(Duration::from_millis(100)).await;
            connection.set_zero_linger()?;
        }
        End::KeepAlive => loop {
            connection.write_all(PING).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        },
        End::Flood => loop {
            connection.write_all(&PING.repeat(1000)).await?;
        },
        End::Silence => std::future::pending().await,
    }
    Ok(())
}
