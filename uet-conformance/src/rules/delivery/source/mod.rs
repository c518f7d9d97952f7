//! The device as an initiator (section 3.5). The suite plays its target. `establish`, `close`,
//! `close_request` and `reuse` test the life of a context, and `window` its PSNs. `ack`, `nack`,
//! `nack_fatal`, `nack_ignored`, `opening` and `spoofing` test its reactions to replies. `retransmit`,
//! `retransmit_cause`, `response_lost` and `timer` test retransmissions, `clear` and `clear_order` guaranteed
//! responses.
//! `return_direction` and `read_data` test read data, `isolation` two contexts, and `encoding` the headers.
//! `rod`, `rudi`, `rudi_retransmit` and `uud` test the other delivery modes. `steps` holds the steps that
//! they share.

mod ack;
mod clear;
mod clear_order;
mod close;
mod close_request;
mod encoding;
mod establish;
mod isolation;
mod nack;
mod nack_fatal;
mod nack_ignored;
mod opening;
mod read_data;
mod response_lost;
mod retransmit;
mod retransmit_cause;
mod return_direction;
mod reuse;
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
    opening::RULES,
    retransmit::RULES,
    timer::RULES,
    retransmit_cause::RULES,
    response_lost::RULES,
    clear::RULES,
    clear_order::RULES,
    close::RULES,
    close_request::RULES,
    reuse::RULES,
    rod::RULES,
    rudi::RULES,
    rudi_retransmit::RULES,
    uud::RULES,
    encoding::RULES,
    spoofing::RULES,
    return_direction::RULES,
    read_data::RULES,
    isolation::RULES,
];
