//! Streamable HTTP against a server that is scripted byte by byte.

mod messages;
mod refusals;
mod sessions;
mod streams;

use super::*;
use crate::error::ErrorKind;
use crate::mcp::transport::web::peer::{
    Peer, Reply, Request, call, initialize, initialized, limits, plain, welcome,
};

const SESSION: &str = "mcp-session-id: session-1\r\n";

fn transport(peer: &Peer) -> HttpTransport {
    HttpTransport::new(peer.endpoint(), limits())
}

/// What a server of good manners does; `other` decides about everything but the handshake.
async fn server(other: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |request| match request.kind().as_str() {
        "POST /mcp initialize" => {
            let headers = format!("{SESSION}content-type: application/json\r\n");
            plain("200 OK", &headers, &welcome(request).to_string())
        }
        "POST /mcp notifications/initialized" => plain("202 Accepted", "", ""),
        _ => other(request),
    })
    .await
}

fn not_allowed() -> Reply {
    plain("405 Method Not Allowed", "", "")
}

/// A session after its handshake.
async fn connected(peer: &Peer) -> HttpTransport {
    let mut transport = transport(peer);
    transport.send(initialize()).await.unwrap();
    transport.receive().await.unwrap();
    transport.send(initialized()).await.unwrap();
    // The handshake, and the question for a stream.
    peer.wait_for(3).await;
    transport
}

async fn refusal(reply: impl Fn() -> Reply + Send + Sync + 'static) -> KernelError {
    let peer = Peer::start(move |_| reply()).await;
    let error = transport(&peer).send(call(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::McpServer);
    assert!(error.message().contains(&peer.origin()), "{error}");
    for hidden in ["sk-peer", "in-the-query"] {
        assert!(!format!("{error} {error:?}").contains(hidden), "{error:?}");
    }
    error
}
