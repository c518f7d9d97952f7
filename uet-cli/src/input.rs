//! Where packets come from: captures and hexadecimal text.

use crate::hex;
use crate::json::Record;
use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use uet_wire::Start;

/// Why reading an input ended early. What came before it has been handed out.
#[derive(Debug)]
pub enum InputError {
    /// The system could not read.
    Io(io::Error),
    /// The capture is damaged at this byte (of the uncompressed file).
    Capture {
        /// Where the damaged block starts.
        offset: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a text is not hexadecimal.
    Text {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: hex::HexError,
    },
    /// Whoever was handed the packets could not go on.
    Sink(io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Io(error) | InputError::Sink(error) => error.fmt(f),
            InputError::Capture { offset, why } => write!(f, "damaged at byte {offset}: {why}"),
            InputError::Text { line, why } => write!(f, "line {line}: {why}"),
        }
    }
}

impl std::error::Error for InputError {}

/// Takes each packet, and how many bytes of the input have been read so far.
pub type Sink<'a> = dyn FnMut(Record<'_>, u64) -> io::Result<()> + 'a;

/// The most that a capture may keep of one packet; more is damage.
const LARGEST_BLOCK: usize = 1 << 24;

/// Reads a capture (pcap or pcapng, plain or gzip) or a text of hexadecimal lines, told apart by the first
/// bytes. `start` is what the packets of a text start with; a capture says it itself.
pub fn read(input: impl Read + Send, start: Start, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let mut input = BufReader::new(input);
    let gzip = input.fill_buf().map_err(InputError::Io)?.starts_with(&[0x1f, 0x8b]);
    if gzip {
        read_plain(BufReader::new(MultiGzDecoder::new(input)), start, sink)
    } else {
        read_plain(input, start, sink)
    }
}

fn read_plain(mut input: impl BufRead + Send, start: Start, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let first = input.fill_buf().map_err(InputError::Io)?;
    if is_capture(first) { capture(input, sink) } else { text(input, start, sink) }
}

fn is_capture(first: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xcd, 0x34],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    MAGIC.iter().any(|magic| first.starts_with(magic))
}

/// A packet on each line; empty lines and those that start with `#` are skipped.
fn text(mut input: impl BufRead, start: Start, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let (mut line, mut number, mut read) = (Vec::new(), 0, 0);
    for index in 1.. {
        line.clear();
        match input.read_until(b'\n', &mut line).map_err(InputError::Io)? {
            0 => break,
            length => read += length as u64,
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bytes = hex::decode(line).map_err(|why| InputError::Text { line: index, why })?;
        number += 1;
        let record = Record { number, start, bytes: &bytes, wire: bytes.len(), ..Record::default() };
        sink(record, read).map_err(InputError::Sink)?;
    }
    Ok(())
}

/// An interface of a capture: its link type, and how its clock counts.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Ticks of a second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
}

fn capture(input: impl Read + Send, sink: &mut Sink<'_>) -> Result<(), InputError> {
    const BUFFER: usize = 1 << 17;
    let damaged = |offset, error: &dyn fmt::Display| InputError::Capture { offset, why: error.to_string() };
    let mut reader = create_reader(BUFFER, input).map_err(|error| damaged(0, &problem(&error)))?;
    let mut capacity = BUFFER;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut number = 0;
    loop {
        let (offset, exhausted) = (reader.consumed(), reader.reader_exhausted());
        match reader.next() {
            Ok((length, block)) => {
                let mut hand = |interface: Interface, time, data: &[u8], wire: u32| {
                    number += 1;
                    let record = record(interface.link, data, wire as usize);
                    let record = Record { number, time, ..record };
                    sink(record, (offset + length) as u64).map_err(InputError::Sink)
                };
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        let resolution =
                            if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                        interfaces = vec![Interface { link: header.network, resolution, offset: 0 }];
                    }
                    PcapBlockOwned::Legacy(block) => {
                        if let [interface, ..] = interfaces[..] {
                            let ticks = u64::from(block.ts_usec);
                            let time = time(block.ts_sec.into(), ticks, interface.resolution);
                            hand(interface, time, block.data, block.origlen)?;
                        }
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(block)) => interfaces.push(Interface {
                        link: block.linktype,
                        resolution: block.ts_resolution().unwrap_or(1_000_000),
                        offset: block.if_tsoffset,
                    }),
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        let Some(interface) = interfaces.get(block.if_id as usize) else {
                            let why = format!(
                                "a packet of interface {}, which has not been described",
                                block.if_id
                            );
                            return Err(InputError::Capture { offset, why });
                        };
                        let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        let seconds = (ticks / interface.resolution) as i64;
                        let time = time(
                            seconds.saturating_add(interface.offset),
                            ticks % interface.resolution,
                            interface.resolution,
                        );
                        let Some(data) = block.data.get(..block.caplen as usize) else {
                            let why = format!("a packet of {} bytes in a shorter block", block.caplen);
                            return Err(InputError::Capture { offset, why });
                        };
                        hand(*interface, time, data, block.origlen)?;
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                        if let [interface, ..] = interfaces[..] {
                            let kept = block.data.len().min(block.origlen as usize);
                            hand(interface, None, &block.data[..kept], block.origlen)?;
                        }
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) if exhausted => {
                return Err(damaged(offset, &"the file ends in the middle of a block"));
            }
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| damaged(offset, &problem(&error)))?;
            }
            Err(PcapError::BufferTooSmall) if capacity < LARGEST_BLOCK => {
                capacity *= 2;
                reader.grow(capacity);
                reader.refill().map_err(|error| damaged(offset, &problem(&error)))?;
            }
            Err(error) => return Err(damaged(offset, &problem(&error))),
        }
    }
}

/// What the reader of captures says, in words.
fn problem<I>(error: &PcapError<I>) -> &'static str {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) | PcapError::Eof => {
            "the file ends in the middle of a block"
        }
        PcapError::BufferTooSmall => "a block of more than 16 MiB",
        PcapError::ReadError => "it cannot be read, or the compressed data is damaged",
        PcapError::HeaderNotRecognized => "it starts like a capture and goes on otherwise",
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "this is no block of a capture",
    }
}

fn time(seconds: i64, ticks: u64, resolution: u64) -> Option<Timestamp> {
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(resolution.max(1));
    Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()
}

/// A packet behind the header of its link type.
fn record(link: Linktype, data: &[u8], wire: usize) -> Record<'_> {
    let behind = |length: usize, start| {
        let (header, bytes) = data.split_at(length.min(data.len()));
        Record { link: header, start, bytes, wire: wire.saturating_sub(header.len()), ..Record::default() }
    };
    let ethertype = |at: usize| match data.get(at..at + 2) {
        Some(&[high, low]) => Start::EtherType(u16::from_be_bytes([high, low])),
        _ => Start::Other,
    };
    match link {
        Linktype::ETHERNET => behind(0, Start::Eth),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => behind(0, Start::Ip),
        Linktype::LINUX_SLL => behind(16, ethertype(14)),
        Linktype::LINUX_SLL2 => behind(20, ethertype(0)),
        // The address family, in the byte order of whoever captured.
        Linktype::NULL | Linktype::LOOP => match data.first_chunk().map(|family| u32::from_ne_bytes(*family))
        {
            Some(family) if is_ip_family(family) || is_ip_family(family.swap_bytes()) => behind(4, Start::Ip),
            _ => behind(4, Start::Other),
        },
        _ => behind(0, Start::Other),
    }
}

/// IPv4, and IPv6 as Linux, the BSDs and macOS number it.
fn is_ip_family(family: u32) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}
