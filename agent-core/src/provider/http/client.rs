//! Makes the client: no environment, no certificates read where none are needed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::super::{ErrorKind, ProviderError};
use super::{Asking, Endpoint};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for this address. Reads certificates only where the way to it is encrypted.
pub(super) fn build(endpoint: &Endpoint, url: &Url, asking: &Asking) -> Result<Client, ProviderError> {
    let Endpoint { proxy, no_proxy, ca_cert, .. } = endpoint;
    let builder = builder(url, proxy.as_deref(), no_proxy, ca_cert.as_deref());
    builder.map_err(|why| asking.error(ErrorKind::Invalid, &why))?.build().map_err(|e| asking.unreachable(&e))
}

/// What a client for this address is built from.
pub(crate) fn builder(
    url: &Url,
    proxy: Option<&str>,
    no_proxy: &[String],
    ca_cert: Option<&Path>,
) -> Result<ClientBuilder, String> {
    let secure = url.scheme() == "https" || proxy.is_some_and(|p| p.starts_with("https:"));
    let tls = if secure { encrypted(ca_cert) } else { plain() }?;
    let mut builder = Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A redirect would carry the key to wherever the server says.
        .redirect(Policy::none());
    if let Some(proxy) = proxy {
        let proxy = Proxy::all(proxy).map_err(|e| format!("the proxy: {e}"))?;
        let direct = format!("localhost,127.0.0.0/8,::1,{}", no_proxy.join(","));
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(&direct)));
    }
    Ok(builder)
}

fn plain() -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn encrypted(ca_cert: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let extra = ca_cert.map(certificates).transpose()?.unwrap_or_default();
    let verifier = Verifier::new_with_extra_roots(extra, provider.clone());
    let verifier = verifier.map_err(|e| format!("the certificates could not be loaded: {e}"))?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    // "Dangerous" is any verifier that is not rustls' own; this one asks the system.
    let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |why: String| format!("the certificates in {} could not be read: {why}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|e| wrong(e.to_string()))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|e| wrong(e.to_string()))?;
    if found.is_empty() { Err(wrong("there are none in it".into())) } else { Ok(found) }
}
