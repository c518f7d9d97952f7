//! Flags and capabilities, with the names and values of libfabric.
#![allow(missing_docs, reason = "the names are those of libfabric")]

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TAGGED: u64 = 1 << 3;
pub const ATOMIC: u64 = 1 << 4;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const MULTI_RECV: u64 = 1 << 16;
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
pub const PEEK: u64 = 1 << 19;
pub const COMPLETION: u64 = 1 << 24;
pub const INJECT: u64 = 1 << 25;
pub const INJECT_COMPLETE: u64 = 1 << 26;
pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const MATCH_COMPLETE: u64 = 1 << 31;
pub const LOCAL_COMM: u64 = 1 << 51;
pub const REMOTE_COMM: u64 = 1 << 52;
pub const SOURCE: u64 = 1 << 57;
pub const DISCARD: u64 = 1 << 58;
pub const CLAIM: u64 = 1 << 59;
pub const DIRECTED_RECV: u64 = 1 << 59;
pub const SELECTIVE_COMPLETION: u64 = 1 << 59;

pub const ORDER_WAW: u64 = 1 << 4;
pub const ORDER_WAS: u64 = 1 << 5;
pub const ORDER_SAW: u64 = 1 << 7;
pub const ORDER_SAS: u64 = 1 << 8;
pub const ORDER_RMA_WAW: u64 = 1 << 35;
pub const ORDER_ATOMIC_WAW: u64 = 1 << 39;
