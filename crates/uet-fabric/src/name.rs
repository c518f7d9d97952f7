use crate::peers::identity;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The length of an endpoint's name in bytes.
pub const NAME_LENGTH: usize = 40;

/// The first bytes of a name, with its version.
const MAGIC: [u8; 4] = *b"UET\x01";

/// The name of an endpoint: everything that a peer needs to reach it. `fi_getname` returns it.
///
/// ```
/// use uet_fabric::Name;
///
/// let name = Name { address: "127.0.0.2:4793".parse().unwrap(), job: 1, pid: 7, index: 3, generation: 0 };
/// assert_eq!(Name::from_bytes(&name.to_bytes()), Some(name));
/// assert_eq!(name.to_string(), "uet://127.0.0.2:4793/job/1/pid/7/index/3");
/// assert_eq!(Name::from_bytes(&[0; 40]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The address and the UDP port.
    pub address: SocketAddr,
    /// The job, 24 bits.
    pub job: u32,
    /// PIDonFEP: the number of the process, 12 bits.
    pub pid: u16,
    /// The resource index, 12 bits.
    pub index: u16,
    /// The generation of the resource index.
    pub generation: u8,
}

impl Name {
    /// Returns the bytes that the application exchanges.
    pub fn to_bytes(&self) -> [u8; NAME_LENGTH] {
        let ip = match self.address.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let parts: [&[u8]; 7] = [
            &MAGIC,
            &self.job.to_be_bytes(),
            &self.address.port().to_be_bytes(),
            &self.pid.to_be_bytes(),
            &self.index.to_be_bytes(),
            &[self.generation, 0],
            &ip.octets(),
        ];
        let mut bytes = [0; NAME_LENGTH];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    /// Reads a name; `None` if the bytes are no name of this version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (job, rest) = rest.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let (pid, rest) = rest.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let ([generation, _], rest) = rest.split_first_chunk()?;
        let (ip, _) = rest.split_first_chunk::<16>()?;
        let ip = Ipv6Addr::from(*ip);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        Some(Name {
            address: SocketAddr::new(ip, u16::from_be_bytes(*port)),
            job: u32::from_be_bytes(*job),
            pid: u16::from_be_bytes(*pid),
            index: u16::from_be_bytes(*index),
            generation: *generation,
        })
    }

    /// Returns the address by which the model knows the NIC of this endpoint.
    pub(crate) fn identity(&self) -> IpAddr {
        identity(self.address)
    }

    /// Returns the `initiator` field of its requests, by which receives from one peer match. Public sources leave its
    /// value to the provider: here it is a hash of the name.
    pub(crate) fn initiator(&self) -> u32 {
        let hash = self.to_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        (hash >> 32) as u32 ^ hash as u32
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name { address, job, pid, index, .. } = self;
        write!(f, "uet://{address}/job/{job}/pid/{pid}/index/{index}")
    }
}
