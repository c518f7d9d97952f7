//! Congestion control: `CC-` (contexts, NSCC, paths) and `RCCC-`. `uet-model` shows how.

use super::{Level, Requirement};

// Identifier, level, section, independent sources, where in docs/, sentence.
catalogue! {
    CC_PATH_001 "CC-PATH-001" Should "3.6.10" 2 "congestion"
        "An ACK or NACK carries the entropy value of the packet that it answers";
}
