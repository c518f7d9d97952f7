//! Formats of addresses in an address vector.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use uet_fabric::Name;
use uet_fi::caller::AddressFormat;

/// The families AF_INET and AF_INET6 of Linux.
const INET: u16 = 2;
const INET6: u16 = 10;

/// A format of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `struct sockaddr_in` or `struct sockaddr_in6`.
    Socket,
    /// The format of this project's provider.
    Uet,
    /// Bytes and fields.
    Template(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    Field { field: Field, little_endian: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Ip,
    Ip6,
    Port,
    Job,
    Process,
    Index,
    Generation,
}

const FIELDS: [(&str, Field); 7] = [
    ("ip", Field::Ip),
    ("ip6", Field::Ip6),
    ("port", Field::Port),
    ("job", Field::Job),
    ("process", Field::Process),
    ("index", Field::Index),
    ("generation", Field::Generation),
];

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sockaddr" => Ok(Format::Socket),
            "uet" => Ok(Format::Uet),
            _ => template(text).map(Format::Template),
        }
    }
}

fn template(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find('{').unwrap_or(rest.len());
        let (bytes, after) = rest.split_at(digits);
        if !bytes.is_empty() {
            let bytes = serde_json::from_value::<uet_control::Hex>(bytes.into()).map_err(|_| {
                format!("'{bytes}' is neither `uet`, `sockaddr` nor an even number of hexadecimal digits")
            })?;
            pieces.push(Piece::Bytes(bytes.0));
        }
        let Some(field) = after.strip_prefix('{') else { break };
        let (name, after) = field.split_once('}').ok_or("a field lacks its closing brace")?;
        let (name, little_endian) = name.strip_suffix(":le").map_or((name, false), |name| (name, true));
        let known = FIELDS.iter().find(|(known, _)| *known == name);
        let (_, field) = known.ok_or_else(|| {
            let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            format!("there is no field '{name}'; the fields are {}", names.join(", "))
        })?;
        pieces.push(Piece::Field { field: *field, little_endian });
        rest = after;
    }
    Ok(pieces)
}

impl Format {
    /// Returns the format of a provider.
    pub(super) fn of(format: AddressFormat) -> Self {
        match format {
            AddressFormat::Uet => Format::Uet,
            AddressFormat::Socket | AddressFormat::Other(_) => Format::Socket,
        }
    }

    /// Returns whether addresses include this field.
    pub(super) fn has(&self, wanted: Field) -> bool {
        match self {
            Format::Socket => false,
            Format::Uet => true,
            Format::Template(pieces) => {
                let is_it = |piece: &Piece| matches!(piece, Piece::Field { field, .. } if *field == wanted);
                pieces.iter().any(is_it)
            }
        }
    }

    /// Returns the address of a peer.
    pub(super) fn write(&self, peer: &Name) -> Vec<u8> {
        match self {
            Format::Socket => socket_address(peer.address),
            Format::Uet => peer.to_bytes().to_vec(),
            Format::Template(pieces) => pieces.iter().flat_map(|piece| piece.bytes(peer)).collect(),
        }
    }

    /// Returns the address and port in an endpoint's name, and the rest of the name if the format has it.
    pub(super) fn read(&self, name: &[u8]) -> Option<(SocketAddr, Option<Name>)> {
        match self {
            Format::Socket => read_socket_address(name).map(|address| (address, None)),
            Format::Uet => Name::from_bytes(name).map(|name| (name.address, Some(name))),
            Format::Template(_) => None,
        }
    }
}

impl Piece {
    fn bytes(&self, peer: &Name) -> Vec<u8> {
        let (field, little_endian) = match self {
            Piece::Bytes(bytes) => return bytes.clone(),
            Piece::Field { field, little_endian } => (field, *little_endian),
        };
        let mut bytes = match (field, peer.address.ip()) {
            (Field::Ip, IpAddr::V4(ip)) => ip.octets().to_vec(),
            (Field::Ip | Field::Ip6, IpAddr::V6(ip)) => ip.octets().to_vec(),
            (Field::Ip6, IpAddr::V4(ip)) => ip.to_ipv6_mapped().octets().to_vec(),
            (Field::Port, _) => peer.address.port().to_be_bytes().to_vec(),
            (Field::Job, _) => peer.job.to_be_bytes().to_vec(),
            (Field::Process, _) => peer.pid.to_be_bytes().to_vec(),
            (Field::Index, _) => peer.index.to_be_bytes().to_vec(),
            (Field::Generation, _) => vec![peer.generation],
        };
        if little_endian {
            bytes.reverse();
        }
        bytes
    }
}

fn socket_address(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&INET.to_ne_bytes()[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [&INET6.to_ne_bytes()[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat(),
    }
}

fn read_socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let ip: IpAddr = match u16::from_ne_bytes(*family) {
        INET => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
        INET6 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "55455401{job}{port}{process}{index}{generation}00{ip6}0000000000000000";

    fn peer(address: &str) -> Name {
        Name { address: address.parse().unwrap(), job: 101, pid: 2, index: 10, generation: 3 }
    }

    #[test]
    fn template_writes_the_name_of_the_own_provider() {
        let template: Format = NAME.parse().unwrap();
        for address in ["10.0.0.7:4793", "[fd00::7]:4793"] {
            let bytes = template.write(&peer(address));
            assert_eq!(bytes, Format::Uet.write(&peer(address)));
            assert_eq!(Format::Uet.read(&bytes), Some((address.parse().unwrap(), Some(peer(address)))));
        }
        assert!(template.has(Field::Generation) && !Format::Socket.has(Field::Index));
        let little: Format = "{port:le}{ip}".parse().unwrap();
        assert_eq!(little.write(&peer("1.2.3.4:258")), [2, 1, 1, 2, 3, 4]);
    }

    /// The template of docs/reference-provider.md has the length that the provider demands.
    #[test]
    fn template_writes_a_name_of_the_reference_provider() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference-provider.md");
        let page = std::fs::read_to_string(page).unwrap();
        let template = page.lines().find_map(|line| line.split("--address-format '").nth(1)).unwrap();
        let template: Format = template.split('\'').next().unwrap().parse().unwrap();
        let bytes = template.write(&peer("10.9.0.2:4793"));
        assert_eq!(
            (bytes.len(), &bytes[6..10], &bytes[16..20]),
            (32, &[0, 2, 0, 10][..], &[10, 9, 0, 2][..])
        );
    }

    #[test]
    fn socket_addresses_are_those_of_linux() {
        let bytes = Format::Socket.write(&peer("10.0.0.7:4793"));
        assert_eq!(bytes, [2, 0, 0x12, 0xb9, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        for address in ["10.0.0.7:4793", "[fd00::7]:4793"] {
            let bytes = Format::Socket.write(&peer(address));
            assert_eq!(Format::Socket.read(&bytes), Some((address.parse().unwrap(), None)));
        }
        assert_eq!(Format::Socket.read(&[9, 0, 1, 2]), None);
    }

    #[test]
    fn wrong_templates_are_refused() {
        for (bad, why) in
            [("{ip", "brace"), ("{rank}", "rank"), ("5", "hexadecimal"), ("sockadr", "sockaddr")]
        {
            let error = bad.parse::<Format>().unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
