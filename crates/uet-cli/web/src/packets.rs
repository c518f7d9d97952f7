//! Lists the packets of a capture with their contexts and findings.

use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use uet_observe::passive::{CaptureChecker, CaptureFinding, CapturedPacket};
use uet_observe::{Event, Facts, Observed, Observer};
use uet_packet_io::Decoder;
use uet_packet_io::input::{self, Taker};
use uet_packet_io::json::{Decoded, Record, Time};
use uet_wire::{Content, Options, Start};

/// Text without Ethernet headers starts with the UET header, as packets on a web page usually do.
pub(crate) const TEXT_START: Start = Start::Uet;

pub(crate) fn decoder() -> Decoder {
    Decoder::new(Options::default(), true).recognizing_trailers()
}

pub(crate) fn list(input: impl Read + Send, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut lister = Lister {
        out,
        decoder: Some(decoder()),
        observer: Observer::default(),
        checker: CaptureChecker::default(),
        number: 0,
        kinds: BTreeMap::new(),
        retransmissions: 0,
    };
    // The packets before the damage are worth seeing.
    let read = input::read_live(input, TEXT_START, &mut lister);
    lister.checker.end();
    lister.released()?;
    let Lister { checker, number, kinds, retransmissions, .. } = lister;
    let summary = json!({
        "packets": number, "contexts": checker.contexts(), "judged": checker.judged().len(),
        "kinds": kinds, "retransmissions": retransmissions,
        "error": read.err().map(|error| error.to_string()),
    });
    writeln!(out, "{}", json!(["end", summary]))?;
    Ok(())
}

struct Lister<'w, W: Write> {
    out: &'w mut W,
    /// Absent while it decodes a packet.
    decoder: Option<Decoder>,
    observer: Observer,
    checker: CaptureChecker,
    number: u64,
    /// Number of packets of each type.
    kinds: BTreeMap<String, u64>,
    retransmissions: u64,
}

impl<W: Write> Taker for Lister<'_, W> {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.number += 1;
        let Some(mut decoder) = self.decoder.take() else { return Ok(ControlFlow::Break(())) };
        let listed = self.show(&decoder.decode(Record { number: self.number, ..record }));
        self.decoder = Some(decoder);
        listed.map(|()| ControlFlow::Continue(()))
    }

    fn secrets(&mut self, key_file: &[u8]) {
        if let Some(decoder) = &mut self.decoder {
            // A block with wrong keys opens nothing, which each packet then says.
            drop(decoder.add_secrets(key_file));
        }
    }

    fn section(&mut self, comment: &str) {
        self.checker.section(comment);
    }

    fn comment(&mut self, comment: &str) {
        if self.checker.comment(comment).is_some() {
            self.observer = Observer::default();
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Lister<'_, W> {
    fn show(&mut self, decoded: &Decoded<'_>) -> io::Result<()> {
        let Decoded { record, packet, findings, .. } = decoded;
        let number = self.number;
        let (context, side, again) = self.place(decoded);
        self.retransmissions += u64::from(again);
        if packet.content == Content::Uet {
            let kind = packet.uet.pds.map_or("TSS".to_owned(), |pds| pds.kind().to_string());
            *self.kinds.entry(kind).or_default() += 1;
        }
        let addresses = packet.ip.map(|ip| [ip.src().to_string(), ip.dst().to_string()]);
        let time = record.time.map(|time| Time(time).to_string());
        let line = json!(["packet", number, time, addresses, context, side, again, packet.to_string()]);
        writeln!(self.out, "{line}")?;
        let protection = decoded.protection.as_ref();
        let captured = CapturedPacket {
            number,
            time: decoded.since_1970(),
            packet,
            findings,
            error: decoded.error(),
            authenticated: protection.and_then(|protection| protection.authenticated),
            key: protection.and_then(|protection| protection.key),
        };
        let found = self.checker.packet(captured);
        self.released()?;
        self.found(found)
    }

    /// Lists findings that had to wait for later packets.
    fn released(&mut self) -> io::Result<()> {
        let found = self.checker.released();
        self.found(found)
    }

    fn found(&mut self, found: Vec<CaptureFinding>) -> io::Result<()> {
        for found in found {
            let severity = found.severity.name();
            writeln!(self.out, "{}", json!(["finding", found.number, found.id, severity, found.message]))?;
        }
        Ok(())
    }

    /// Returns the context of a packet, the side that sent it (0 for the end that opened the context), and whether it
    /// is a retransmission.
    fn place(&mut self, decoded: &Decoded<'_>) -> (Option<u64>, u8, bool) {
        let Some(observed) = Observed::of(self.number, &decoded.packet) else { return (None, 0, false) };
        match self.observer.observe(&observed) {
            Facts::Context { context, sender, event, .. } => {
                let first = context.initiator.unwrap_or(sender);
                let again = matches!(event, Event::Request { earlier: Some(_), .. });
                (Some(context.id.0), u8::from(sender != first), again)
            }
            _ => (None, 0, false),
        }
    }
}
