//! Speaks for a run to a client whose protocol has sessions, the versions before 2026-07-28: such a client can be told
//! and asked at any time.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use rmcp::model::{
    ClientResult, CreateMessageRequest, CreateMessageResult, GetExtensions as _, RequestId, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RoleServer, ServiceError};
use tokio::sync::watch;

use crate::line::Clerk;
use crate::log::{self, Level};
use crate::outbox::{Outbox, Question};

/// Puts the questions of a run to the client and passes its log lines on, until the run is over and all is said.
///
/// `origin` is the request that started the run: over HTTP its stream carries the questions, while it lasts. Where
/// another takes its place, open questions are put again.
pub(crate) fn employ(
    outbox: Arc<Outbox>,
    peer: Peer<RoleServer>,
    origin: RequestId,
    level: Level,
    run_id: String,
) -> Clerk {
    let origin = watch::Sender::new(origin);
    let requests = origin.subscribe();
    let task = tokio::spawn(async move {
        let mut news = outbox.watch();
        let mut open = FuturesUnordered::new();
        loop {
            news.borrow_and_update();
            // Before the lines are taken: none comes after it.
            let closed = outbox.closed().is_cancelled();
            open.extend(
                outbox.take_questions().into_iter().map(|question| put(&peer, requests.clone(), question)),
            );
            for line in outbox.take_lines() {
                if log::send(&peer, level.get(), &run_id, line).await.is_err() {
                    return;
                }
            }
            if closed {
                // Those who asked have gone: what is open is taken back.
                while open.next().await.is_some() {}
                return;
            }
            tokio::select! {
                _ = news.changed() => {}
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    });
    Clerk { task: Mutex::new(Some(task)), origin }
}

/// Puts one question, and takes it back if nobody waits for the answer any more.
async fn put(peer: &Peer<RoleServer>, mut origin: watch::Receiver<RequestId>, question: Question) {
    let Question { params, mut reply } = question;
    let answer = loop {
        let mut request = CreateMessageRequest::new(params.clone());
        request.extensions_mut().insert(OriginatingRequestId(origin.borrow_and_update().clone()));
        let request = ServerRequest::CreateMessageRequest(request);
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return drop(reply.send(Err(refusal(error)))),
        };
        let reason = tokio::select! {
            biased;
            () = reply.closed() => "the subagent is no longer wanted",
            answer = &mut handle.rx => break answer,
            Ok(()) = origin.changed() => "the connection was lost; the question is put again",
        };
        // A client that cannot be told has gone.
        let _ = handle.cancel(Some(reason.into())).await;
        if reply.is_closed() {
            return;
        }
    };
    let answer = answer.unwrap_or(Err(ServiceError::TransportClosed)).and_then(message);
    // Whoever asked may have gone.
    let _ = reply.send(answer.map_err(refusal));
}

fn message(result: ClientResult) -> Result<CreateMessageResult, ServiceError> {
    match result {
        ClientResult::CreateMessageResult(result) => Ok(*result),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn refusal(error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("the MCP client refused: {}", error.message),
        ServiceError::TransportClosed => "the MCP client has gone".into(),
        error => format!("the MCP client gave no answer: {error}"),
    }
}
