//! The device as the target of a context: opening, receive window, ACKs and NACKs, kept responses, close
//! (section 3.5). The suite sends the requests.

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
mod reuse;
mod rod;
mod rudi;
mod sack;
mod steps;
mod stored_responses;
mod trim;
mod window;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    establish::RULES,
    establish_contexts::RULES,
    establish_refused::RULES,
    window::RULES,
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
    isolation::RULES,
    reuse::RULES,
    encoding::RULES,
];
