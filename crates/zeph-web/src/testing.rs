//! The replacement of the address rule, the resolver and the certificates, for tests against a server on loopback.
//!
//! It is not part of the public interface. Builds without debug assertions do not contain it, and `clippy.toml` denies
//! [`client`] except in tests, so no configuration and no environment can widen the reach of a program.

use std::error::Error;
use std::sync::Arc;

pub use crate::address::AddressRule;
use crate::client::WebClient;
use crate::config::WebConfig;
pub use crate::resolve::HostResolver;

/// Creates a client that trusts the certificate `root` (DER) only.
///
/// # Errors
/// An error if `root` is not a certificate, or an entry of a list is not a domain.
pub fn client(
    config: &WebConfig,
    rule: AddressRule,
    resolver: Arc<dyn HostResolver>,
    root: &[u8],
) -> Result<WebClient, Box<dyn Error + Send + Sync>> {
    let root = reqwest::Certificate::from_der(root)?;
    Ok(WebClient::for_test(config, rule, resolver, root)?)
}
