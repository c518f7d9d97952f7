//! Packets that no correct peer sends: malformed, damaged, spoofed, or too many.

mod crc;
mod flood;
mod ip;
mod malformed;
mod reserved;
mod spoofing;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] =
    &[malformed::RULES, reserved::RULES, ip::RULES, crc::RULES, spoofing::RULES, flood::RULES];
