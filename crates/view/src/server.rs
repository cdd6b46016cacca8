//! A view on a port of its own.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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
        async move { axum::serve(self.listener, router).await }
    }
}
