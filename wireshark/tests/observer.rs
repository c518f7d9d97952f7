//! The dissector's analysis of conversations against that of uet-observe, which is written independently. These tests need
//! tshark, and are run by `wireshark/test`.

#[allow(dead_code)]
#[path = "../examples/capture.rs"]
mod capture;
mod common;

use common::{SCRIPT, Scratch, tshark};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use uet_observe::{Direction, Event, Facts, Observed, Observer, RudiFacts};
use uet_packet_io::input;
use uet_wire::{Options, Packet, Start};

/// The facts of a packet that both know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shared {
    /// The number of the context.
    context: Option<u64>,
    /// Whether the sender is the side that sent the first packet of the context.
    first_side: Option<bool>,
    /// The ACK that acknowledges it first.
    acked_in: Option<u64>,
    /// The first transmission of its PSN.
    repeats: Option<u64>,
    /// The request that it refuses.
    refuses: Option<u64>,
    /// The RUDI request that it answers.
    answers: Option<u64>,
}

/// Returns the first packet with this PSN. The dissector forgets it once it is acknowledged cumulatively.
fn first(direction: &Direction, index: i64) -> Option<u64> {
    let request = direction.requests.get(&index).map(|request| request.number);
    let control = direction.controls.get(&index).map(|(_, number)| *number);
    let forgotten = direction.cack.is_some_and(|(cack, _)| index <= cack);
    request.into_iter().chain(control).min().filter(|_| !forgotten)
}

/// Returns the facts of the observer by packet number.
fn observed(file: &Path) -> BTreeMap<u64, Shared> {
    let (mut observer, mut all) = (Observer::default(), BTreeMap::<u64, Shared>::new());
    input::read(File::open(file).unwrap(), Start::Eth, &mut |record| {
        let packet = Packet::parse_lax(record.start, record.bytes, record.wire, &Options::default());
        let Some(packet) = Observed::of(record.number, &packet) else { return Ok(ControlFlow::Continue(())) };
        let mut shared = Shared::default();
        match observer.observe(&packet) {
            Facts::Context { context, sender, event, .. } => {
                shared.context = Some(context.id.0);
                shared.first_side = Some(sender == uet_observe::Side::A);
                if let Event::Request { index, .. } | Event::Control { index, .. } = event {
                    shared.repeats =
                        first(context.direction(sender), index).filter(|first| *first < record.number);
                }
                match event {
                    Event::Ack { acknowledged, .. } => {
                        for number in acknowledged {
                            all.get_mut(&number).unwrap().acked_in = Some(record.number);
                        }
                    }
                    Event::Nack { named: Some(named), .. } => {
                        shared.refuses = first(context.direction(sender.other()), named);
                    }
                    _ => {}
                }
            }
            Facts::Rudi(RudiFacts::Request { earlier, .. }) => {
                shared.repeats = earlier.map(|(_, number)| number)
            }
            Facts::Rudi(RudiFacts::Response { answers, .. }) => shared.answers = answers,
            Facts::Unrelated => {}
        }
        all.insert(record.number, shared);
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    all
}

/// Returns the facts of the dissector by packet number.
fn dissected(file: &Path) -> BTreeMap<u64, Shared> {
    let names = [
        "frame.number",
        "uet.pdc",
        "uet.pdc.direction",
        "uet.acked_in",
        "uet.retransmission_of",
        "uet.duplicate_of",
        "uet.nack_for",
        "uet.answer_to",
    ];
    let mut arguments = vec!["-2", "-r", file.to_str().unwrap(), "-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    let (mut all, mut sides) = (BTreeMap::new(), BTreeMap::new());
    for line in tshark(&[SCRIPT], &arguments).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<u64>().ok();
        let context = number(1);
        let first = context.map(|context| *sides.entry(context).or_insert(fields[2].to_owned()) == fields[2]);
        all.insert(
            number(0).unwrap(),
            Shared {
                context,
                first_side: first,
                acked_in: number(3),
                repeats: number(4).or(number(5)),
                refuses: number(6),
                answers: number(7),
            },
        );
    }
    all
}

/// Compares a capture. Returns how many packets of contexts agree, and how many packets do not.
fn agree(file: &Path) -> (usize, usize) {
    let (observed, dissected) = (observed(file), dissected(file));
    let (mut wrong, mut compared) = (0, 0);
    for (number, ours) in &observed {
        let theirs = &dissected[number];
        compared += usize::from(ours.context.is_some());
        if ours != theirs {
            wrong += 1;
            eprintln!("{} frame {number}:\n  observer  {ours:?}\n  dissector {theirs:?}", file.display());
        }
    }
    (compared, wrong)
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn dissector_and_observer_agree_on_every_vector_capture() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/pcap");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (compared, wrong) =
        files.map(|file| agree(&file)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(wrong, 0, "packets about which observer and dissector disagree");
    assert!(compared > 2_000, "only {compared} packets compared");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn dissector_and_observer_agree_on_refused_and_late_packets() {
    let file = Scratch::new("pcap");
    capture::write(file.0.to_str().unwrap(), 2_000, 64).unwrap();
    assert_eq!(agree(&file.0), (2_000, 0));
}
