use crate::error::{Code, Error, Result};
use crate::settings::Settings;
use core::net::IpAddr;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// An address of this machine on which a domain can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface, for example `eth0`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// The number of bits of the network's prefix.
    pub prefix: u32,
    /// True for the loopback interface.
    pub is_loopback: bool,
}

impl Interface {
    /// Lists the interfaces that are up, loopback last. `FI_UET_IFACE` restricts the list to an interface or an
    /// address; it is then never empty.
    pub fn list(settings: &Settings) -> Result<Vec<Interface>> {
        let all = getifaddrs().map_err(|error| Error::new(Code(error as i32), "cannot list interfaces"))?;
        let mut found: Vec<Interface> = all.filter_map(|entry| Interface::of(&entry)).collect();
        found.sort_by_key(|interface| (interface.is_loopback, interface.address.is_ipv6()));
        let Some(wanted) = &settings.interface else { return Ok(found) };
        let address: Option<IpAddr> = wanted.parse().ok();
        // Every address of 127.0.0.0/8 belongs to the loopback interface.
        if let Some(address) = address.filter(IpAddr::is_loopback) {
            let lo = found.into_iter().find(|interface| interface.is_loopback);
            return Ok(lo.map(|lo| Interface { address, prefix: 32, ..lo }).into_iter().collect());
        }
        found.retain(|interface| interface.name == *wanted || Some(interface.address) == address);
        if found.is_empty() {
            let message = format!("FI_UET_IFACE={wanted}: no interface that is up has this name or address");
            return Err(Error::new(Code::ENODATA, message));
        }
        Ok(found)
    }

    fn of(entry: &nix::ifaddrs::InterfaceAddress) -> Option<Interface> {
        let bits = |address: &nix::sys::socket::SockaddrStorage| -> Option<IpAddr> {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        };
        let address = entry.address.as_ref().and_then(bits)?;
        let is_link_local = matches!(address, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80);
        let prefix = match entry.netmask.as_ref().and_then(bits)? {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        let is_loopback = entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let is_up = entry.flags.contains(InterfaceFlags::IFF_UP);
        let name = entry.interface_name.clone();
        (is_up && !is_link_local).then_some(Interface { name, address, prefix, is_loopback })
    }

    /// Returns the network of the address, such as `10.0.0.0/24`.
    pub fn network(&self) -> String {
        let network = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        format!("{network}/{}", self.prefix)
    }
}
