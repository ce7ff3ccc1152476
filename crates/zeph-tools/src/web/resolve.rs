//! Names to addresses: all of them, and all of them judged.

use std::net::IpAddr;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use tokio::sync::OnceCell;

use super::url_guard::UrlGuard;

/// Finds the addresses of a name.
#[async_trait]
pub(super) trait HostResolver: Send + Sync {
    /// All addresses of `name`, which has no trailing dot.
    ///
    /// # Errors
    /// Why there are none, in words.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// The resolver of the machine's configuration, set up when it is first needed.
#[derive(Default)]
pub(super) struct HickoryResolver(OnceCell<TokioResolver>);

#[async_trait]
impl HostResolver for HickoryResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let set_up = async || {
            let mut builder = TokioResolver::builder_tokio()?;
            // Both kinds: one refused address among them refuses the name.
            builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            builder.build()
        };
        let resolver = self
            .0
            .get_or_try_init(set_up)
            .await
            .map_err(|error| format!("DNS cannot be set up: {error}"))?;
        // The final dot keeps the domains that a machine searches in out of it.
        let found = resolver
            .lookup_ip(format!("{name}."))
            .await
            .map_err(|error| {
                if error.is_nx_domain() {
                    "there is no such name".to_owned()
                } else if error.is_no_records_found() {
                    "DNS knows none".to_owned()
                } else {
                    error.to_string()
                }
            })?;
        Ok(found.iter().collect())
    }
}

/// Why a name yields no addresses to connect to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolveError {
    /// It has none, or they cannot be found.
    NotFound(String),
    /// One of them is refused.
    Refused(String),
}

/// The addresses of `name`, if the guard allows every one of them.
pub(super) async fn resolve_and_validate(
    resolver: &dyn HostResolver,
    guard: &UrlGuard,
    name: &str,
) -> Result<Vec<IpAddr>, ResolveError> {
    let addresses = resolver
        .resolve(name)
        .await
        .map_err(|error| ResolveError::NotFound(format!("{name} has no address: {error}")))?;
    if addresses.is_empty() {
        return Err(ResolveError::NotFound(format!("{name} has no address")));
    }
    for address in &addresses {
        guard
            .check_address(*address)
            .map_err(|why| ResolveError::Refused(format!("{name} is refused: {why}")))?;
    }
    Ok(addresses)
}
