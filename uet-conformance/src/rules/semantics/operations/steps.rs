//! Steps that the rules on operations share.

use crate::Part;
use crate::prelude::*;
use crate::serve::SesFields;

/// An operation of the device that may have several packets.
pub(super) const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

/// The position of an opcode among the unassigned ones, in percent.
pub(super) const UNKNOWN_OPCODE: Axis<usize> =
    axis("opcode").values(&[("first", 0), ("middle", 50), ("last", 100)]);

/// The header of a request with an unassigned opcode.
pub(super) const UNKNOWN_FORM: Axis<Form> =
    axis("header").values(&[("std", Form::Std), ("medium", Form::Medium), ("small", Form::Small)]);

/// Returns a request with the unassigned opcode and the header of this instance.
pub(super) fn unknown_request(t: &Test<'_>, data: &[u8]) -> Result<Part, Stop> {
    let unassigned: Vec<Opcode> = Opcode::unassigned(t.spec()).collect();
    let place = t.value(&UNKNOWN_OPCODE) * unassigned.len().saturating_sub(1) / 100;
    let opcode = unassigned.get(place).copied().unwrap_or(Opcode::EXTENDED);
    let message = Message::new(opcode).data(data);
    Ok(message.in_form(t.value(&UNKNOWN_FORM))?)
}

/// Posts an operation and receives its `packets` packets.
pub(super) fn begin(
    t: &mut Test<'_>,
    kind: PostKind,
    length: usize,
    packets: u32,
) -> Result<(Operated, Target), Stop> {
    let peer = t.peer(0)?;
    begin_post(t, Post { want_data: true, ..post(kind, peer, length) }, packets)
}

/// Does the same as [`begin`] for any operation.
pub(super) fn begin_post(t: &mut Test<'_>, post: Post, packets: u32) -> Result<(Operated, Target), Stop> {
    let posted = t.post(post)?;
    let mut target = Target::accept(t)?;
    target.collect(t, packets)?;
    Ok((posted, target))
}

/// Returns the fields and the payload of the only packet of an operation.
pub(super) fn fields_of_packet(t: &mut Test<'_>, post: Post) -> Result<(SesFields, Vec<u8>), Stop> {
    let (_, target) = begin_post(t, post, 1)?;
    let request = target.packet(0)?;
    Ok((request.said()?, request.payload()))
}

/// Returns the fields and the payload of each packet of a message.
pub(super) fn fields_of_packets(
    t: &mut Test<'_>,
    post: Post,
    packets: u32,
) -> Result<Vec<(SesFields, Vec<u8>)>, Stop> {
    let (_, target) = begin_post(t, post, packets)?;
    // Without an ACK the device would retransmit them among later packets.
    target.ack(t, packets - 1)?;
    let fields = |n| target.packet(n).and_then(|request| Ok((request.said()?, request.payload())));
    (0..packets).map(fields).collect()
}

/// Returns the bytes that the device sends for an operation of this length.
pub(super) fn posted_bytes(length: usize) -> Vec<u8> {
    pattern(length as u32).take(length).collect()
}

/// Returns a SUM of this many bytes of UINT64 for the device to post.
pub(super) fn post_sum(peer: u64, kind: PostKind, length: usize) -> Post {
    let (opcode, datatype) = (Some("SUM".into()), Some("UINT64".into()));
    Post { atomic_opcode: opcode, atomic_datatype: datatype, ..post(kind, peer, length) }
}
