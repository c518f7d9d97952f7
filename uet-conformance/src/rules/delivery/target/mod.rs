//! The device as the target of a context; the suite sends the requests (section 3.5).
//!
//! - Contexts: `establish`, `establish_contexts`, `establish_refused`, `close`, `reuse`, `isolation`.
//! - The receive window and the states of a PSN: `window`, `window_position`, `psn_state`.
//! - ACKs: `ack`, `ack_content`, `ack_request`, `sack`. NACKs: `nack`, `nack_retry`. Both: `replies`, whose
//!   refused packets are in `refused_packet`.
//! - Stored responses and CLEAR: `clear`, `stored_responses`.
//! - Control packets and the return direction: `control`, `return_direction`, `return_source`.
//! - Ordered contexts, RUDI and trimmed packets: `rod`, `rudi`, `trim`.
//! - The headers of all these packets: `encoding`.
//!
//! `steps` holds what the files share.

mod ack;
mod ack_content;
mod ack_request;
mod clear;
mod close;
mod control;
mod encoding;
mod establish;
mod establish_contexts;
mod establish_refused;
mod isolation;
mod nack;
mod nack_retry;
mod psn_state;
mod refused_packet;
mod replies;
mod return_direction;
mod return_source;
mod reuse;
mod rod;
mod rudi;
mod sack;
mod steps;
mod stored_responses;
mod trim;
mod window;
mod window_position;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    establish::RULES,
    establish_contexts::RULES,
    establish_refused::RULES,
    window::RULES,
    window_position::RULES,
    psn_state::RULES,
    ack::RULES,
    ack_content::RULES,
    ack_request::RULES,
    replies::RULES,
    sack::RULES,
    nack::RULES,
    nack_retry::RULES,
    clear::RULES,
    stored_responses::RULES,
    close::RULES,
    control::RULES,
    rod::RULES,
    rudi::RULES,
    trim::RULES,
    return_direction::RULES,
    return_source::RULES,
    isolation::RULES,
    reuse::RULES,
    encoding::RULES,
];
