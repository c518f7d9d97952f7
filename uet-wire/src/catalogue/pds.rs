//! What packet delivery does over several packets: `PDS-`. `uet-model` shows how.

use super::{Level, Requirement};

// Identifier, level, section, independent sources, where in docs/, sentence.
catalogue! {
    PDS_ACK_004 "PDS-ACK-004" Must "3.5.12.2" 2 "behaviour"
        "A packet that asks for an acknowledgement is acknowledged at once";
}
