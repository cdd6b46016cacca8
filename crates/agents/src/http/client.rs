//! The HTTP client: TLS without anything global, no redirects, no key in the clear.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(30);

/// Why a provider cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The base URL is none.
    #[error("the base URL is not usable: {0}")]
    BaseUrl(&'static str),
    /// Nobody could be trusted.
    #[error("TLS cannot be set up: {0}; are the system's root certificates installed?")]
    Tls(String),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// Reads a base URL.
pub(super) fn base_url(text: &str) -> Result<Url, HttpError> {
    let url = Url::parse(text)
        .map_err(|_| HttpError::BaseUrl("it must be absolute, such as https://api.example.com/v1"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(HttpError::BaseUrl("it must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(HttpError::BaseUrl(
            "it must not hold a user or password; keys come from the environment",
        ));
    }
    Ok(url)
}

/// The URL of an operation; the base URL's query stays.
pub(super) fn operation(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_fragment(None);
    url
}

/// Whether what is sent there can be read by nobody on the way.
pub(super) fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}

fn is_loopback(url: &Url) -> bool {
    // An IPv6 address is in brackets here.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// A client for this URL.
pub(super) fn client(url: &Url) -> Result<reqwest::Client, HttpError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(url)?)
        // A redirect could carry key and prompt to another host. No API needs one.
        .redirect(reqwest::redirect::Policy::none())
        // Retries are ours: they are counted and paused.
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT)
        .user_agent(concat!("fanfold/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| HttpError::Client(error.without_url().to_string()))
}

/// TLS by rustls with ring, trusting whom the system trusts. A process-wide default of rustls is neither needed nor
/// set, since that is the host program's to choose.
fn tls(url: &Url) -> Result<ClientConfig, HttpError> {
    let failed = |error: rustls::Error| HttpError::Tls(error.to_string());
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let mut config = if url.scheme() == "https" {
        let verifier = Arc::new(Verifier::new(provider).map_err(failed)?);
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        // Never used: a machine without root certificates can still speak to a local model.
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_below_the_base_url_whose_query_stays() {
        for (base, expected) in [
            ("https://a.example/v1", "https://a.example/v1/chat"),
            ("https://a.example/v1/", "https://a.example/v1/chat"),
            ("https://a.example", "https://a.example/chat"),
            ("https://a.example/x?version=2#f", "https://a.example/x/chat?version=2"),
        ] {
            assert_eq!(operation(&base_url(base).unwrap(), "chat").as_str(), expected);
        }
    }

    #[test]
    fn a_base_url_that_cannot_be_used_is_refused_without_showing_it() {
        for text in
            ["", "api.example.com/v1", "file:///etc/passwd", "https://me:secret@a.example", "https://"]
        {
            let error = base_url(text).unwrap_err().to_string();
            assert!(
                error.starts_with("the base URL is not usable: ") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn only_loopback_may_do_without_encryption() {
        for (url, private) in [
            ("https://a.example", true),
            ("http://a.example", false),
            ("http://localhost:8000/v1", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:1", true),
            ("http://10.0.0.1", false),
            ("http://localhost.a.example", false),
        ] {
            assert_eq!(is_private(&base_url(url).unwrap()), private, "{url}");
        }
    }

    #[test]
    fn a_client_needs_nothing_global() {
        for url in ["https://a.example", "http://127.0.0.1:1"] {
            client(&base_url(url).unwrap()).unwrap();
        }
        assert!(rustls::crypto::CryptoProvider::get_default().is_none());
    }
}
