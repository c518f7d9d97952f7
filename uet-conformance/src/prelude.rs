//! The imports of a script: the declaration of rules and axes, the handle of a script, and the words of the
//! protocol.

pub use crate::axis::{Axis, CARRIER, MODE, START, axis};
pub use crate::needs::*;
pub use crate::receives::{room, tagged_room};
pub use crate::rule::{Rule, RuleDraft, rule};
pub use crate::target::{Target, post};
pub use crate::{
    AckBuilder, Bound, Message, Need, Outcome, Pdc, Region, Request, RxPacket, Stop, Test, require, skip,
};
pub use core::time::Duration;
pub use uet_control::{ExposeRegion, Form, Hex64, Mode, Operated, Post, PostKind, Status, pattern};
pub use uet_wire::catalogue::*;
pub use uet_wire::registry::{AckRequest, CtlType, NackCode, NextHdr, Opcode, PdsType, ReturnCode};
pub use uet_wire::{PdcId, Psn, UetBuf};
