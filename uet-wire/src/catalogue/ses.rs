//! What the semantics do over several packets: `SES-`. `uet-model` shows how.

use super::{Level, Requirement};

// Identifier, level, section, independent sources, where in docs/, sentence.
catalogue! {
    SES_ADDR_001 "SES-ADDR-001" Must "3.4.1" 2 "behaviour"
        "With absolute addressing pid_on_fep alone selects the process; with relative addressing job_id and pid_on_fep do";
}
