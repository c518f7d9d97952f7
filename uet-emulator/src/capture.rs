//! What passed, as pcapng: whole frames, with comments.

use crate::classes::Classes;
use core::net::IpAddr;
use core::time::Duration;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError, PcapResult};
use std::io::{self, Write};
use uet_model::{Packet, Time, Trimmed};
use uet_wire::outer::{Ethernet, Ipv4, Ipv6, UDP_PORT, Udp};
use uet_wire::{Frame, Options, PacketMut, Start, TrailerKind, WriteError};

/// How packets look around UET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The DSCPs.
    pub classes: Classes,
    /// Whether packets end with a CRC.
    pub crc: bool,
    /// The UDP port that they go to.
    pub port: u16,
}

impl Default for Outer {
    /// The default classes, no CRC, the registered port.
    fn default() -> Self {
        Outer { classes: Classes::default(), crc: false, port: UDP_PORT }
    }
}

/// A packet to be written, and what the network does to it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When it was sent.
    pub at: Time,
    /// The packet as it was sent.
    pub packet: &'a Packet,
    /// Whether it is marked on its way.
    pub marked: bool,
    /// Whether it is cut on its way: to how many bytes behind the IP header, and where.
    pub trim: Option<(u16, Trimmed)>,
    /// The bit of it that changes on its way, counted from the first of UET.
    pub corrupt: Option<usize>,
    /// What is said about it.
    pub comment: &'a str,
}

impl<'a> Record<'a> {
    /// A packet to which nothing happens.
    pub fn new(at: Time, packet: &'a Packet) -> Self {
        Record { at, packet, marked: false, trim: None, corrupt: None, comment: "" }
    }
}

/// A pcapng file of Ethernet frames that is being written.
///
/// ```
/// use uet_emulator::capture::{Capture, Outer, Record};
/// use uet_model::{Packet, Time};
///
/// let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack)?;
/// let mut capture = Capture::new(Box::new(std::io::sink()), Outer::default())?;
/// capture.write(&Record { comment: "drop 5%", ..Record::new(Time(1_000), &packet) });
/// assert_eq!(capture.finish()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Capture {
    writer: PcapNgWriter<Box<dyn Write + Send>>,
    outer: Outer,
    written: u64,
    failed: Option<io::Error>,
}

impl core::fmt::Debug for Capture {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Capture").field("written", &self.written).field("failed", &self.failed).finish()
    }
}

impl Capture {
    /// Starts a file.
    pub fn new(file: Box<dyn Write + Send>, outer: Outer) -> io::Result<Self> {
        Self::begin(file, outer).map_err(into_io)
    }

    fn begin(file: Box<dyn Write + Send>, outer: Outer) -> PcapResult<Self> {
        // One byte order everywhere: the same packets are the same bytes.
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication("uet".into())],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(file, section)?;
        let options =
            vec![InterfaceDescriptionOption::IfName("uet".into()), InterfaceDescriptionOption::IfTsResol(9)];
        let interface = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
        writer.write_pcapng_block(interface)?;
        Ok(Capture { writer, outer, written: 0, failed: None })
    }

    /// Writes a packet. After a failure nothing more is written: [`finish`](Self::finish) tells.
    pub fn write(&mut self, record: &Record<'_>) {
        // What cannot be an IP packet, such as one from IPv4 to IPv6, is nowhere on a wire either.
        let Ok(frame) = frame(record, &self.outer) else { return };
        if self.failed.is_some() {
            return;
        }
        match self.block(record, frame) {
            Ok(()) => self.written += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    fn block(&mut self, record: &Record<'_>, frame: Vec<u8>) -> io::Result<()> {
        let comment = EnhancedPacketOption::Comment(record.comment.into());
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(record.at.0),
            original_len: frame.len() as u32,
            data: frame.into(),
            options: if record.comment.is_empty() { vec![] } else { vec![comment] },
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(into_io)
    }

    /// Hands on what is in memory, so that the file can be read while it is being written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// Ends the file, and says how many packets are in it.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.get_mut().flush().map(|()| self.written),
        }
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// The Ethernet frame of a packet, as the network leaves it.
pub fn frame(record: &Record<'_>, outer: &Outer) -> Result<Vec<u8>, WriteError> {
    let Record { packet, .. } = record;
    let uet = packet.to_wire();
    let frame = Frame::opaque(&uet).udp_to(packet.entropy, outer.port);
    let (frame, ip) = match (packet.src, packet.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => (frame.ipv4(src, dst), Ipv4::LAYOUT),
        (IpAddr::V6(src), IpAddr::V6(dst)) => (frame.ipv6(src, dst), Ipv6::LAYOUT),
        _ => return Err(WriteError::Mismatch { field: "ip.src", with: "ip.dst" }),
    };
    let frame = frame.dscp(outer.classes.dscp(packet)).ecn(Classes::ecn(packet));
    let frame = frame.ethernet(mac(packet.src), mac(packet.dst));
    // A switch takes the trailer of what it trims.
    let crc = outer.crc && packet.trimmed.is_none();
    let frame = if crc { frame.crc() } else { frame };
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes)?;

    if let Some(bit) = record.corrupt {
        let start = Ethernet::LAYOUT.bytes + ip.bytes + Udp::LAYOUT.bytes;
        if let Some(byte) = bytes.get_mut(start + bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
    let trailer = if crc { TrailerKind::Crc } else { TrailerKind::None };
    let options = Options { udp_port: outer.port, trailer, ..Options::default() };
    if let Some((size, place)) = record.trim {
        let cut = Packet { trimmed: Some(place), head: Default::default(), ..(*packet).clone() };
        let dscp = outer.classes.dscp(&cut);
        let packet = PacketMut::new(Start::Eth, &mut bytes, &options);
        if let Ok(length) = packet.map_err(Into::into).and_then(|packet| packet.trim(size.into(), dscp)) {
            bytes.truncate(length);
        }
    }
    if record.marked {
        // What is trimmed is no longer whole, and has no trailer.
        let options = Options { trailer: TrailerKind::None, ..options };
        if let Ok(mut packet) = PacketMut::new(Start::Eth, &mut bytes, &options) {
            let _ = packet.set_ecn(3);
        }
    }
    // Ethernet wants 60.
    bytes.resize(bytes.len().max(60), 0);
    Ok(bytes)
}

/// A locally administered address that tells the IP address.
fn mac(address: IpAddr) -> [u8; 6] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [2, 0, a, b, c, d]
        }
        IpAddr::V6(address) => {
            let [.., a, b, c, d, e] = address.octets();
            [2, a, b, c, d, e]
        }
    }
}
