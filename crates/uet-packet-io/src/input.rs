//! Reads packets from captures and hexadecimal text.

use crate::capture::SECRETS_TYPE;
use crate::hex;
use crate::json::{CaptureInterface, Record};
use core::time::Duration;
use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use pcap_parser::pcapng::{InterfaceStatisticsBlock, OptionCode, PcapNGOption};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::ControlFlow;
use uet_wire::Start;

/// The reason why reading stopped early. The caller has already received the packets before it.
#[derive(Debug)]
pub enum InputError {
    /// A system call failed.
    Io(io::Error),
    /// The capture is damaged.
    Capture {
        /// The offset of the damaged block in the uncompressed file, in bytes.
        offset: usize,
        /// The reason.
        why: String,
    },
    /// A line of text is not hexadecimal.
    Text {
        /// The line number, counted from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// The input is neither a capture nor text.
    Unknown,
    /// The input is compressed, but not by gzip.
    Packed(&'static str),
    /// A packet given as digits is not hexadecimal.
    Digits(hex::HexError),
    /// The receiver of the packets failed.
    Sink(io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Io(error) | InputError::Sink(error) => error.fmt(f),
            InputError::Capture { offset, why } => write!(f, "damaged at byte {offset}: {why}"),
            InputError::Text { line, why } => write!(f, "line {line}: {why}"),
            InputError::Unknown => {
                f.write_str("the input is not a capture (pcap, pcapng), nor hexadecimal text")
            }
            InputError::Packed(with) => {
                write!(f, "the input is compressed with {with}: unpack it first, or use gzip")
            }
            InputError::Digits(why) => {
                write!(f, "there is no file of this name, nor is it hexadecimal text: {why}")
            }
        }
    }
}

impl std::error::Error for InputError {}

/// Receives each packet, and returns whether it wants more.
pub type Sink<'a> = dyn FnMut(Record<'_>) -> io::Result<ControlFlow<()>> + 'a;

/// Receives packets while they are read.
pub trait Taker {
    /// Receives a packet, and returns whether it wants more.
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>>;

    /// Called before a packet of a pcapng capture that has a comment.
    fn comment(&mut self, _comment: &str) {}

    /// Called at the begin of a section of a pcapng capture, with its comment; empty if it has none.
    fn section(&mut self, _comment: &str) {}

    /// Called with the key file that a decryption secrets block of a pcapng capture holds.
    fn secrets(&mut self, _key_file: &[u8]) {}

    /// Called when the statistics of a pcapng capture state this number of further packets that it lacks: the interface
    /// or the operating system dropped them.
    fn dropped(&mut self, _packets: u64) {}

    /// Called after all packets available so far. The next packet may take long to arrive.
    fn pause(&mut self) -> io::Result<()>;
}

impl Taker for &mut Sink<'_> {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self(record)
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size limit of a capture block in bytes. A larger block counts as damage.
const LARGEST_BLOCK: usize = 1 << 24;

/// The length limit of a text line in bytes. It protects the memory from files without line ends.
const LONGEST_LINE: u64 = 1 << 20;

/// Reads a capture (pcap or pcapng, plain or gzip) or text with a packet per line. The first bytes of the input select
/// the format. `start` is the first layer of packets in text; a capture states it.
pub fn read(input: impl Read + Send, start: Start, mut sink: &mut Sink<'_>) -> Result<(), InputError> {
    read_live(input, start, &mut sink)
}

/// Reads like [`read`] while others still write to the input. Passes on each packet as soon as it arrives.
pub fn read_live(input: impl Read + Send, start: Start, taker: &mut dyn Taker) -> Result<(), InputError> {
    let (first, input) = peek(input, 2)?;
    if first.starts_with(&[0x1f, 0x8b]) {
        read_plain(MultiGzDecoder::new(BufReader::new(input)), start, taker).map_err(|error| match error {
            InputError::Capture { offset, why } => {
                InputError::Capture { offset, why: why + " (bytes are those of the uncompressed data)" }
            }
            error => error,
        })
    } else {
        read_plain(input, start, taker)
    }
}

fn read_plain(input: impl Read + Send, start: Start, taker: &mut dyn Taker) -> Result<(), InputError> {
    const PACKED: [(&[u8], &str); 4] =
        [(b"PK\x03\x04", "zip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zX", "xz"), (b"BZh", "bzip2")];
    let (first, input) = peek(input, 4)?;
    if let Some((_, with)) = PACKED.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(InputError::Packed(with));
    }
    if is_capture(&first) { capture(input, taker) } else { text(BufReader::new(input), start, taker) }
}

/// Returns the first bytes of an input without consuming them, or fewer if the input is shorter. Accepts inputs that
/// arrive byte by byte.
fn peek<R: Read>(mut input: R, count: usize) -> Result<(Vec<u8>, impl Read + use<R>), InputError> {
    let mut first = Vec::new();
    (&mut input).take(count as u64).read_to_end(&mut first).map_err(InputError::Io)?;
    Ok((first.clone(), Cursor::new(first).chain(input)))
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

/// Reads a packet from each line. Skips empty lines and lines that start with `#`.
fn text(mut input: BufReader<impl Read>, start: Start, taker: &mut dyn Taker) -> Result<(), InputError> {
    let (mut line, mut number) = (Vec::new(), 0);
    for index in 1.. {
        line.clear();
        if !input.buffer().contains(&b'\n') {
            taker.pause().map_err(InputError::Sink)?;
        }
        let length = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(InputError::Io)?;
        if length == 0 {
            break;
        }
        let damaged = |why: String| Err(InputError::Text { line: index, why });
        if length as u64 == LONGEST_LINE {
            return damaged(format!("the line is longer than the limit of {LONGEST_LINE} bytes"));
        }
        let Ok(line) = std::str::from_utf8(&line) else {
            return if index == 1 {
                Err(InputError::Unknown)
            } else {
                damaged("the line is not UTF-8 text".to_owned())
            };
        };
        // Some editors write a byte order mark at the start of the text.
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bytes = match hex::decode(line) {
            Ok(bytes) => bytes,
            Err(_) if index == 1 && line.contains(char::is_control) => return Err(InputError::Unknown),
            Err(why) if number == 0 => {
                return damaged(format!(
                    "the input is not a capture (pcap, pcapng), nor hexadecimal text: {why}"
                ));
            }
            Err(why) => return damaged(why.to_string()),
        };
        number += 1;
        let record = Record { number, start, bytes: &bytes, wire: bytes.len(), ..Record::default() };
        if taker.packet(record).map_err(InputError::Sink)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// An interface of a capture: its link type and its clock.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Clock ticks per second.
    resolution: u64,
    /// The offset of the clock in seconds.
    offset: i64,
    /// The most bytes that the capture keeps of a packet.
    snap: usize,
    /// The number of packets dropped so far.
    dropped: u64,
}

/// The state that earlier blocks of a capture define for later ones.
#[derive(Default)]
struct Section {
    /// The byte order of a pcapng file. `None` for pcap.
    blocks: Option<ByteOrder>,
    interfaces: Vec<Interface>,
    /// The names of the interfaces of a pcapng file.
    names: Vec<Option<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Big,
    Little,
}

impl Section {
    /// Returns true if a block states a length below the size of its own length fields. The reader (pcap-parser 0.17)
    /// subtracts without a check in process information blocks.
    fn is_too_short(&self, block: &[u8]) -> bool {
        let Some([_, _, _, _, length @ ..]) = block.first_chunk::<8>() else { return false };
        match self.blocks {
            Some(ByteOrder::Big) => u32::from_be_bytes(*length) < 12,
            Some(ByteOrder::Little) => u32::from_le_bytes(*length) < 12,
            None => false,
        }
    }

    /// Returns the interface of a packet, if there are several.
    fn interface(&self, block: &PcapBlockOwned<'_>) -> Option<CaptureInterface<'_>> {
        let number = match block {
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => packet.if_id,
            _ => 0,
        };
        let name = self.names.get(number as usize).filter(|_| self.names.len() > 1)?;
        Some(CaptureInterface { number, name: name.as_deref() })
    }

    /// Records how many packets an interface has dropped. Returns the number since its previous statistics.
    fn dropped(&mut self, statistics: &InterfaceStatisticsBlock<'_>) -> u64 {
        let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) else { return 0 };
        let counts = [statistics.isb_ifdrop(), statistics.isb_osdrop()].into_iter().flatten().flatten();
        // The reader always interprets them as little endian.
        let counts = counts.map(|count| match self.blocks {
            Some(ByteOrder::Big) => count.swap_bytes(),
            _ => count,
        });
        let dropped = counts.fold(0, u64::saturating_add).max(interface.dropped);
        dropped - core::mem::replace(&mut interface.dropped, dropped)
    }
}

/// Maximum number of decryption secrets blocks with key files in a capture.
const KEY_FILES: usize = 64;

/// Maximum length of these key files in bytes, together.
const KEY_BYTES: usize = 4 << 20;

fn capture(input: impl Read + Send, taker: &mut dyn Taker) -> Result<(), InputError> {
    const BUFFER: usize = 1 << 17;
    let damaged = |offset, why: &str| InputError::Capture { offset, why: why.to_owned() };
    // The reader examines its first bytes once and expects the whole file header there.
    let (first, input) = peek(input, 24)?;
    let (_, input) = peek(input, header_length(&first).min(BUFFER))?;
    let mut reader = create_reader(BUFFER, input).map_err(|error| damaged(0, problem(&error)))?;
    let mut capacity = BUFFER;
    let mut section = Section::default();
    let mut number = 0;
    let (mut key_files, mut key_bytes) = (0, 0);
    loop {
        let offset = reader.consumed();
        if section.is_too_short(reader.data()) {
            return Err(damaged(offset, "a block is shorter than 12 bytes"));
        }
        match reader.next() {
            Ok((length, block)) => {
                if let PcapBlockOwned::NG(Block::SectionHeader(header)) = &block {
                    taker.section(&comment(&header.options).unwrap_or_default());
                }
                if let PcapBlockOwned::NG(Block::EnhancedPacket(packet)) = &block {
                    if let Some(comment) = comment(&packet.options) {
                        taker.comment(&comment);
                    }
                }
                if let PcapBlockOwned::NG(Block::DecryptionSecrets(secrets)) = &block {
                    if secrets.secrets_type.0 == SECRETS_TYPE {
                        key_files += 1;
                        key_bytes += secrets.data.len();
                        if key_files > KEY_FILES || key_bytes > KEY_BYTES {
                            let why =
                                format!("the capture has more than {KEY_FILES} key files, or 4 MiB of them");
                            return Err(damaged(offset, &why));
                        }
                        // Padding follows the secrets.
                        taker.secrets(
                            secrets.data.get(..secrets.secrets_len as usize).unwrap_or(secrets.data),
                        );
                    }
                }
                if let PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) = &block {
                    taker.dropped(section.dropped(statistics));
                }
                if let Some(found) = packet(&block, &mut section).map_err(|why| damaged(offset, &why))? {
                    number += 1;
                    let interface = section.interface(&block);
                    let found = Record { number, interface, ..found };
                    if taker.packet(found).map_err(InputError::Sink)?.is_break() {
                        return Ok(());
                    }
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(()),
            // At the end of the file, the reader reports this as UnexpectedEof.
            Err(PcapError::Incomplete(_)) => {
                taker.pause().map_err(InputError::Sink)?;
                reader.refill().map_err(|error| damaged(offset, problem(&error)))?;
            }
            Err(PcapError::BufferTooSmall) if capacity < LARGEST_BLOCK => {
                capacity *= 2;
                reader.grow(capacity);
                reader.refill().map_err(|error| damaged(offset, problem(&error)))?;
            }
            Err(error) => return Err(damaged(offset, problem(&error))),
        }
    }
}

/// Returns the comment among the options of a block.
fn comment<'a>(options: &'a [PcapNGOption<'_>]) -> Option<Cow<'a, str>> {
    let comment = options.iter().find(|option| option.code == OptionCode::Comment)?;
    Some(String::from_utf8_lossy(comment.value.get(..comment.len.into()).unwrap_or_default()))
}

/// Returns the length of the capture's header, from the first bytes. The first block of a pcapng file states it.
fn header_length(first: &[u8]) -> usize {
    let length: Option<[u8; 4]> = first.get(4..8).and_then(|length| length.try_into().ok());
    match (first, length) {
        ([0x0a, 0x0d, 0x0d, 0x0a, _, _, _, _, 0x1a, ..], Some(length)) => u32::from_be_bytes(length) as usize,
        ([0x0a, 0x0d, 0x0d, 0x0a, ..], Some(length)) => u32::from_le_bytes(length) as usize,
        _ => first.len(),
    }
}

/// Returns the packet of a block, if it has one. Records the interfaces that blocks describe.
fn packet<'a>(block: &PcapBlockOwned<'a>, section: &mut Section) -> Result<Option<Record<'a>>, String> {
    let Section { blocks, interfaces, names } = section;
    let record = |interface: Interface, time, data: &'a [u8], wire: u32| {
        Some(Record { time, ..record(interface.link, data, wire as usize) })
    };
    Ok(match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            let (link, snap) = (header.network, usize::MAX);
            *interfaces = vec![Interface { link, resolution, offset: 0, snap, dropped: 0 }];
            None
        }
        PcapBlockOwned::Legacy(block) => match interfaces[..] {
            [interface, ..] => {
                let time = time(block.ts_sec.into(), block.ts_usec.into(), interface.resolution);
                record(interface, time, block.data, block.origlen)
            }
            [] => None,
        },
        PcapBlockOwned::NG(Block::SectionHeader(header)) => {
            let order = if header.big_endian() { ByteOrder::Big } else { ByteOrder::Little };
            *section = Section { blocks: Some(order), ..Section::default() };
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
            let resolution = resolution(block.if_tsresol).ok_or_else(|| {
                format!("if_tsresol {:#04x} exceeds 10^19 or 2^63 ticks per second", block.if_tsresol)
            })?;
            let snap = if block.snaplen == 0 { usize::MAX } else { block.snaplen as usize };
            // The reader always interprets it as little endian.
            let offset = match blocks {
                Some(ByteOrder::Big) => block.if_tsoffset.swap_bytes(),
                _ => block.if_tsoffset,
            };
            interfaces.push(Interface { link: block.linktype, resolution, offset, snap, dropped: 0 });
            let name = block.if_name().and_then(Result::ok).filter(|name| is_printable(name));
            names.push(name.map(str::to_owned));
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let Some(interface) = interfaces.get(block.if_id as usize) else {
                return Err(format!(
                    "a packet names interface {}, but no block before it describes this interface",
                    block.if_id
                ));
            };
            let Some(data) = block.data.get(..block.caplen as usize) else {
                return Err(format!("a packet of {} bytes exceeds its block", block.caplen));
            };
            let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
            let seconds = i128::from(ticks / interface.resolution) + i128::from(interface.offset);
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            let time = time(seconds, ticks % interface.resolution, interface.resolution);
            record(*interface, time, data, block.origlen)
        }
        PcapBlockOwned::NG(Block::SimplePacket(block)) => match interfaces[..] {
            [interface, ..] => {
                // Only the interface separates the packet from its padding.
                let kept = block.data.len().min(block.origlen as usize).min(interface.snap);
                record(interface, None, &block.data[..kept], block.origlen)
            }
            [] => return Err("a packet comes before the first interface description".to_owned()),
        },
        PcapBlockOwned::NG(_) => None,
    })
}

/// Returns whether a name from a capture can be shown as it is.
fn is_printable(name: &str) -> bool {
    (1..256).contains(&name.len()) && name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Returns clock ticks per second: a power of 10, or a power of 2 if the highest bit is set. The reader's own function
/// does not support powers of 2.
fn resolution(if_tsresol: u8) -> Option<u64> {
    let exponent = u32::from(if_tsresol & 0x7f);
    if if_tsresol & 0x80 == 0 { 10u64.checked_pow(exponent) } else { 1u64.checked_shl(exponent) }
}

/// Describes an error of the capture reader.
fn problem<I>(error: &PcapError<I>) -> &'static str {
    match error {
        PcapError::UnexpectedEof | PcapError::Incomplete(_) | PcapError::Eof => {
            "the file ends in the middle of a block, or the lengths in the block are wrong"
        }
        PcapError::BufferTooSmall => "a block is longer than the limit of 16 MiB",
        PcapError::ReadError => "the file cannot be read, or its compressed data is damaged",
        PcapError::HeaderNotRecognized => "the file starts like a capture, but its header is damaged",
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "these bytes are not a block of a capture",
    }
}

fn time(seconds: i64, ticks: u64, resolution: u64) -> Option<Timestamp> {
    let nanoseconds = match resolution {
        1_000_000_000 => ticks,
        1_000_000 => ticks.saturating_mul(1000),
        _ => (u128::from(ticks) * 1_000_000_000 / u128::from(resolution)) as u64,
    };
    Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok()
}

/// Creates the record of a packet from a live capture. Takes the number of the link type, the time since 1970, the
/// captured bytes, and the length on the wire.
pub fn passed(link: i32, at: Duration, data: &[u8], wire: usize) -> Record<'_> {
    let seconds = i64::try_from(at.as_secs()).unwrap_or_default();
    let time = time(seconds, at.subsec_nanos().into(), 1_000_000_000);
    Record { time, ..record(Linktype(link), data, wire) }
}

/// Removes the header of the link type.
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
        // The address family, in the byte order of the capturing machine.
        Linktype::NULL | Linktype::LOOP => match data.first_chunk().map(|family| u32::from_ne_bytes(*family))
        {
            Some(family) if is_ip_family(family) || is_ip_family(family.swap_bytes()) => behind(4, Start::Ip),
            _ => behind(4, Start::Other),
        },
        Linktype(unread) => Record { unread: Some(unread), ..behind(0, Start::Other) },
    }
}

/// Returns true for IPv4, and for IPv6 with the numbers of Linux, the BSDs and macOS.
fn is_ip_family(family: u32) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}
