//! Untrusted URLs: an accepted URL uses HTTPS and a host on the public Internet.
#![no_main]

use std::net::IpAddr;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_web::{TargetHost, UrlGuard, WebConfig};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    whole: bool,
    url: &'a str,
    denied: Vec<String>,
}

fuzz_target!(|input: Input<'_>| {
    let url = if input.whole {
        input.url.to_owned()
    } else {
        format!("https://{}", input.url)
    };
    let Some((url, address)) = allowed_url(&url, &input.denied) else {
        return;
    };
    let rest = url.strip_prefix("https://").expect("HTTPS alone");
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!host.contains('@') && !host.is_empty(), "{url}");
    let again = allowed_url(&url, &input.denied).map(|(url, _)| url);
    assert_eq!(
        again.as_deref(),
        Some(&url[..]),
        "it is judged otherwise the second time"
    );
    match address {
        Some(IpAddr::V4(v4)) => assert!(!is_near(v4), "{url}"),
        Some(IpAddr::V6(v6)) => {
            let near = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast();
            let local = v6.is_unique_local() || v6.is_unicast_link_local();
            assert!(!near && !local, "{url}");
            assert!(!v6.to_ipv4_mapped().is_some_and(is_near), "{url}");
        }
        None => {
            let name = host.split(':').next().unwrap_or_default();
            assert!(name.contains('.') && !name.ends_with('.'), "{url}");
            for local in [".localhost", ".local", ".internal"] {
                assert!(!name.ends_with(local), "{url}");
            }
            let bare = name.parse::<IpAddr>();
            assert!(bare.is_err(), "{url}: an address that was taken for a name");
            // A URL is refused if its own domain is denied.
            assert!(allowed_url(&url, &[name.to_owned()]).is_none(), "{url}");
        }
    }
});

/// Returns a URL that may be requested, and its address if the host is one; `None` also if an entry of `denied` is not
/// a domain.
fn allowed_url(url: &str, denied: &[String]) -> Option<(String, Option<IpAddr>)> {
    let config = WebConfig {
        denied_domains: denied.to_vec(),
        ..WebConfig::default()
    };
    let target = UrlGuard::new(&config).ok()?.check(url).ok()?;
    let address = match target.host {
        TargetHost::Name(_) => None,
        TargetHost::Address(address) => Some(address),
    };
    Some((target.url.into(), address))
}

fn is_near(v4: std::net::Ipv4Addr) -> bool {
    v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || v4.is_unspecified()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation()
}
