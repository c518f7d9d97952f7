//! Writes pcapng captures.

use crate::file::MAX_SETTINGS;
use core::time::Duration;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::unknown::UnknownBlock;
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use zeroize::Zeroizing;

/// The secrets type of decryption secrets blocks that hold a key file (TOML, see docs/security.md).
///
/// It is `UETK` with the highest bit set. Registered types are four ASCII characters, so they have that bit clear. The
/// pcapng specification reserves no secrets types for private use. It reserves block and option types with the highest
/// bit set for local use, and this number follows that rule.
pub const SECRETS_TYPE: u32 = u32::from_be_bytes(*b"UETK") | 1 << 31;

/// The first header of the frames in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
}

/// A frame to be written to a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// Time since 1970, written with a resolution of one nanosecond.
    pub time: Duration,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Length on the wire, at least that of `bytes`.
    pub wire: usize,
    /// Comment on the packet; none is written if it is empty.
    pub comment: &'a str,
}

impl<'a> CapturedFrame<'a> {
    /// Creates a whole frame without a comment.
    pub fn new(time: Duration, bytes: &'a [u8]) -> Self {
        CapturedFrame { time, bytes, wire: bytes.len(), comment: "" }
    }
}

/// Writes a pcapng capture with one interface.
///
/// The file is little endian on every machine, so equal frames give equal files.
pub struct CaptureWriter<W: Write>(PcapNgWriter<W>);

impl<W: Write> fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureWriter").finish_non_exhaustive()
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture that names neither an application nor an interface.
    pub fn new(file: W, link: LinkType) -> io::Result<Self> {
        Self::start(file, link, None, "")
    }

    /// Starts a capture that names its application and its interface `name`.
    pub fn named(file: W, link: LinkType, name: &str) -> io::Result<Self> {
        Self::start(file, link, Some(name), "")
    }

    /// Starts a capture like [`named`](Self::named), with a comment on all of it.
    pub fn commented(file: W, link: LinkType, name: &str, comment: &str) -> io::Result<Self> {
        Self::start(file, link, Some(name), comment)
    }

    fn start(file: W, link: LinkType, name: Option<&str>, comment: &str) -> io::Result<Self> {
        const NANOSECONDS: u8 = 9;
        let name = name.map(|name| Cow::Owned(name.to_owned()));
        let application = name.clone().into_iter().map(SectionHeaderOption::UserApplication);
        let comment = (!comment.is_empty()).then(|| SectionHeaderOption::Comment(comment.to_owned().into()));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: application.chain(comment).collect(),
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(into_io)?;
        let name = name.into_iter().map(InterfaceDescriptionOption::IfName);
        let linktype = match link {
            LinkType::Ethernet => DataLink::ETHERNET,
            LinkType::Ip => DataLink::RAW,
        };
        let options = name.chain([InterfaceDescriptionOption::IfTsResol(NANOSECONDS)]).collect();
        let interface = InterfaceDescriptionBlock { linktype, snaplen: 0, options };
        writer.write_pcapng_block(interface).map_err(into_io)?;
        Ok(CaptureWriter(writer))
    }

    /// Writes a decryption secrets block with a key file. It applies to the packets after it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or if the key file is longer than 1 MiB.
    pub fn write_secrets(&mut self, key_file: &[u8]) -> io::Result<()> {
        const DECRYPTION_SECRETS: u32 = 10;
        let length = u32::try_from(key_file.len()).ok().filter(|length| u64::from(*length) <= MAX_SETTINGS);
        let length = length.ok_or_else(|| io::Error::other("the key file is longer than 1 MiB"))?;
        let padding = &[0; 3][..key_file.len().next_multiple_of(4) - key_file.len()];
        let body = [&SECRETS_TYPE.to_le_bytes(), &length.to_le_bytes(), key_file, padding].concat();
        let body = Zeroizing::new(body);
        let block = UnknownBlock::new(DECRYPTION_SECRETS, 0, &body);
        self.0.write_pcapng_block(block).map(|_| ()).map_err(into_io)
    }

    /// Writes a frame.
    pub fn write(&mut self, frame: &CapturedFrame<'_>) -> io::Result<()> {
        let wire = frame.wire.max(frame.bytes.len());
        let comment = EnhancedPacketOption::Comment(frame.comment.into());
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: frame.time,
            original_len: u32::try_from(wire).unwrap_or(u32::MAX),
            data: frame.bytes.into(),
            options: if frame.comment.is_empty() { vec![] } else { vec![comment] },
        };
        self.0.write_pcapng_block(block).map(|_| ()).map_err(into_io)
    }

    /// Flushes the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }

    /// Flushes the underlying writer and returns it.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.0.into_inner())
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{self, Taker};
    use crate::json::Record;
    use std::ops::ControlFlow;
    use uet_wire::Start;

    /// Collects the secrets and counts the packets before them.
    #[derive(Default)]
    struct Secrets(u64, Vec<(u64, Vec<u8>)>);

    impl Taker for Secrets {
        fn packet(&mut self, _: Record<'_>) -> io::Result<ControlFlow<()>> {
            self.0 += 1;
            Ok(ControlFlow::Continue(()))
        }

        fn secrets(&mut self, key_file: &[u8]) {
            self.1.push((self.0, key_file.to_vec()));
        }

        fn pause(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn secrets_of_every_length_come_back_in_their_place() {
        let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        let mut expected = Vec::new();
        for length in 0..=5 {
            let secrets = vec![0x5a; length];
            writer.write_secrets(&secrets).unwrap();
            writer.write(&CapturedFrame::new(Duration::ZERO, &[0; 14])).unwrap();
            expected.push((length as u64, secrets));
        }
        let capture = writer.finish().unwrap();
        let mut found = Secrets::default();
        input::read_live(&capture[..], Start::Eth, &mut found).unwrap();
        assert_eq!((found.0, found.1), (6, expected));
    }

    #[test]
    fn secrets_with_a_wrong_length_are_damage() {
        let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        let before = writer.0.get_mut().len();
        writer.write_secrets(&[0x5a; 8]).unwrap();
        let capture = writer.finish().unwrap();
        // Behind block type, block length and secrets type.
        for length in [9u32, 17, 0x7fff_ffff, 0xffff_fff0, u32::MAX] {
            let mut damaged = capture.clone();
            damaged[before + 12..before + 16].copy_from_slice(&length.to_le_bytes());
            let mut found = Secrets::default();
            assert!(input::read_live(&damaged[..], Start::Eth, &mut found).is_err(), "{length}");
            assert!(found.1.is_empty());
        }
    }

    #[test]
    fn key_file_beyond_the_limit_is_refused() {
        let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet).unwrap();
        assert!(writer.write_secrets(&vec![0; 1 << 20]).is_ok());
        let error = writer.write_secrets(&vec![0; (1 << 20) + 1]).unwrap_err();
        assert_eq!(error.to_string(), "the key file is longer than 1 MiB");
    }
}
