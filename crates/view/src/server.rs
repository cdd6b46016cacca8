//! A view on a port of its own.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::view::View;

/// A port on which a view is served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    view: View,
}

impl Server {
    /// Takes a port; 0 is any that is free. On another address than a loopback one, others can reach the page.
    ///
    /// # Errors
    /// If the port is taken, or the address is not one of this machine.
    pub async fn bind(view: View, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, view })
    }

    /// What to open in a browser. It has the view's token in it, behind a `#`: browsers keep that to themselves.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        match self.view.token() {
            Some(token) => format!("http://{address}/#token={token}"),
            None => format!("http://{address}/"),
        }
    }

    /// Serves the view, for as long as the future is polled.
    pub fn serve(self) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let router = self.view.router();
        // Small answers go out at once. A connection that cannot have that is none the worse for it.
        let listener = self.listener.tap_io(|wire| _ = wire.set_nodelay(true));
        async move { axum::serve(listener, router).await }
    }
}
