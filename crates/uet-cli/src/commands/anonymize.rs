//! `uet anonymize`

use super::ethernet_capture::{EthernetCapture, about_output, check_distinct, destination};
use super::{Deployment, Outcome, about, add_secrets, complain, records};
use crate::anonymize::{Anonymizer, Mapping};
use crate::text::counted;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use uet_conformance::passive::{Origin, Restart};
use uet_conformance::{Instance, RULES};
use uet_packet_io::input::{InputError, Taker};
use uet_packet_io::json::{Decoded, Record};
use uet_packet_io::{Decoder, file};
use uet_wire::Start;

/// Write a capture that hides addresses, keys, job ids, tags and data
///
/// Each value is replaced by another one, equal values by equal ones: MAC and IP addresses, job ids, memory
/// keys, match bits, header data, operands of atomics, payload. Addresses keep their class, such as private
/// or multicast. Lengths, times, UDP ports, PSNs and all other fields stay, so `uet check` finds the same in
/// both captures. Right checksums and CRCs stay right. Wrong ones stay wrong, but tell nothing about the old
/// bytes. Comments, names and keys of the capture are
/// left out. Secured packets need --keys, and are written in the clear; those that no key opens, and those that are not
/// authentic, are left out, with a warning.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet anonymize capture.pcapng shared.pcapng
  uet anonymize --manifest shared.json capture.pcapng shared.pcapng
  uet anonymize --seed 'a secret of the lab' capture.pcapng shared.pcapng
  uet anonymize --keys keys.toml secured.pcapng shared.pcapng

Exit codes:
  0  done
  2  usage, or unreadable input. The packets before the damage are written")]
pub(super) struct Anonymize {
    /// A capture
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The new capture, `-` for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Key of the replacements: captures with one key have equal replacements. A holder of the key can undo them
    /// [default: random]
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    seed: Option<String>,
    /// Write what was replaced, and how often, to this file, as JSON
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    deployment: Deployment,
}

/// The visible properties, for the manifest.
const KEPT: [&str; 10] = [
    "lengths of packets, messages and payload",
    "times",
    "UDP ports and entropy values",
    "VLAN tags, DSCP, ECN, TTL and the kinds of IPv6 extension headers",
    "classes of addresses: private, loopback, link-local, multicast, scope",
    "PSNs, PDCIDs and message IDs",
    "process ids, resource indexes, initiator ranks and restart tokens",
    "offsets in buffers and regions",
    "operations, return codes and congestion state",
    "equality: equal values and equal payloads have equal replacements",
];

impl Anonymize {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let output = destination(&self.output)?;
        let inputs = [Some(&self.input), self.deployment.keys.as_ref()].into_iter().flatten();
        let mut inputs: Vec<PathBuf> = inputs.cloned().collect();
        check_distinct("OUT", &self.output, &inputs)?;
        if let Some(manifest) = &self.manifest {
            inputs.push(self.output.clone());
            check_distinct("--manifest", manifest, &inputs)?;
        }
        let about_output = |error| about_output(output, error);
        let mapping = match &self.seed {
            Some(seed) => Mapping::new(seed.as_bytes()),
            None => {
                let mut random = [0; 32];
                getrandom::fill(&mut random)?;
                Mapping::new(&random)
            }
        };
        let mut rewriter = Anonymization {
            decoder: self.deployment.decoder(false)?,
            anonymizer: Anonymizer::new(mapping, self.deployment.options()),
            out: None,
            output: output.map(Path::to_owned),
            section: String::new(),
            comment: String::new(),
            counts: AnonymizedPackets::default(),
        };
        let damaged = match records(&self.input, Start::Eth, &mut rewriter) {
            Ok(()) => false,
            Err(InputError::Sink(error)) => return Err(about_output(error)),
            Err(error) if rewriter.counts.packets == 0 => return Err(about(&self.input, error)),
            Err(error) => {
                complain(about(&self.input, error));
                true
            }
        };
        rewriter.out().map_err(about_output)?;
        let Anonymization { anonymizer, out, counts, .. } = rewriter;
        let AnonymizedPackets { packets, decrypted, secured, unread, comments } = counts;
        if packets == 0 {
            complain(about(&self.input, "the input contains no packet"));
        }
        secured.complain();
        if unread > 0 {
            complain(format_args!(
                "warning: {} left out, because they begin with an unknown header",
                counted(unread, "packet")
            ));
        }
        out.map_or(Ok(()), EthernetCapture::finish).map_err(about_output)?;
        if let Some(path) = &self.manifest {
            let manifest = json!({
                "packets": packets, "written": packets - secured.all() - unread, "decrypted": decrypted,
                "left_out": {
                    "secured": secured.all(), "not_authentic": secured.not_authentic,
                    "malformed": secured.malformed, "unread": unread, "comments": comments,
                },
                "replaced": anonymizer.replaced(), "kept": KEPT,
            });
            let text = format!("{}\n", serde_json::to_string_pretty(&manifest)?);
            file::replace(path, text).map_err(|error| about(path, error))?;
        }
        Ok(if damaged { Outcome::UsageError } else { Outcome::Ok })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct AnonymizedPackets {
    packets: u64,
    decrypted: u64,
    secured: StillSecured,
    /// Packets whose first header is unknown.
    unread: u64,
    /// Comments that were left out.
    comments: u64,
}

/// Secured packets that were left out, because the keys did not open them.
#[derive(Clone, Copy, Debug, Default)]
struct StillSecured {
    not_authentic: u64,
    malformed: u64,
    without_key: u64,
}

impl StillSecured {
    fn packet(&mut self, decoded: &Decoded<'_>) {
        let authenticated = decoded.protection.as_ref().and_then(|protection| protection.authenticated);
        let count = match (authenticated, decoded.error()) {
            (Some(false), _) => &mut self.not_authentic,
            (_, Some(_)) => &mut self.malformed,
            _ => &mut self.without_key,
        };
        *count += 1;
    }

    fn all(&self) -> u64 {
        self.not_authentic + self.malformed + self.without_key
    }

    /// Prints why packets were left out, because each reason needs another remedy.
    fn complain(&self) {
        for (count, what, why) in [
            (self.without_key, "secured packet", " that no key opens: give keys with --keys FILE"),
            (
                self.not_authentic,
                "secured packet",
                " with a wrong ICV: the packet has changed, or the key is another",
            ),
            (self.malformed, "malformed secured packet", ""),
        ] {
            if count > 0 {
                complain(format_args!("warning: left out {}{why}", counted(count, what)));
            }
        }
    }
}

struct Anonymization {
    decoder: Decoder,
    anonymizer: Anonymizer,
    /// Started with the first packet.
    out: Option<EthernetCapture>,
    /// The file; `None` for standard output.
    output: Option<PathBuf>,
    /// The comments of the new capture and of its next packet.
    section: String,
    comment: String,
    counts: AnonymizedPackets,
}

impl Anonymization {
    fn out(&mut self) -> io::Result<&mut EthernetCapture> {
        let out = match self.out.take() {
            Some(out) => out,
            None => EthernetCapture::create(self.output.as_deref(), &self.section)?,
        };
        Ok(self.out.insert(out))
    }
}

impl Taker for Anonymization {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.counts.packets += 1;
        let comment = core::mem::take(&mut self.comment);
        if !matches!(record.start, Start::Eth | Start::Ip | Start::EtherType(_)) {
            self.counts.unread += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let decoded = self.decoder.decode(record);
        let is_secured = decoded.protection.is_some();
        match self.anonymizer.frame(&decoded) {
            Some(frame) => {
                self.counts.decrypted += u64::from(is_secured);
                let record = Record { bytes: &frame.bytes, wire: frame.wire, ..record };
                self.out()?.write(&record, &comment)?;
            }
            None => self.counts.secured.packet(&decoded),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Keeps the mark of the suite, which `uet check` needs, with the new addresses of the device.
    fn section(&mut self, comment: &str) {
        let origin = Origin::parse(comment).map(|mut origin| {
            for address in &mut origin.device {
                *address = self.anonymizer.mapping().address(*address);
            }
            origin.instance = origin.instance.as_deref().map(known_instance);
            origin.comment()
        });
        self.counts.comments += u64::from(origin.is_none() && !comment.is_empty());
        self.section = origin.unwrap_or_default();
    }

    /// Keeps what `uet check` needs: the restart of a NIC, and in a capture of the suite the name of the instance that
    /// begins.
    fn comment(&mut self, comment: &str) {
        let kept = match Restart::read(comment, !self.section.is_empty()) {
            Some(Restart::OfSuite(instance)) => Origin::begin(&known_instance(instance)),
            Some(Restart::OfNic) => Restart::OF_NIC.to_owned(),
            None => String::new(),
        };
        self.counts.comments += u64::from(kept != comment);
        self.comment = kept;
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(Some(&mut self.decoder), key_file);
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), EthernetCapture::flush)
    }
}

/// Returns the name of an instance of the suite. Any text may follow the words that announce an instance, so an unknown
/// name is not copied.
fn known_instance(name: &str) -> String {
    Instance::parse(RULES, name).map_or_else(|_| "unknown".into(), |instance| instance.to_string())
}
