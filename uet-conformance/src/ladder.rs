use crate::history::History;
use crate::{Observation, Phase, Show, Wire};
use core::fmt;
use core::time::Duration;
use serde_json::{Map, Value};
use uet_control::Op;
use uet_wire::Uet;
use uet_wire::ses::Ses;

/// Number of steps that an excerpt of a trace keeps at its begin.
const HEAD: usize = 12;

/// Number of steps that it keeps before a broken observation, and behind it.
const BEFORE: usize = 30;
const BEHIND: usize = 6;

/// Number of broken observations that it keeps.
const FINDINGS: usize = 4;

/// Number of steps that an excerpt of a trace without a broken observation keeps at either end.
const ENDS: usize = 100;

/// The trace of an instance: all packets, operations and checks in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// The steps.
    pub entries: Vec<LadderStep>,
}

/// A step of a [`Ladder`].
#[derive(Clone, Debug, PartialEq)]
pub struct LadderStep {
    /// The time by the link's clock.
    pub at: Duration,
    /// The part of the rule that it belongs to.
    pub phase: Phase,
    /// The packet, operation, comparison or remark.
    pub entry: Entry,
}

/// The content of a [`LadderStep`].
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The suite sent this packet.
    Sent(Wire),
    /// The device sent this packet.
    Received(Wire),
    /// The network lost this packet of the device. It has no number.
    Lost(Wire),
    /// The suite requested this operation over the control channel.
    Called(Op),
    /// The operation before, requested so many times more until this time.
    Again(usize, Duration),
    /// A comparison of the script.
    Observed(Box<Observation>),
    /// Another remark for readers.
    Note(String),
}

impl Ladder {
    /// Counts a read of the device's state that repeats the last step. Returns whether it does.
    pub(crate) fn count_again(&mut self, at: Duration, op: &Op) -> bool {
        if !is_look(op) {
            return false;
        }
        let is_same = |step: &LadderStep| matches!(&step.entry, Entry::Called(called) if called == op);
        match self.entries.as_mut_slice() {
            [.., before, LadderStep { entry: Entry::Again(times, until), .. }] if is_same(before) => {
                (*times, *until) = (*times + 1, at);
                true
            }
            [.., last] if is_same(last) => {
                let phase = last.phase;
                self.entries.push(LadderStep { at, phase, entry: Entry::Again(1, at) });
                true
            }
            _ => false,
        }
    }

    /// Returns the number of the suite's newest request whose payload belongs at this byte of memory, or else
    /// of its newest one with payload.
    pub(crate) fn last_write(&self, byte: u64) -> Option<usize> {
        let sent = self.entries.iter().map(|step| &step.entry);
        let packets = sent.filter(|entry| matches!(entry, Entry::Sent(_) | Entry::Received(_)));
        let writes = packets.zip(1..).filter_map(|(entry, number)| match entry {
            Entry::Sent(wire) => Some((number, covered(wire)?.contains(&byte))),
            _ => None,
        });
        let writes: Vec<(usize, bool)> = writes.collect();
        let newest = writes.iter().rev();
        let write = newest.clone().find(|(_, covers)| *covers).or_else(|| newest.clone().next());
        write.map(|(number, _)| *number)
    }

    /// Assigns a phase to the steps from this index on, except those of the arrangement.
    pub(crate) fn state(&mut self, from: usize, phase: Phase) {
        let steps = self.entries.iter_mut().skip(from);
        steps.filter(|step| step.phase != Phase::Arrange).for_each(|step| step.phase = phase);
    }

    /// Returns the number of bytes of its packets.
    pub(crate) fn bytes(&self) -> usize {
        self.packets().map(|(_, wire)| wire.bytes.len()).sum()
    }

    /// Keeps the first steps only, and notes the number of removed ones.
    pub(crate) fn cut(&mut self, kept: usize) {
        let Some(gone) = self.entries.len().checked_sub(kept).filter(|gone| *gone > 0) else { return };
        self.entries.truncate(kept);
        let (at, phase) = self.entries.last().map(|last| (last.at, last.phase)).unwrap_or_default();
        let entry = Entry::Note(format!("{gone} more steps are not shown"));
        self.entries.push(LadderStep { at, phase, entry });
    }

    /// Marks the packet of the suite that the network has lost. It is the last one, or else the newest one
    /// with the same ends and bytes. In a secure domain, bytes differ from those on the link: then the newest
    /// one between these ends.
    pub(crate) fn mark_lost(&mut self, lost: &Wire, is_last: bool) {
        let fit = |entry: &Entry| match entry {
            Entry::Sent(sent) if !sent.lost => {
                let ends = is_last || (sent.src, sent.dst) == (lost.src, lost.dst);
                ends.then_some(is_last || sent.bytes == lost.bytes)
            }
            _ => None,
        };
        let best = (0..).zip(&self.entries).filter_map(|(place, step)| Some((fit(&step.entry)?, place)));
        let Some((_, place)) = best.max() else { return };
        if let Some(Entry::Sent(sent)) = self.entries.get_mut::<usize>(place).map(|step| &mut step.entry) {
            sent.lost = true;
        }
    }

    /// Returns the packets with their times. The first has number 1.
    pub fn packets(&self) -> impl Iterator<Item = (Duration, &Wire)> {
        self.entries.iter().filter_map(|step| match &step.entry {
            Entry::Sent(wire) | Entry::Received(wire) => Some((step.at, wire)),
            _ => None,
        })
    }

    /// Returns the packets that the device sent, with their numbers among all.
    pub fn of_the_device(&self) -> impl Iterator<Item = (usize, &Wire)> {
        let entries = self.entries.iter().map(|step| &step.entry);
        let packets = entries.filter(|entry| matches!(entry, Entry::Sent(_) | Entry::Received(_)));
        packets.zip(1..).filter_map(|(entry, number)| match entry {
            Entry::Received(wire) => Some((number, wire)),
            _ => None,
        })
    }
}

impl Ladder {
    /// Returns the number of the suite's first packet after the last one of the device.
    pub(crate) fn first_unanswered(&self) -> Option<usize> {
        let last = self.of_the_device().last().map_or(0, |(number, _)| number);
        (last < self.packets().count()).then_some(last + 1)
    }

    /// Returns the text of the trace, folded around its broken observations: its begin, the steps before each
    /// of them, and a few behind. A trace without one keeps its begin and its end.
    pub fn excerpt(&self) -> String {
        let text = self.to_string();
        let mut shown = vec![false; self.entries.len()];
        let mut show = |range: core::ops::Range<usize>| {
            let end = range.end.min(shown.len());
            shown.iter_mut().take(end).skip(range.start).for_each(|shown| *shown = true);
        };
        let broken = |step: &LadderStep| matches!(&step.entry, Entry::Observed(it) if !it.held);
        let broken: Vec<usize> =
            (0..).zip(&self.entries).filter(|(_, step)| broken(step)).map(|(place, _)| place).collect();
        for place in broken.iter().take(FINDINGS) {
            show(place.saturating_sub(BEFORE)..place + BEHIND + 1);
        }
        if broken.is_empty() {
            show(self.entries.len().saturating_sub(ENDS)..self.entries.len());
        }
        show(0..if broken.is_empty() { ENDS } else { HEAD });
        let mut excerpt = String::new();
        let mut hidden = 0;
        let note = |hidden: usize| match hidden {
            0 => String::new(),
            1 => "    1 step is not shown; --traces writes all\n".into(),
            _ => format!("    {hidden} steps are not shown; --traces writes all\n"),
        };
        // Every step is one line.
        for (line, shown) in text.lines().zip(shown) {
            if shown {
                excerpt += &note(core::mem::take(&mut hidden));
                excerpt += line;
                excerpt.push('\n');
            } else {
                hidden += 1;
            }
        }
        excerpt + &note(hidden)
    }
}

/// Writes one line per step: number of the packet, microseconds, direction, sentence. The suite is on the
/// left.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut last, mut history) = (0, History::new(self.packets().next()));
        for LadderStep { at, entry, .. } in &self.entries {
            let is_numbered = matches!(entry, Entry::Sent(_) | Entry::Received(_));
            last += usize::from(is_numbered);
            let number = is_numbered.then_some(last);
            let mut packet = |wire| format!("{}{}", sentence(wire), history.remarks(number, wire).text());
            let (mark, text) = match entry {
                Entry::Sent(wire) => ("-->", packet(wire)),
                Entry::Received(wire) => ("<--", packet(wire)),
                Entry::Lost(wire) => ("--", packet(wire)),
                Entry::Called(op) => ("", format!("control: {}", called(op))),
                Entry::Again(times, until) => ("", again(*times, until.saturating_sub(*at))),
                Entry::Observed(it) if it.held => ("", format!("{}: {}", it.requirement, it.expectation())),
                Entry::Observed(it) => {
                    ("!!", format!("{}: expected {}, seen {}", it.requirement, it.expectation(), it.seen))
                }
                Entry::Note(text) => ("", text.replace('\n', " ")),
            };
            let number = number.map(|number| number.to_string()).unwrap_or_default();
            writeln!(f, "{number:>3} {:>10} {mark:>3}  {text}", at.as_nanos() / 1000)?;
        }
        Ok(())
    }
}

/// Returns the bytes of memory that the payload of a request is for. Returns `None` for a packet that writes
/// nothing.
fn covered(wire: &Wire) -> Option<core::ops::Range<u64>> {
    let uet = Uet::parse_lax(&wire.bytes).0;
    let start = match uet.ses? {
        Ses::Std(request) => {
            let into_message = request.message_offset().unwrap_or_default();
            request.buffer_offset().unwrap_or_default().wrapping_add(into_message.into())
        }
        Ses::Medium(request) => request.buffer_offset().unwrap_or_default(),
        Ses::Small(request) => request.buffer_offset(),
        _ => return None,
    };
    let length = uet.payload.len() as u64;
    (length > 0).then(|| start..start.saturating_add(length))
}

/// Describes a packet in one line, with the reason if it cannot be read.
pub(crate) fn sentence(wire: &Wire) -> String {
    match Uet::parse_lax(&wire.bytes) {
        (uet, None) => uet.to_string(),
        (uet, Some(error)) => format!("{uet} ({error})"),
    }
}

/// Returns whether an operation only reads the state of the device.
pub(crate) fn is_look(op: &Op) -> bool {
    matches!(op, Op::ReadMemory(_) | Op::WaitCompletion(_) | Op::Counters(_))
}

/// Describes repetitions of the step before.
pub(crate) fn again(times: usize, span: Duration) -> String {
    match times {
        1 => "the same again".into(),
        _ => format!("the same again, {times} times in {}", span.show()),
    }
}

/// Maximum number of bytes of an operation's arguments in a trace.
const ARGUMENTS: usize = 160;

/// Formats the operation with its arguments: `configure {"parameters":{"max_ack_data_size":16}}`.
fn called(op: &Op) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(op) else { return String::new() };
    let name = arguments.remove("op").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    format!("{name} {}", shortened(serde_json::to_string(&arguments).unwrap_or_default()))
}

/// Lists the arguments of an operation: `length 64, job 101`.
pub(crate) fn arguments(op: &Op) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(op) else { return String::new() };
    arguments.retain(|name, _| name != "op");
    shortened(pairs(&arguments, " "))
}

fn shortened(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(ARGUMENTS) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

fn pairs(arguments: &Map<String, Value>, between: &str) -> String {
    let said = |value: &Value| !value.is_null() && *value != Value::Bool(false);
    let pairs = arguments.iter().filter(|(_, value)| said(value)).map(|(name, value)| match value {
        Value::Object(inner) if name == "parameters" => pairs(inner, " = "),
        Value::Object(inner) => format!("{name} {{{}}}", pairs(inner, " ")),
        _ => format!("{name}{between}{}", word(value)),
    });
    pairs.collect::<Vec<_>>().join(", ")
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join("+"),
        Value::Object(inner) => format!("{{{}}}", pairs(inner, " ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Relation, Trimmed};
    use core::net::IpAddr;
    use uet_wire::catalogue::PDS_ACK_004;
    use uet_wire::pds::Request;
    use uet_wire::registry::Opcode;
    use uet_wire::ses::{Small, Std};
    use uet_wire::{FrameBuilder, PdcId, Psn};

    fn step(entry: Entry) -> LadderStep {
        LadderStep { at: Duration::ZERO, phase: Phase::Stimulus, entry }
    }

    fn wire(psn: u8, entropy: u16) -> Wire {
        let [src, dst] = [1, 2].map(|end| IpAddr::from([10, 0, 0, end]));
        Wire::new(src, dst, entropy, vec![0x10, 0x60, 0, 0, 0, 0, 0, psn, 0, 0, 0x40, 1, 0x80, 1, 0, 0])
    }

    fn text(wires: Vec<Wire>) -> Vec<String> {
        let entries = wires.into_iter().map(|wire| step(Entry::Sent(wire))).collect();
        Ladder { entries }.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn remarks_show_marks_trims_repetitions_entropy_and_classes() {
        let retransmission = |mut wire: Wire| {
            wire.bytes[1] |= 0x10;
            wire
        };
        let stranger = IpAddr::from([10, 0, 0, 9]);
        let lines = text(vec![
            wire(1, 7),
            Wire { marked: true, ..wire(2, 7) },
            wire(1, 7),
            retransmission(wire(2, 7)),
            wire(3, 8),
            Wire { trimmed: Some(Trimmed::LastHop), taken: vec![0; 100], ..wire(4, 8) },
            Wire { trimmed: Some(Trimmed::Fabric), high: Some(true), ..wire(5, 8) },
            Wire { src: stranger, ..wire(6, 8) },
            Wire { lost: true, high: Some(false), ..wire(7, 8) },
        ]);
        let ends = [
            "{entropy 0x7}",
            "{CE}",
            "{duplicate of 1}",
            "{repeats the PSN of 2}",
            "{entropy 0x8}",
            "{trimmed to 16 of 116 B at the last hop}",
            "{trimmed to 16 B, DSCP class high}",
            "{entropy 0x8, 10.0.0.9 > 10.0.0.2}",
            "{lost, DSCP class low}",
        ];
        assert_eq!(lines.len(), ends.len());
        for (line, end) in lines.iter().zip(ends) {
            assert!(line.ends_with(&format!(" {end}")), "{end}: {line}");
        }
    }

    #[test]
    fn packet_lost_on_its_way_to_the_suite_has_no_number() {
        let lost = Entry::Lost(Wire { lost: true, ..wire(1, 7) });
        let ladder = Ladder { entries: vec![step(lost), step(Entry::Received(wire(1, 7)))] };
        let text = ladder.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("  --  ") && lines[0].ends_with(" {lost, entropy 0x7}"), "{text}");
        assert!(
            lines[1].starts_with("  1 ") && lines[1].ends_with(" {duplicate of a lost packet}"),
            "{text}"
        );
        assert_eq!(ladder.packets().count(), 1);
    }

    #[test]
    fn loss_is_marked_on_the_packet_with_its_bytes() {
        let other = IpAddr::from([10, 0, 0, 3]);
        let mut ladder = Ladder {
            entries: [wire(1, 7), wire(2, 7), Wire { src: other, ..wire(1, 7) }]
                .map(|wire| step(Entry::Sent(wire)))
                .into(),
        };
        let marked = |ladder: &Ladder| ladder.packets().map(|(_, wire)| wire.lost).collect::<Vec<_>>();
        ladder.mark_lost(&wire(1, 7), false);
        assert_eq!(marked(&ladder), [true, false, false], "not the last one, and not that of another source");
        ladder.mark_lost(&wire(9, 7), false);
        assert_eq!(marked(&ladder), [true, true, false], "protected: bytes on the link differ");
        ladder.mark_lost(&wire(9, 7), true);
        assert_eq!(marked(&ladder), [true; 3]);
        ladder.mark_lost(&wire(9, 7), true);
    }

    #[test]
    fn repeated_reads_are_counted() {
        let read = |offset| Op::ReadMemory(uet_control::ReadMemory { region: 1, offset, length: 8 });
        let mut ladder = Ladder::default();
        let mut step = |at, op: Op| {
            let at = Duration::from_millis(at);
            if !ladder.count_again(at, &op) {
                ladder.entries.push(LadderStep { at, phase: Phase::Stimulus, entry: Entry::Called(op) });
            }
        };
        for at in 0..5 {
            step(at, read(0));
        }
        step(5, read(8));
        // Posting the same twice is not reading twice.
        step(6, Op::Reset(uet_control::Reset {}));
        step(7, Op::Reset(uet_control::Reset {}));
        let text = ladder.to_string();
        let lines: Vec<&str> =
            text.lines().map(|line| line.trim_start_matches([' ', '0', '1', '5', '6', '7'])).collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(text.contains("the same again, 4 times in 3 ms"), "{text}");
    }

    #[test]
    fn the_last_write_is_the_newest_request_for_the_byte() {
        let request = |offset: u64, payload: &[u8]| {
            let ses = Small::build(Opcode::UET_WRITE).request_length(payload.len() as u16);
            let ses = ses.buffer_offset(offset).done().unwrap();
            let pds = Request::rud().psn(Psn(1)).spdcid(PdcId(1)).dpdcid(PdcId(2)).done().unwrap();
            let mut bytes = vec![0; 100];
            let length = FrameBuilder::new(pds).ses(ses).payload(payload).emit(&mut bytes).unwrap();
            bytes.truncate(length);
            Wire { bytes, ..wire(1, 7) }
        };
        let mut ladder =
            Ladder { entries: vec![step(Entry::Sent(request(0, &[]))), step(Entry::Sent(wire(2, 7)))] };
        assert_eq!(ladder.last_write(0), None);
        let sent = [(0, &[1; 4]), (4, &[2; 4]), (0, &[3; 4]), (8, &[4; 4])];
        ladder.entries.extend(sent.map(|(offset, payload)| step(Entry::Sent(request(offset, payload)))));
        ladder.entries.push(step(Entry::Received(request(4, &[5; 4]))));
        for (byte, number) in [(0, 5), (3, 5), (4, 4), (7, 4), (11, 6), (12, 6)] {
            assert_eq!(ladder.last_write(byte), Some(number), "byte {byte}; no request is for byte 12");
        }
    }

    #[test]
    fn payload_of_a_later_packet_belongs_at_its_message_offset() {
        let ses = Std::build(Opcode::UET_WRITE).head(|head| head.som(false)).buffer_offset(100);
        let ses = ses.message_offset(20).payload_length(2).done().unwrap();
        let pds = Request::rud().psn(Psn(1)).spdcid(PdcId(1)).dpdcid(PdcId(2)).done().unwrap();
        let mut bytes = vec![0; 100];
        let length = FrameBuilder::new(pds).ses(ses).payload(&[0; 2]).emit(&mut bytes).unwrap();
        bytes.truncate(length);
        assert_eq!(covered(&Wire { bytes, ..wire(1, 7) }), Some(120..122));
    }

    #[test]
    fn excerpt_folds_around_the_broken_observation() {
        let observation = Observation::new(PDS_ACK_004, false, Relation::Present, "an ACK", "nothing".into());
        let note = |n: usize| step(Entry::Note(format!("step {n}.")));
        let mut ladder = Ladder { entries: (0..500).map(note).collect() };
        let lines = |ladder: &Ladder| ladder.excerpt().lines().count();
        assert_eq!(lines(&ladder), 2 * ENDS + 1);
        ladder.entries[300].entry = Entry::Observed(Box::new(observation));
        let excerpt = ladder.excerpt();
        assert_eq!(lines(&ladder), HEAD + 1 + BEFORE + 1 + BEHIND + 1);
        for (step, shown) in
            [(0, true), (11, true), (12, false), (269, false), (270, true), (306, true), (307, false)]
        {
            assert_eq!(excerpt.contains(&format!("step {step}.")), shown, "{step}");
        }
        assert!(excerpt.contains("258 steps are not shown"), "{excerpt}");
        ladder.entries.truncate(20);
        assert_eq!(ladder.excerpt(), ladder.to_string());
    }
}
