//! Packets that no correct peer sends (sections 3.4 and 3.5). `malformed` tests truncated, oversized and
//! invalid packets, `reserved` reserved bits, `crc` damaged packets, `ip` and `spoofing` packets from wrong
//! senders, and `flood` too many packets. `steps` holds what the rules share.

mod crc;
mod flood;
mod ip;
mod malformed;
mod reserved;
mod spoofing;
mod steps;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] =
    &[malformed::RULES, reserved::RULES, ip::RULES, crc::RULES, spoofing::RULES, flood::RULES];
