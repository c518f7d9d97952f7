//! `uet decrypt`

use super::ethernet_capture::{Sink, WrittenTimes, about_output, check_distinct, destination, open};
use super::{Deployment, Outcome, about, add_secrets, complain, records};
use crate::text::counted;
use clap::Args;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::file::Replacement;
use uet_packet_io::input::{InputError, Taker};
use uet_packet_io::json::{Decoded, Record};
use uet_packet_io::{Decoder, in_the_clear};
use uet_wire::Start;

/// Write a capture in the clear
///
/// Each secured packet that the keys open is written without its security header and its ICV. All other packets are
/// written as they are. Times and comments stay. Without --keys, the keys come from the decryption secrets of the
/// capture. The new capture holds no keys. For packets that stay secured, it prints their domain, association number
/// and reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet decrypt --keys keys.toml secured.pcapng clear.pcapng

Exit codes:
  0  done
  1  a packet is not authentic, or no secured packet could be decrypted
  2  usage, or unreadable input")]
pub(super) struct Decrypt {
    /// A capture
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The new capture, `-` for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    deployment: Deployment,
}

impl Decrypt {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let output = destination(&self.output)?;
        let inputs = [Some(&self.input), self.deployment.keys.as_ref()].into_iter().flatten();
        check_distinct("OUT", &self.output, &inputs.cloned().collect::<Vec<_>>())?;
        let mut rewriter = Rewriter {
            decoder: self.deployment.decoder(false)?,
            out: None,
            file: None,
            output: output.map(Path::to_owned),
            section: String::new(),
            comment: String::new(),
            counts: Counts::default(),
            times: WrittenTimes::default(),
        };
        match records(&self.input, Start::Eth, &mut rewriter) {
            Ok(()) => {}
            Err(InputError::Sink(error)) => return Err(about_output(output, error)),
            Err(error) => return Err(about(&self.input, error)),
        }
        if !rewriter.decoder.has_keys() && rewriter.counts.untried > 0 {
            return Err(about(&self.input, "the capture holds no keys; give them with --keys FILE"));
        }
        let counts = core::mem::take(&mut rewriter.counts);
        rewriter.times.complain();
        rewriter.finish().map_err(|error| about_output(output, error))?;
        counts.complain(self.deployment.keys.as_deref());
        if counts.packets == 0 {
            complain(about(&self.input, "the input contains no packet"));
        }
        let is_done = counts.forged == 0 && (counts.opened > 0 || counts.untried == 0);
        Ok(if is_done { Outcome::Ok } else { Outcome::Violation })
    }
}

/// Maximum number of groups of packets that stay secured.
const GROUPS: usize = 16;

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    opened: u64,
    forged: u64,
    /// Secured packets without a key, or that no key can open.
    untried: u64,
    /// The packets that stay secured, by domain, association number and reason.
    closed: BTreeMap<(u32, bool, String), u64>,
}

impl Counts {
    fn packet(&mut self, decoded: &Decoded<'_>) {
        self.packets += 1;
        let Some(protection) = &decoded.protection else { return };
        let why = match protection.authenticated {
            Some(true) => {
                self.opened += 1;
                return;
            }
            Some(false) => {
                self.forged += 1;
                "the ICV is wrong: the packet has changed, or the key is another".to_owned()
            }
            None => {
                self.untried += 1;
                protection.reason.clone().unwrap_or_default()
            }
        };
        let (sdi, an) = decoded.packet.uet.tss.map_or((0, false), |tss| (tss.head().sdi(), tss.head().an()));
        let group = (sdi, an, why);
        if self.closed.len() < GROUPS || self.closed.contains_key(&group) {
            *self.closed.entry(group).or_default() += 1;
        }
    }

    /// Prints the counts on standard error, and what to do about packets that stay secured.
    fn complain(&self, keys: Option<&Path>) {
        let Counts { packets, opened, forged, untried, closed } = self;
        complain(format_args!(
            "{}, {opened} decrypted, {forged} not authentic, {untried} not tried",
            counted(*packets, "packet")
        ));
        for ((sdi, an, why), count) in closed {
            let (packets, an) = (counted(*count, "packet"), u8::from(*an));
            complain(format_args!(
                "domain {sdi:#08x}, association number {an}: {packets} not decrypted: {why}"
            ));
        }
        let further = forged + untried - closed.values().sum::<u64>();
        if further > 0 {
            complain(format_args!("other groups: {} not decrypted", counted(further, "packet")));
        }
        match keys {
            _ if forged + untried == 0 => {}
            Some(keys) => complain(format_args!(
                "the keys come from {}: compare its domains, association numbers and keys with these",
                keys.display()
            )),
            None => complain("the keys come from the capture: give others with --keys FILE"),
        }
    }
}

struct Rewriter {
    decoder: Decoder,
    /// Started with the first packet, which tells the link type.
    out: Option<(LinkType, CaptureWriter<Sink>)>,
    /// The new file; `None` for standard output.
    file: Option<Replacement>,
    output: Option<PathBuf>,
    /// The comments on the section and on the next packet, which `uet check` needs.
    section: String,
    comment: String,
    counts: Counts,
    times: WrittenTimes,
}

impl Rewriter {
    /// Starts the new capture.
    fn start(&mut self, link: LinkType) -> io::Result<()> {
        let (file, out) = open(self.output.as_deref())?;
        self.file = file;
        self.out = Some((link, CaptureWriter::commented(out, link, "uet", &self.section)?));
        Ok(())
    }

    /// Puts the new capture in its place. An input without packets gives an empty capture.
    fn finish(mut self) -> io::Result<()> {
        if self.out.is_none() {
            self.start(LinkType::Ethernet)?;
        }
        if let Some((_, writer)) = self.out {
            writer.finish()?;
        }
        self.file.map_or(Ok(()), Replacement::commit)
    }
}

impl Taker for Rewriter {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        let link = match record.start {
            Start::Eth => LinkType::Ethernet,
            Start::Ip => LinkType::Ip,
            _ => {
                return Err(io::Error::other(
                    "only captures of Ethernet or IP packets can be written in the clear",
                ));
            }
        };
        if self.out.is_none() {
            self.start(link)?;
        }
        let Rewriter { decoder, out, comment, counts, times, .. } = self;
        let decoded = decoder.decode(record);
        counts.packet(&decoded);
        let Some((started, writer)) = out else { return Ok(ControlFlow::Break(())) };
        if *started != link {
            return Err(io::Error::other("the capture has interfaces of two link types"));
        }
        let time = times.of(&record);
        let clear = in_the_clear(&decoded);
        let (wire, bytes) = match &clear {
            Some(clear) => (clear.len(), clear.as_slice()),
            None => (record.wire, record.bytes),
        };
        writer.write(&CapturedFrame { time, bytes, wire, comment })?;
        comment.clear();
        Ok(ControlFlow::Continue(()))
    }

    fn section(&mut self, comment: &str) {
        comment.clone_into(&mut self.section);
    }

    fn comment(&mut self, comment: &str) {
        comment.clone_into(&mut self.comment);
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(Some(&mut self.decoder), key_file);
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |(_, writer)| writer.flush())
    }
}
