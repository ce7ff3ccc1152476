//! Tests of the allowed URLs and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use zeph_web::{TargetHost, UrlGuard, UrlRefusal, WebConfig, is_public};

fn guard() -> UrlGuard {
    UrlGuard::new(&WebConfig::default()).unwrap()
}

/// Proves WEB-4.
#[test]
fn private_addresses_are_not_public() {
    let check = |address: &str, expect: bool| {
        let parsed: IpAddr = address.parse().unwrap();
        assert_eq!(is_public(parsed), expect, "{address}");
    };
    // The first and the last address of each range, and their neighbours outside.
    for (first, last, before, after) in [
        ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
        (
            "10.0.0.0",
            "10.255.255.255",
            Some("9.255.255.255"),
            Some("11.0.0.0"),
        ),
        (
            "100.64.0.0",
            "100.127.255.255",
            Some("100.63.255.255"),
            Some("100.128.0.0"),
        ),
        (
            "127.0.0.0",
            "127.255.255.255",
            Some("126.255.255.255"),
            Some("128.0.0.0"),
        ),
        (
            "169.254.0.0",
            "169.254.255.255",
            Some("169.253.255.255"),
            Some("169.255.0.0"),
        ),
        (
            "172.16.0.0",
            "172.31.255.255",
            Some("172.15.255.255"),
            Some("172.32.0.0"),
        ),
        (
            "192.0.0.0",
            "192.0.0.255",
            Some("191.255.255.255"),
            Some("192.0.1.0"),
        ),
        (
            "192.0.2.0",
            "192.0.2.255",
            Some("192.0.1.255"),
            Some("192.0.3.0"),
        ),
        (
            "192.88.99.0",
            "192.88.99.255",
            Some("192.88.98.255"),
            Some("192.88.100.0"),
        ),
        (
            "192.168.0.0",
            "192.168.255.255",
            Some("192.167.255.255"),
            Some("192.169.0.0"),
        ),
        (
            "198.18.0.0",
            "198.19.255.255",
            Some("198.17.255.255"),
            Some("198.20.0.0"),
        ),
        (
            "198.51.100.0",
            "198.51.100.255",
            Some("198.51.99.255"),
            Some("198.51.101.0"),
        ),
        (
            "203.0.113.0",
            "203.0.113.255",
            Some("203.0.112.255"),
            Some("203.0.114.0"),
        ),
        (
            "224.0.0.0",
            "255.255.255.255",
            Some("223.255.255.255"),
            None,
        ),
        ("239.255.255.255", "240.0.0.0", None, None),
        ("fc00::", "fdff:ffff::ffff", None, None),
        ("fe80::", "febf:ffff::1", None, None),
        ("fec0::", "feff::1", None, None),
        ("ff00::", "ff02::1", None, None),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff::1",
            Some("2001:db7::1"),
            Some("2001:db9::1"),
        ),
        ("100::", "100::ffff", None, None),
        (
            "3fff::",
            "3fff:fff::1",
            Some("3ffe::1"),
            Some("3fff:1000::1"),
        ),
        (
            "2001:2::",
            "2001:2:0:ffff::1",
            Some("2001:1::5"),
            Some("2001:3::1"),
        ),
        ("4000::", "fbff::1", Some("3fff:ffff::1"), None),
    ] {
        check(first, false);
        check(last, false);
        before.inspect(|address| check(address, true));
        after.inspect(|address| check(address, true));
    }
    // Each form that embeds an IPv4 address, with a public address and with others.
    for private in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "100.64.0.1",
    ] {
        let [a, b, c, d] = private.parse::<Ipv4Addr>().unwrap().octets().map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        for form in [
            format!("::ffff:{private}"),
            format!("::ffff:0:{private}"),
            format!("::{private}"),
            format!("64:ff9b::{private}"),
            format!("64:ff9b:1::{private}"),
            // The positions of RFC 6052 after a prefix of 48, 56 and 64 bits.
            format!("64:ff9b:1:{high:x}:{c:x}:{:x}::", d << 8),
            format!("64:ff9b:1:{:x}:{:x}:{:x}::", 0x4400 | a, b, low),
            format!("64:ff9b:1:4455:{:x}:{:x}:{:x}:0", a, b << 8 | c, d << 8),
            format!("2002:{high:x}:{low:x}::1"),
            // Teredo: as the server, and as the client of a public server.
            format!("2001:0:{high:x}:{low:x}:0:0:f7f7:f7f7"),
            format!("2001:0:808:808:0:0:{:x}:{:x}", !high, !low),
        ] {
            check(&form, false);
        }
    }
    for form in [
        "::ffff:8.8.8.8",
        "::ffff:0:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::8.8.8.8",
        "64:ff9b:1:808:8:800::",
        "2002:808:808::1",
        "2001:0:808:808:0:0:f7f7:f7f7",
        "2606:2800:220:1:248:1893:25c8:1946",
        "2a00:1450:4001:81b::200e",
        "2001:4860:4860::8888",
    ] {
        check(form, true);
    }
    for address in [
        "::",
        "::1",
        "::2",
        "64:ff9b:1::",
        "2002::",
        "2001::1",
        "2001:0:808:808::",
    ] {
        check(address, false);
    }
    check("1.1.1.1", true);
    check("93.184.216.34", true);
}

/// Proves WEB-3.
#[test]
fn non_public_urls_are_refused() {
    let guard = guard();
    for url in [
        // Schemes.
        "http://example.org/",
        "HTTP://example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "data:text/html,x",
        "javascript:alert(1)",
        "ws://example.org/",
        "wss://example.org/",
        "about:blank",
        "blob:https://example.org/x",
        "view-source:https://example.org/",
        "unix:/run/docker.sock",
        // User names.
        "https://user@example.org/",
        "https://user:pass@example.org/",
        "https://:pass@example.org/",
        "https://example.org@127.0.0.1/",
        "https://example.org%40127.0.0.1/",
        "https://a@b@example.org/",
        // Names.
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://localhost:8443/",
        "https://sub.localhost/",
        "https://sub.LocalHost./",
        "https://printer.local/",
        "https://printer.local./",
        "https://metadata.google.internal/",
        "https://a.b.internal./",
        "https://intranet/",
        "https://intranet./",
        "https://db:5432/",
        "https://a..example.org/",
        "https://.example.org/",
        "https://example.org../",
        "https://ⓛocalhost/",
        "https://ｌｏｃａｌｈｏｓｔ/",
        "https://local%68ost/",
        "https://sub。localhost/",
        "https://printer．local/",
        // Invalid hosts.
        "https://",
        "https:///",
        "https://./",
        "https://?x",
        "https://[::1",
        "https://exa mple.org/",
        "https://example.org:99999/",
        "example.org",
        "//example.org/",
        "",
        " ",
        "https://%00/",
        "https://0x100000000/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        "https://1.2.3.08/",
        "https://[fe80::1%25eth0]/",
        "https://[v1.x]/",
    ] {
        assert!(guard.check(url).is_err(), "{url:?} was let through");
    }
    let long = format!("https://example.org/{}", "a".repeat(9000));
    assert!(guard.check(&long).is_err());
    let label = format!("https://{}.org/", "a".repeat(64));
    assert!(guard.check(&label).is_err());
    let name = format!("https://{}org/", "abcdefghi.".repeat(26));
    assert!(guard.check(&name).is_err());
}

/// Proves WEB-3.
#[test]
fn any_spelling_of_a_private_address_is_refused() {
    let guard = guard();
    let check = |host: &str, address: &str| {
        let address: IpAddr = address.parse().unwrap();
        for url in [
            format!("https://{host}/"),
            format!("https://{host}:443/x?y#z"),
            format!("HTTPS:\\\\{host}\\x"),
            format!("https:{host}"),
        ] {
            assert_eq!(
                guard.check(&url),
                Err(UrlRefusal::Address(address)),
                "{url}"
            );
        }
    };
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.1.",
        "0x7f.1",
        "0X7F.1",
        "0x7f.0x0.0x0.0x1",
        "0x7f000001",
        "0x7F000001",
        "2130706433",
        "017700000001",
        "0177.1",
        "0177.0.0.1",
        "0177.0000.0000.0001",
        "127.0x1",
        "127.0.0.01",
        "127.0.0.0x1",
        "0x00000000007f000001",
        "00000000000000177.1",
        "①②⑦.0.0.1",
        "①②⑦.⓪.⓪.①",
        "１２７.０.０.１",
        "127。0。0。1",
        "127．0．0．1",
        "127｡0｡0｡1",
        "１２７。１",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "127.0.0.%31",
        "%31%32%37.0.0.1",
        "127%2e0%2E0%2e1",
        "127.0.0.1%2e",
        "0%78%37f.1",
        "１２７%E3%80%82１",
        "2130706433.",
        "127.0.\u{ad}0.1",
    ] {
        check(host, "127.0.0.1");
    }
    for host in [
        "0",
        "0x",
        "0.",
        "0.0",
        "00",
        "0x0",
        "0.0.0.0",
        "0000000000000",
        "⓪",
    ] {
        check(host, "0.0.0.0");
    }
    for host in [
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "025177524776",
        "169.254.43518",
    ] {
        check(host, "169.254.169.254");
    }
    for host in ["10.0.0.1", "10.1", "0xa000001", "012.0.0.1", "167772161"] {
        check(host, "10.0.0.1");
    }
    for host in [
        "192.168.1.1",
        "0xC0A80101",
        "3232235777",
        "192.168.257",
        "0300.0250.1.1",
    ] {
        check(host, "192.168.1.1");
    }
    check("255.255.255.255", "255.255.255.255");
    check("4294967295", "255.255.255.255");
    check("0xffffffff", "255.255.255.255");
    check("100.64.0.1", "100.64.0.1");
    check("172.31.255.255", "172.31.255.255");
    for (host, address) in [
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[0000::0001]", "::1"),
        ("[::]", "::"),
        ("[::0.0.0.1]", "::1"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[::FFFF:7f00:1]", "::ffff:127.0.0.1"),
        ("[0:0:0:0:0:ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[::127.0.0.1]", "::127.0.0.1"),
        ("[::ffff:0:127.0.0.1]", "::ffff:0:127.0.0.1"),
        ("[64:ff9b::7f00:1]", "64:ff9b::127.0.0.1"),
        ("[64:ff9b:1::10.0.0.1]", "64:ff9b:1::10.0.0.1"),
        ("[2002:7f00:1::]", "2002:7f00:1::"),
        ("[2002:c0a8:101::1]", "2002:c0a8:101::1"),
        ("[2001:0:7f00:1::]", "2001:0:7f00:1::"),
        ("[2001::f5ff:fffe]", "2001::f5ff:fffe"),
        ("[fe80::1]", "fe80::1"),
        ("[fc00::1]", "fc00::1"),
        ("[fd00:ec2::254]", "fd00:ec2::254"),
        ("[fec0::1]", "fec0::1"),
        ("[ff02::1]", "ff02::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[100::1]", "100::1"),
    ] {
        check(host, address);
    }
}

/// Proves WEB-3.
#[test]
fn public_urls_are_accepted() {
    let guard = guard();
    let check = |url: &str, expect: &str| {
        let target = guard
            .check(url)
            .unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(target.url.as_str(), expect, "{url}");
    };
    check("https://example.org", "https://example.org/");
    check(
        "  https://example.org/a b?c=d#e ",
        "https://example.org/a%20b?c=d",
    );
    check("HTTPS://EXAMPLE.ORG/Path", "https://example.org/Path");
    // The trailing dot is removed: a client would resolve the name again.
    check("https://example.org./x", "https://example.org/x");
    check("https://example.org:8443/", "https://example.org:8443/");
    check(
        "https://bücher.example.org/",
        "https://xn--bcher-kva.example.org/",
    );
    check(
        "https://localhost.example.org/",
        "https://localhost.example.org/",
    );
    check("https://mylocalhost.org/", "https://mylocalhost.org/");
    check(
        "https://internal.example.org/",
        "https://internal.example.org/",
    );
    check(
        "https://127.0.0.1.example.org/",
        "https://127.0.0.1.example.org/",
    );
    check("https://1.1.1.1/", "https://1.1.1.1/");
    check("https://[2606:4700::1111]/", "https://[2606:4700::1111]/");
    check("https://0x01010101/", "https://1.1.1.1/");
    check(
        "https://example.org/?u=http://127.0.0.1/",
        "https://example.org/?u=http://127.0.0.1/",
    );
}

/// Proves WEB-9.
#[test]
fn domain_lists_allow_and_deny() {
    let check = |allowed: &[&str], denied: &[&str], url: &str, expect: bool| {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let config = WebConfig {
            allowed_domains: list(allowed),
            denied_domains: list(denied),
            ..WebConfig::default()
        };
        let guard = UrlGuard::new(&config).unwrap();
        assert_eq!(
            guard.check(url).is_ok(),
            expect,
            "{allowed:?} {denied:?} {url}"
        );
    };
    check(&[], &[], "https://a.org/", true);
    check(&["a.org"], &[], "https://a.org/", true);
    check(&["a.org"], &[], "https://A.ORG./", true);
    check(&["a.org"], &[], "https://b.a.org/", true);
    check(&["*.A.org."], &[], "https://b.a.org/", true);
    check(&["a.org"], &[], "https://ba.org/", false);
    check(&["a.org"], &[], "https://a.org.evil.net/", false);
    check(&["a.org"], &[], "https://1.1.1.1/", false);
    check(&["1.1.1.1"], &[], "https://1.1.1.1/", true);
    check(&[], &["1.1.1.1"], "https://0x01010101/", false);
    check(&[], &["a.org"], "https://a.org/", false);
    check(&[], &["a.org"], "https://x.y.a.org./", false);
    check(&[], &["a.org"], "https://ba.org/", true);
    check(&["a.org"], &["b.a.org"], "https://b.a.org/", false);
    check(&["a.org"], &["b.a.org"], "https://c.a.org/", true);
    check(&["org"], &[], "https://c.a.org/", true);
    check(&["bücher.org"], &[], "https://BÜCHER.org/", true);
    // An allowed entry does not widen the reach.
    check(
        &["127.0.0.1", "localhost", "local"],
        &[],
        "https://127.0.0.1/",
        false,
    );
    check(
        &["127.0.0.1", "localhost", "local"],
        &[],
        "https://localhost/",
        false,
    );
    check(
        &["127.0.0.1", "localhost", "local"],
        &[],
        "https://a.local/",
        false,
    );
}

/// Proves WEB-9: an invalid entry does not make the list empty.
#[test]
fn invalid_domain_is_an_error() {
    for entry in [
        "",
        "*",
        "*.",
        "a..b",
        "a b",
        "https://a.org",
        "a.org/x",
        "a.org,b.org",
        "*.*.org",
    ] {
        for denied in [false, true] {
            let mut config = WebConfig::default();
            let list = if denied {
                &mut config.denied_domains
            } else {
                &mut config.allowed_domains
            };
            list.push(entry.to_owned());
            let error = UrlGuard::new(&config)
                .err()
                .unwrap_or_else(|| panic!("{entry:?} was taken"));
            assert!(error.to_string().contains("is not a domain"), "{error}");
        }
    }
}

/// Formats an IPv4 address in one of the ways that a URL permits.
fn spell(address: Ipv4Addr, way: usize) -> String {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    let wide = |text: String, zero: u32| -> String {
        let digit = |c: char| c.to_digit(10).and_then(|n| char::from_u32(zero + n));
        text.chars().map(|c| digit(c).unwrap_or(c)).collect()
    };
    match way {
        0 => format!("{a}.{b}.{c}.{d}"),
        1 => format!("{bits}"),
        2 => format!("{bits:#x}"),
        3 => format!("0{bits:o}"),
        4 => format!("{a}.{}", bits & 0xff_ffff),
        5 => format!("{a}.{b}.{}", bits & 0xffff),
        6 => format!("{a:#x}.0{b:o}.{c}.{d:#X}"),
        7 => format!("{a}.{b}.{c}.{d}."),
        8 => wide(format!("{a}.{b}.{c}.{d}"), '０' as u32),
        9 => format!("{a}。{b}．{c}｡{d}"),
        10 => wide(format!("{a}.{b}.{c}.{d}"), '𝟎' as u32),
        11 => format!("{a}.{b}.{c}.{d}")
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect(),
        12 => format!("[::ffff:{address}]"),
        13 => format!("[::{address}]"),
        14 => format!("[64:ff9b::{address}]"),
        15 => format!("[2002:{:x}:{:x}::1]", bits >> 16, bits & 0xffff),
        16 => format!("[::ffff:0:{:x}:{:x}]", bits >> 16, bits & 0xffff),
        17 => format!("[2001:0:{:x}:{:x}::f7f7:f7f7]", bits >> 16, bits & 0xffff),
        18 => format!("0x{:0>12x}", bits),
        _ => format!("{a}.{b:#o}.{c}.{d}").replace("0o", "0"),
    }
}

proptest! {
    /// Proves WEB-3, WEB-4: any spelling of an address is checked as that address.
    #[test]
    fn no_spelling_of_a_refused_address_is_accepted(
        bits in prop_oneof![
            any::<u32>(),
            (0_u32..1 << 24).prop_map(|low| 127 << 24 | low),
            (0_u32..1 << 16).prop_map(|low| 0xc0a8 << 16 | low),
            (0_u32..1 << 16).prop_map(|low| 0xa9fe << 16 | low),
            (0_u32..1 << 20).prop_map(|low| 0xac10 << 16 | low),
        ],
        way in 0_usize..20,
    ) {
        let address = Ipv4Addr::from_bits(bits);
        let url = format!("https://{}/", spell(address, way));
        let allowed = guard().check(&url).is_ok();
        prop_assert_eq!(allowed, is_public(address.into()), "{}", url);
    }

    /// Proves WEB-3, WEB-4: an accepted URL has a name, or an address that may be reached.
    #[test]
    fn refused_address_is_never_accepted(url in "(https?:)?[/\\\\]{0,3}[0-9a-fx.:@\\[\\]%①。０-９]{0,24}(\\.local|\\.org|localhost)?\\.?(:[0-9]{1,5})?(/.*)?") {
        if let Ok(target) = guard().check(&url) {
            prop_assert_eq!(target.url.scheme(), "https");
            prop_assert_eq!(target.url.username(), "");
            match target.host {
                TargetHost::Address(address) => prop_assert!(is_public(address)),
                TargetHost::Name(name) => {
                    prop_assert_eq!(target.url.host_str(), Some(name.as_str()));
                    prop_assert!(name.contains('.') && !name.ends_with('.'));
                    for ending in [".localhost", ".local", ".internal"] {
                        prop_assert!(!name.ends_with(ending));
                    }
                    prop_assert!(name.parse::<IpAddr>().is_err());
                }
            }
        }
    }

    /// Proves WEB-4.
    #[test]
    fn ipv6_outside_of_global_unicast_is_judged_by_its_embedded_address(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let global = address.segments()[0] >> 13 == 1;
        let carries = matches!(address.segments(), [0, 0, 0, 0, ..] | [0x64, 0xff9b, ..]);
        prop_assert!(global || carries || !is_public(address.into()), "{}", address);
    }
}
