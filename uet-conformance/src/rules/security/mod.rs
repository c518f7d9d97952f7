//! Transport security (section 3.7). `send` and `receive` test the two ends, and `receive_icv` and
//! `receive_icv_source` packets that are not authentic. `receive_source` tests an initiator that gets packets
//! that do not open. `header` tests the security header and the authenticated fields, `key` the derivation
//! of keys, and `rekey` implicit rekey. `rotation` tests the replacement of keys, `rotation_packets` each
//! type of packet after it, and `rotation_source` the answers to an initiator. `lost_key` tests a device
//! without a key, and `domains` two domains of one device. `binding` (3.5.4), `start`, `pending` and
//! `new_start` (3.5.8) test secured contexts, `datagram` secured datagrams (3.5.6), `credit` secured demand
//! and grants (3.6.14), and `plaintext` packets without protection. `steps` holds shared steps.

mod binding;
mod credit;
mod datagram;
mod domains;
mod header;
mod key;
mod lost_key;
mod new_start;
mod pending;
mod plaintext;
mod receive;
mod receive_icv;
mod receive_icv_source;
mod receive_source;
mod rekey;
mod rotation;
mod rotation_packets;
mod rotation_source;
mod send;
mod start;
mod steps;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] = &[
    binding::RULES,
    plaintext::RULES,
    credit::RULES,
    datagram::RULES,
    domains::RULES,
    header::RULES,
    key::RULES,
    rekey::RULES,
    lost_key::RULES,
    receive::RULES,
    receive_icv::RULES,
    receive_icv_source::RULES,
    receive_source::RULES,
    new_start::RULES,
    rotation::RULES,
    rotation_packets::RULES,
    rotation_source::RULES,
    send::RULES,
    start::RULES,
    pending::RULES,
];
