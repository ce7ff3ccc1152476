//! The classification of IP addresses: whether they are on the public Internet.
//!
//! The ranges are those of the IANA special-purpose registries (RFC 6890). For an IPv6 address that embeds an
//! IPv4 address, the IPv4 address decides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that a client may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressRule {
    /// Addresses of the public Internet.
    Public,
    /// Also 127.0.0.1, for the server of a test.
    #[cfg(debug_assertions)]
    PublicOrTestServer,
}

impl AddressRule {
    /// Whether `address` may be connected to.
    pub(crate) fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            #[cfg(debug_assertions)]
            Self::PublicOrTestServer => address == Ipv4Addr::LOCALHOST || is_public(address),
        }
    }
}

/// IPv4 ranges that are not globally reachable, as network and prefix length.
const PRIVATE_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and the broadcast address.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// IPv6 ranges inside 2000::/3 that are not globally reachable. No address outside 2000::/3 is reachable, except
/// those that embed an IPv4 address.
const PRIVATE_V6: &[(Ipv6Addr, u32)] = &[
    // Benchmarking.
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Global unicast: all addresses that are assigned to the public Internet.
const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Whether `address` is on the public Internet.
///
/// For an IPv6 address that embeds an IPv4 address, the IPv4 address decides.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !PRIVATE_V4
        .iter()
        .any(|(network, length)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *length)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(carried) = carried(address) {
        return !carried.is_empty() && carried.into_iter().all(is_public_v4);
    }
    is_in(address, GLOBAL_UNICAST) && !PRIVATE_V6.iter().any(|range| is_in(address, *range))
}

fn is_in(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
}

/// Returns the IPv4 addresses that `address` embeds, if it has a form that embeds any.
fn carried(address: Ipv6Addr) -> Option<Vec<Ipv4Addr>> {
    let bytes = address.octets();
    let v4 = |at: [usize; 4]| Ipv4Addr::from(at.map(|index| bytes[index]));
    let last = v4([12, 13, 14, 15]);
    match address.segments() {
        // IPv4-compatible (RFC 4291, which includes `::` and `::1`), IPv4-mapped, IPv4-translated (RFC 2765).
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(vec![last]),
        // NAT64, well-known prefix (RFC 6052).
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(vec![last]),
        // NAT64, local prefixes (RFC 8215). The position of the IPv4 address depends on the prefix length that
        // the operator chose (RFC 6052, 2.2), so every position is checked. 0.0.0.0/8 at a position means that it
        // holds no address.
        [0x64, 0xff9b, 1, ..] => {
            let mut places = vec![
                v4([6, 7, 9, 10]),
                v4([7, 9, 10, 11]),
                v4([9, 10, 11, 12]),
                last,
            ];
            places.retain(|place| place.octets()[0] != 0);
            Some(places)
        }
        // 6to4 (RFC 3056).
        [0x2002, ..] => Some(vec![v4([2, 3, 4, 5])]),
        // Teredo (RFC 4380): the server, and the client with inverted bits.
        [0x2001, 0, ..] => Some(vec![v4([4, 5, 6, 7]), Ipv4Addr::from_bits(!last.to_bits())]),
        _ => None,
    }
}
