//! Packet delivery (section 3.5): contexts, sequence numbers, acknowledgments and retransmission. `target`
//! plays an initiator against the device, `source` plays a target.

pub(super) mod source;
pub(super) mod target;
