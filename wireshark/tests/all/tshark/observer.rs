//! Compares the dissector's analysis of conversations with that of uet-observe, which is written independently. These
//! tests need tshark; `wireshark/test` runs them.

use super::{SCRIPT, Scratch, capture, tshark};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use uet_observe::{Direction, Event, Facts, Observed, Observer, RudiFacts, Side};
use uet_packet_io::input;
use uet_wire::pds::Pds;
use uet_wire::{Options, Packet, Psn, Start};

/// Facts of a packet that both report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shared {
    /// The number of the context.
    context: Option<u64>,
    /// True if the sender is the side that sent the first packet of the context.
    first_side: Option<bool>,
    /// The ACK that acknowledges it first.
    acked_in: Option<u64>,
    /// The first transmission of its PSN.
    repeats: Option<u64>,
    /// The request that it refuses.
    refuses: Option<u64>,
    /// The RUDI request that it answers.
    answers: Option<u64>,
    /// True if its identifiers or its Start_PSN contradict earlier packets.
    reuse: bool,
}

/// Returns the first PSN of the context, in a packet with `syn`.
fn start_psn(pds: Pds<'_>) -> Option<Psn> {
    match pds {
        Pds::Control(control) => control.start_psn(),
        _ => pds.request()?.start_psn(),
    }
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
    let (mut ids, mut owners, mut reused) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    input::read(File::open(file).unwrap(), Start::Eth, &mut |record| {
        let (packet, _) = Packet::parse_sliced(record.start, record.bytes, record.wire, &Options::default());
        let Some(packet) = Observed::of(record.number, &packet) else { return Ok(ControlFlow::Continue(())) };
        let mut shared = Shared::default();
        match observer.observe(&packet) {
            Facts::Context { context, sender, event, .. } => {
                shared.context = Some(context.id.0);
                shared.first_side = Some(sender == Side::A);
                let start = packet.uet.pds.and_then(start_psn);
                let contradicts = start.is_some() && start != context.start.map(|(start, _)| start);
                let names = [Side::A, Side::B].map(|side| context.direction(side).pdcid);
                let before = ids.insert(context.id, names).unwrap_or(names);
                let renamed = (0..2).any(|side| before[side].is_some() && before[side] != names[side]);
                let [a, b] = context.addresses;
                for end in [(a, names[0], b), (b, names[1], a)].into_iter().filter(|end| end.1.is_some()) {
                    if *owners.entry(end).or_insert(context.id) != context.id {
                        reused.insert(end);
                    }
                    shared.reuse |= reused.contains(&end);
                }
                shared.reuse |= contradicts || renamed;
                let index = match event {
                    Event::Request { index, .. } => Some(index),
                    Event::Control { kind, index } => kind.takes_psn().then_some(index),
                    _ => None,
                };
                let repeated = index.and_then(|index| first(context.direction(sender), index));
                shared.repeats = repeated.filter(|first| *first < record.number);
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
                shared.repeats = earlier.map(|(_, number)| all[&number].repeats.unwrap_or(number));
            }
            Facts::Rudi(RudiFacts::Response { answers, .. }) => {
                shared.answers = answers.map(|number| all[&number].repeats.unwrap_or(number));
            }
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
                reuse: false,
            },
        );
    }
    all
}

/// Compares a capture. Returns how many packets of contexts were compared, and how many packets differ.
///
/// The captures of single packets reuse identifiers as no endpoint does. Both start a new context if PSNs lie far
/// apart. The dissector also does so if the peer's identifier changes. A context that only one of them starts is left
/// out from that packet on.
fn agree(file: &Path) -> (usize, usize) {
    let (mut observed, dissected) = (observed(file), dissected(file));
    let mut pairs: [BTreeMap<u64, u64>; 2] = Default::default();
    let mut split: [BTreeSet<u64>; 2] = Default::default();
    let mut both = Vec::new();
    for (number, ours) in &mut observed {
        let mut theirs = dissected[number].clone();
        if let (Some(a), Some(b)) = (ours.context, theirs.context) {
            let known = [*pairs[0].entry(a).or_insert(b), *pairs[1].entry(b).or_insert(a)];
            if ours.reuse && known != [b, a] || split[0].contains(&a) || split[1].contains(&b) {
                split[0].extend([a, known[1]]);
                split[1].extend([b, known[0]]);
                continue;
            }
            theirs.context = Some(known[1]);
        }
        ours.reuse = false;
        both.push((*number, ours.clone(), theirs));
    }
    let kept: BTreeSet<u64> = both.iter().map(|(number, ..)| *number).collect();
    let (mut compared, mut wrong) = (0, 0);
    for (number, mut ours, mut theirs) in both {
        for shared in [&mut ours, &mut theirs] {
            shared.acked_in = shared.acked_in.filter(|ack| kept.contains(ack));
        }
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
    assert!(compared > 1_500, "only {compared} packets compared");
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn dissector_and_observer_agree_on_refused_and_late_packets() {
    let file = Scratch::new("pcap");
    capture::write(file.0.to_str().unwrap(), 2_000, 64, 64).unwrap();
    assert_eq!(agree(&file.0), (2_000, 0));
}
