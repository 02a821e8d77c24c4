//! Client addresses in Apache's notation: an address, a network, a network with a mask, or the first octets of an
//! address.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr};

/// A network of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network(IpNet);

impl Network {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither an address nor a network");
        let Some((address, mask)) = text.split_once('/') else {
            return text
                .parse::<IpAddr>()
                .ok()
                .map(IpNet::from)
                .or_else(|| beginning(text))
                .map(Self)
                .ok_or_else(wrong);
        };
        if let Ok(mask) = mask.parse::<Ipv4Addr>() {
            let address = address.parse::<Ipv4Addr>().map_err(|_| wrong())?;
            return Ipv4Net::with_netmask(address, mask).map(|net| Self(net.into())).map_err(|_| wrong());
        }
        let length: u8 = mask.parse().map_err(|_| wrong())?;
        let net = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Ipv4Net::new(address, length).map(IpNet::from).ok(),
            Ok(IpAddr::V6(address)) => Ipv6Net::new(address, length).map(IpNet::from).ok(),
            Err(_) => None,
        };
        net.map(Self).ok_or_else(wrong)
    }

    /// `true` if the network contains the client. IPv4 addresses may be IPv4-mapped.
    pub(crate) fn contains(self, client: IpAddr) -> bool {
        self.0.contains(&client.to_canonical())
            || self.0.contains(&client)
            || matches!((self.0, client.to_canonical()), (IpNet::V6(net), IpAddr::V4(v4))
                if net.contains(&v4.to_ipv6_mapped()))
    }
}

/// `10.1` and `10.1.`: all addresses that begin with these octets.
fn beginning(text: &str) -> Option<IpNet> {
    let parts: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let mut octets = [0; 4];
    for (octet, part) in octets.iter_mut().zip(&parts) {
        *octet = part.parse().ok()?;
    }
    Ipv4Net::new(octets.into(), parts.len() as u8 * 8).ok().map(IpNet::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_in_every_spelling() {
        for (text, yes, no) in [
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1", "10.1.2.3", "10.2.0.0"),
            ("10.1.", "10.1.2.3", "10.2.0.0"),
            ("10.0.0.0/8", "10.1.2.3", "11.0.0.0"),
            ("10.1.0.0/255.255.0.0", "10.1.2.3", "10.2.0.0"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::1"),
            ("2001:db8::/32", "2001:db8::1", "2001:db9::1"),
            ("::1", "::1", "::2"),
        ] {
            let network = Network::new(text).unwrap();
            assert!(network.contains(yes.parse().unwrap()), "{text} {yes}");
            assert!(!network.contains(no.parse().unwrap()), "{text} {no}");
        }
        for wrong in ["example.org", "10.1.2.3.4", "10.0.0.0/33", "10.0.0.0/255.0.255.0", "", "300", "a/b"] {
            assert!(Network::new(wrong).is_err(), "{wrong}");
        }
    }
}
