//! Robustness of a device: `ROB-`. `uet-conformance` tests it.

use super::{Level, Requirement};

// Identifier, level, section, number of independent sources, page in docs/, sentence.
catalogue! {
    ROB_LIFE_001 "ROB-LIFE-001" Must "3.5" 1 "behaviour"
        "Whatever arrives, a device goes on serving well-formed requests";
    ROB_STATE_001 "ROB-STATE-001" Must "3.5" 1 "behaviour"
        "A packet that is malformed, or of no context, changes no memory and no context";
    ROB_RSVD_001 "ROB-RSVD-001" Should "3.5.10, 3.4.2" 2 "wire-format"
        "Reserved bits are ignored on receipt";
    ROB_CRC_001 "ROB-CRC-001" Must "3.5" 1 "wire-format"
        "A packet whose CRC is wrong is dropped: it is neither delivered nor acknowledged, and acknowledges nothing";
    ROB_FLOOD_001 "ROB-FLOOD-001" Must "3.5.8" 1 "behaviour"
        "Packets that open contexts, or try to, in any number leave established contexts as they are";
}
