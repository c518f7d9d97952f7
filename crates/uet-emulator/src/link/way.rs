//! A link of either kind: UDP sockets, or frames on an interface.

use super::udp::{UdpLink, Waited};
use crate::classes::Classes;
use crate::frame::Framed;
use crate::nic::Nic;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use uet_control as channel;
use uet_model::Packet;

use super::raw::RawLink;
use crate::frame::{Record, mac_text};

/// A link of either kind.
#[derive(Debug)]
pub enum Link {
    /// UDP sockets.
    Udp(UdpLink),
    /// Frames on an interface.
    Raw(RawLink),
}

impl From<UdpLink> for Link {
    fn from(link: UdpLink) -> Self {
        Link::Udp(link)
    }
}

impl From<RawLink> for Link {
    fn from(link: RawLink) -> Self {
        Link::Raw(link)
    }
}

impl Link {
    /// Returns the UDP port of the link. Packets go to the same port unless a peer has another.
    pub fn port(&self) -> u16 {
        match self {
            Link::Udp(link) => link.local().port(),
            Link::Raw(link) => link.outer().port,
        }
    }

    /// Returns the link description for the control channel.
    pub fn place(&self) -> channel::Link {
        match self {
            Link::Udp(link) => channel::Link::Udp { addr: link.local().ip(), port: link.local().port() },
            Link::Raw(link) => channel::Link::Raw {
                iface: link.interface().to_owned(),
                addr: link.local().first().copied(),
                mac: Some(mac_text(link.mac())),
                port: link.outer().native.is_none().then_some(link.outer().port),
                proto: link.outer().native,
            },
        }
    }

    /// Returns the meaning of DSCPs on it.
    pub fn classes(&self) -> &Classes {
        match self {
            Link::Udp(link) => &link.classes,
            Link::Raw(link) => &link.outer().classes,
        }
    }

    /// Returns the source ports that stand for entropy values, by the remainder of the value; none if the entropy value
    /// itself is the port.
    pub(super) fn source_ports(&self) -> Vec<u16> {
        match self {
            Link::Udp(link) => link.source_ports(),
            Link::Raw(_) => Vec::new(),
        }
    }

    /// Returns the source port of packets with this entropy value.
    pub(super) fn source_port(&self, entropy: u16) -> u16 {
        match self {
            Link::Udp(link) => link.source_port(entropy),
            Link::Raw(_) => entropy,
        }
    }

    /// Returns the capabilities that this link gives a device.
    pub(super) fn claims(&self) -> &'static [&'static str] {
        match self {
            Link::Udp(_) => &["ecn", "dscp"],
            Link::Raw(link) if link.outer().crc => &["ecn", "dscp", "entropy", "trim", "crc"],
            Link::Raw(_) => &["ecn", "dscp", "entropy", "trim"],
        }
    }

    /// Returns the next packet that has arrived, even a malformed one. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Framed>> {
        match self {
            // The system has already checked packets from sockets.
            Link::Udp(link) => Ok(link.receive()?.map(Framed::inside)),
            Link::Raw(link) => link.receive(),
        }
    }

    /// Sends outgoing packets of a NIC, each to its port.
    pub(super) fn send_all(&mut self, packets: &[(Packet, u16)], nic: &mut Nic) {
        match self {
            Link::Udp(link) => link.send_all(packets, |why| nic.count_dropped(why)),
            Link::Raw(link) => {
                for (packet, port) in packets {
                    let ipv6_start = nic.ipv6_start(packet, &link.outer().classes);
                    let corrupt = nic.corrupted_bit(packet);
                    let record = Record { corrupt, ipv6_start, ..Record::new(Default::default(), packet) };
                    if let Err(why) = link.send(&record, *port) {
                        nic.count_dropped(why);
                    }
                }
            }
        }
    }
}

impl Waited for Link {
    fn has_more(&self) -> bool {
        match self {
            Link::Udp(link) => link.has_more(),
            Link::Raw(link) => link.has_more(),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Udp(link) => link.as_fd(),
            Link::Raw(link) => link.as_fd(),
        }
    }
}
