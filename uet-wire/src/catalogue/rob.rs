//! Robustness of a device: `ROB-`. `uet-conformance` tests it.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    ROB_LIFE_001 "ROB-LIFE-001" Must "3.5" 1 "behaviour"
        "A device keeps serving well-formed requests, whatever packets arrive";
    ROB_STATE_001 "ROB-STATE-001" Must "3.5" 1 "behaviour"
        "A malformed packet, or one without a context, changes no memory and no context";
    ROB_RSVD_001 "ROB-RSVD-001" Should "3.5.10, 3.4.2" 2 "wire-format"
        "A receiver ignores reserved bits";
    ROB_CRC_001 "ROB-CRC-001" Must "3.5" 1 "wire-format"
        "A receiver drops a packet with a wrong CRC: it neither delivers nor acknowledges it, nor takes it for an ACK";
    ROB_FLOOD_001 "ROB-FLOOD-001" Must "3.5.8" 1 "behaviour"
        "Packets that open contexts, or try to, leave established contexts unchanged, in whatever number they arrive";
}
