//! The device as the initiator of a context: opening, send window, reaction to ACKs and NACKs,
//! retransmission, close (section 3.5). The suite answers its requests.

mod ack;
mod clear;
mod clear_order;
mod close;
mod close_request;
mod encoding;
mod establish;
mod nack;
mod nack_fatal;
mod nack_ignored;
mod response_lost;
mod retransmit;
mod retransmit_cause;
mod return_direction;
mod rod;
mod rudi;
mod rudi_retransmit;
mod spoofing;
mod steps;
mod timer;
mod uud;
mod window;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    establish::RULES,
    window::RULES,
    ack::RULES,
    nack::RULES,
    nack_fatal::RULES,
    nack_ignored::RULES,
    retransmit::RULES,
    timer::RULES,
    retransmit_cause::RULES,
    response_lost::RULES,
    clear::RULES,
    clear_order::RULES,
    close::RULES,
    close_request::RULES,
    rod::RULES,
    rudi::RULES,
    rudi_retransmit::RULES,
    uud::RULES,
    encoding::RULES,
    spoofing::RULES,
    return_direction::RULES,
];
