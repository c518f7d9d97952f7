//! `uet decrypt`

use super::ethernet_capture::{WrittenTimes, check_distinct};
use super::{Deployment, Outcome, about, add_secrets, complain, records};
use clap::Args;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::PathBuf;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::file::Replacement;
use uet_packet_io::input::{InputError, Taker};
use uet_packet_io::json::Record;
use uet_packet_io::{Decoder, in_the_clear};
use uet_wire::Start;

/// Write a capture in the clear
///
/// Each secured packet that the keys open is written without its security header and its ICV. All other packets are
/// written as they are. Times stay. Without --keys, the keys come from the decryption secrets of the capture. The new
/// capture holds no keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet decrypt --keys keys.toml secured.pcapng clear.pcapng

Exit codes: 0 done, 1 a packet is not authentic, 2 usage or unreadable input.")]
pub(super) struct Decrypt {
    /// A capture
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The new capture
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    deployment: Deployment,
}

impl Decrypt {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let inputs = [Some(&self.input), self.deployment.keys.as_ref()].into_iter().flatten();
        check_distinct("OUT", &self.output, &inputs.cloned().collect::<Vec<_>>())?;
        let mut rewriter = Rewriter {
            decoder: self.deployment.decoder(false)?,
            out: None,
            output: self.output.clone(),
            counts: Counts::default(),
            times: WrittenTimes::default(),
        };
        match records(&self.input, Start::Eth, &mut rewriter) {
            Ok(()) => {}
            Err(InputError::Sink(error)) => return Err(about(&self.output, error)),
            Err(error) => return Err(about(&self.input, error)),
        }
        if !rewriter.decoder.has_keys() {
            return Err(about(&self.input, "the capture holds no keys; give them with --keys FILE"));
        }
        let Counts { packets, opened, forged, unknown } = rewriter.counts;
        rewriter.times.complain();
        rewriter.finish()?;
        complain(format_args!(
            "{packets} packets, {opened} decrypted, {forged} not authentic, {unknown} without a fitting key"
        ));
        Ok(if forged > 0 { Outcome::Violation } else { Outcome::Ok })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: u64,
    opened: u64,
    forged: u64,
    unknown: u64,
}

struct Rewriter {
    decoder: Decoder,
    /// Started with the first packet, which tells the link type.
    out: Option<(LinkType, CaptureWriter<BufWriter<Replacement>>)>,
    output: PathBuf,
    counts: Counts,
    times: WrittenTimes,
}

impl Rewriter {
    /// Puts the new capture in its place. An input without packets gives an empty capture.
    fn finish(self) -> io::Result<()> {
        let written = || -> io::Result<()> {
            let writer = match self.out {
                Some((_, writer)) => writer,
                None => {
                    CaptureWriter::new(BufWriter::new(Replacement::new(&self.output)?), LinkType::Ethernet)?
                }
            };
            let file = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.commit()
        };
        written().map_err(|error| about(&self.output, error))
    }
}

impl Taker for Rewriter {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        let Rewriter { decoder, out, output, counts, times } = self;
        counts.packets += 1;
        let link = match record.start {
            Start::Eth => LinkType::Ethernet,
            Start::Ip => LinkType::Ip,
            _ => {
                return Err(io::Error::other(
                    "only captures of Ethernet or IP packets can be written in the clear",
                ));
            }
        };
        let decoded = decoder.decode(record);
        match decoded.protection.as_ref().map(|protection| protection.authenticated) {
            Some(Some(true)) => counts.opened += 1,
            Some(Some(false)) => counts.forged += 1,
            Some(None) => counts.unknown += 1,
            None => {}
        }
        if out.is_none() {
            *out = Some((link, CaptureWriter::new(BufWriter::new(Replacement::new(output)?), link)?));
        }
        let Some((started, writer)) = out else { return Ok(ControlFlow::Break(())) };
        if *started != link {
            return Err(io::Error::other("the capture has interfaces of two link types"));
        }
        let time = times.of(&record);
        match in_the_clear(&decoded) {
            Some(clear) => writer.write(&CapturedFrame::new(time, &clear))?,
            None => writer
                .write(&CapturedFrame { wire: record.wire, ..CapturedFrame::new(time, record.bytes) })?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(Some(&mut self.decoder), key_file);
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |(_, writer)| writer.flush())
    }
}
