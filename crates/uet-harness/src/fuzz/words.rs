//! Says in words what a step of a script does.

use serde::Serialize;
use uet_conformance::Edit;
use uet_conformance::random::step::{By, Form, MessagePlan, Step, Wrong};
use uet_control::PostKind;
use uet_wire::registry::NackCode;

/// Returns what a step of the fuzzer does, and what is special about its packets. Contexts count from 0, as in scripts.
pub fn in_words(step: &Step) -> String {
    match step {
        Step::Changed { of, packet, edits } => {
            format!("{}; its packet {} {}", in_words(of), u32::from(*packet) + 1, changes(edits))
        }
        Step::Message(plan) => message(plan),
        Step::Post(posting) => {
            let (kind, mode) = (name(&posting.kind), posting.mode.name());
            let replies = special(&posting.replies);
            format!("the device posts a {kind} of {} B by {mode}{replies}", posting.length)
        }
        Step::Control { context, kind, back, fate } => {
            let about = if *back > 0 { format!(", {back} PSNs before the last") } else { String::new() };
            format!("{} on context {context}{about}{}", kind.ctl_type(), special(&[*fate]))
        }
        Step::Repeat { context, back, retx } => {
            let retx = if *retx { "with" } else { "without" };
            format!("packet {back} before the last of context {context} again, {retx} retx")
        }
        Step::Close { context, .. } => format!("CLOSE_COMMAND on context {context}"),
        Step::CloseByDevice(plan) => {
            format!("the device closes its {} context", if plan.rod { "ROD" } else { "RUD" })
        }
        Step::Abort { code, .. } => {
            let code = NackCode::new(*code).map_or_else(|| code.to_string(), |code| code.to_string());
            format!("NACK {code} of the oldest packet of the device")
        }
        Step::Hostile { edits, .. } => format!("a packet that is not UET: {}", changes(edits)),
        Step::Recorded { bytes } => format!("a recorded packet of {} B", bytes.0.len()),
        Step::Pause { us } => format!("a pause of {us} µs"),
        Step::Receive { .. }
        | Step::Ask { .. }
        | Step::RequestClose(_)
        | Step::Rekey { .. }
        | Step::Stranger { .. } => "nothing: the fuzzer does not play such steps".into(),
    }
}

/// Describes a message, as `Memory` gives it its place and its mistake.
fn message(plan: &MessagePlan) -> String {
    let MessagePlan { context, kind, region, offset, length, .. } = plan;
    let mut words = format!("{} of {length} B", plan.opcode());
    if matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic) {
        let region = if *region == 1 { "read-only" } else { "writable" };
        words += &match plan.wrong {
            Wrong::Range => format!(" beyond the end of the {region} region"),
            _ => format!(" at {offset} of the {region} region"),
        };
    }
    words += &match plan.by {
        By::Context => format!(", on context {context}"),
        By::Rudi => ", by rudi".to_owned(),
        By::Uud => ", by uud".to_owned(),
    };
    if plan.form != Form::Std {
        words += &format!(", with a {} header", name(&plan.form));
    }
    match plan.wrong {
        // The fuzzer does not make the last two.
        Wrong::Nothing | Wrong::Range | Wrong::Opcode | Wrong::GivenUp => {}
        wrong => words += &format!(", with a wrong {}", name(&wrong)),
    }
    let flags = [(plan.quiet, "no ACK requested"), (plan.complete, "delivery complete requested")];
    flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, flag)| words += &format!(", {flag}"));
    words + &special(&plan.fates)
}

/// Names the packets whose fate or reply is not the usual one.
fn special<T: Serialize + Default + PartialEq>(packets: &[T]) -> String {
    let numbered = packets.iter().zip(1u64..).filter(|(packet, _)| **packet != T::default());
    numbered.map(|(packet, number)| format!(", packet {number} {}", name(packet))).collect()
}

/// Returns the name of a value in scripts, in words.
fn name(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

/// Names the changes of a packet.
fn changes(edits: &[Edit]) -> String {
    let of_edit = |edit: &Edit| match edit {
        Edit::Set { field, value, .. } => format!("has {field} {value}"),
        Edit::Add { field, by, .. } => format!("has {field} changed by {by}"),
        Edit::Flip { bit } => format!("has bit {bit} flipped"),
        Edit::Cut { left } => format!("is cut to {left} B"),
        Edit::Grow { bytes } => format!("has {} B appended", bytes.0.len()),
        Edit::Twice => "is sent twice".into(),
        Edit::Mark => "is sent marked".into(),
    };
    edits.iter().map(of_edit).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use serde_json::{Value, json};

    fn words(step: Value) -> String {
        in_words(&serde_json::from_value(step).unwrap())
    }

    #[test]
    fn words_name_what_is_special() {
        let write =
            json!({"step": "message", "context": 0, "kind": "write", "region": 1, "length": 1, "tag": 2});
        assert_eq!(words(write), "UET_WRITE of 1 B at 0 of the read-only region, on context 0");
        let read = json!({"step": "message", "context": 2, "kind": "read", "length": 9, "form": "small", "wrong": "key",
            "quiet": true, "fates": ["arrives", "lost"]});
        assert_eq!(
            words(json!({"step": "changed", "of": read, "edits": [{"edit": "twice"}]})),
            "UET_READ of 9 B at 0 of the writable region, on context 2, with a small header, with a wrong key, \
             no ACK requested, packet 2 lost; its packet 1 is sent twice"
        );
        let replies = ["ack_lost"];
        let post = json!({"step": "post", "kind": "rendezvous_send", "mode": "rod", "length": 5, "replies": replies});
        assert_eq!(words(post), "the device posts a rendezvous send of 5 B by rod, packet 1 ack lost");
        let probe = json!({"step": "control", "context": 0, "kind": "probe", "fate": "late"});
        assert_eq!(words(probe), "PROBE on context 0, packet 1 late");
        let edits = json!([{"edit": "grow", "bytes": "0102"}]);
        let noise = json!({"step": "hostile", "context": 0, "packet": "bytes", "edits": edits});
        assert_eq!(words(noise), "a packet that is not UET: has 2 B appended");
    }
}
