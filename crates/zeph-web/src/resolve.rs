//! The resolution of names to addresses, and the check of each address.

use std::net::IpAddr;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use tokio::sync::OnceCell;

use crate::error::WebError;
use crate::url_guard::UrlGuard;

/// A resolver of names.
#[async_trait]
pub trait HostResolver: Send + Sync {
    /// Returns all addresses of `name`, which has no trailing dot.
    ///
    /// # Errors
    /// The reason if there are none.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// The resolver with the configuration of the machine, created at the first use.
#[derive(Default)]
pub(crate) struct HickoryResolver(OnceCell<TokioResolver>);

#[async_trait]
impl HostResolver for HickoryResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let set_up = async || {
            let mut builder = TokioResolver::builder_tokio()?;
            // Both address families: one refused address refuses the name.
            builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            builder.build()
        };
        let resolver = self
            .0
            .get_or_try_init(set_up)
            .await
            .map_err(|error| format!("DNS cannot be set up: {error}"))?;
        // The final dot disables the search domains of the machine.
        let found = resolver
            .lookup_ip(format!("{name}."))
            .await
            .map_err(|error| {
                if error.is_nx_domain() {
                    "this name does not exist".to_owned()
                } else if error.is_no_records_found() {
                    "DNS knows none".to_owned()
                } else {
                    error.to_string()
                }
            })?;
        Ok(found.iter().collect())
    }
}

/// Returns the addresses of `name`, if the guard allows every one of them.
///
/// # Errors
/// [`WebError::NoAddress`] or [`WebError::RefusedName`].
pub(crate) async fn resolve_and_validate(
    resolver: &dyn HostResolver,
    guard: &UrlGuard,
    name: &str,
) -> Result<Vec<IpAddr>, WebError> {
    let no_address = |reason| WebError::NoAddress {
        name: name.to_owned(),
        reason,
    };
    let found = resolver.resolve(name).await;
    let addresses = found.map_err(|reason| no_address(Some(reason)))?;
    if addresses.is_empty() {
        return Err(no_address(None));
    }
    for address in &addresses {
        guard
            .check_address(*address)
            .map_err(|reason| WebError::RefusedName {
                name: name.to_owned(),
                reason,
            })?;
    }
    Ok(addresses)
}
