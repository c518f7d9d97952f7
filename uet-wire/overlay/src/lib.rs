//! The UET headers a second time: a C overlay of packed structs, written by hand.
//!
//! `overlay.c` knows nothing of the `uet-wire` crate and is not made from it. Benchmarks run beside it, and
//! tests and fuzzers compare every field of every header: [`headers`] and [`Walk`] are for them, the structs
//! with `get`, `get_framed` and `put` for the benchmarks.

use core::ffi::{CStr, c_char};

mod measured;
pub use measured::{AckCc, AckResponse, Measured, Nack, Outer, RequestStd};

/// The headers of `overlay.h`; a test of this crate holds the numbers against the C side.
const HEADERS: usize = 33;
const FIELDS: usize = 124;

#[repr(C)]
struct RawView {
    hi: [u64; FIELDS],
    lo: [u64; FIELDS],
    present: [u8; FIELDS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawPlace {
    header: u32,
    offset: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawWalk {
    at: [RawPlace; 12],
    count: u32,
    payload_offset: u32,
    payload_length: u32,
    trailer_length: u32,
    stopped_in: u32,
    stopped_at: u32,
    trimmed: bool,
    is_uet: bool,
}

unsafe extern "C" {
    static uet_header_names: [*const c_char; HEADERS];
    static uet_header_sizes: [usize; HEADERS];
    static uet_field_names: [*const c_char; FIELDS];
    static uet_header_count: usize;
    static uet_field_count: usize;
    fn uet_read_header(header: usize, bytes: *const u8, length: usize, view: *mut RawView) -> bool;
    fn uet_walk_packet(bytes: *const u8, length: usize, walk: *mut RawWalk);
    fn uet_walk_frame(
        bytes: *const u8,
        length: usize,
        udp_port: u16,
        ip_proto: u8,
        trailer_length: u32,
        walk: *mut RawWalk,
    );
}

/// A header that the overlay knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header(usize);

/// All headers that the overlay knows.
pub fn headers() -> impl Iterator<Item = Header> {
    // The C side says how many there are: were the constants above wrong, nothing else here would be right.
    // SAFETY: both are constants of the C side.
    let counted = unsafe { (uet_header_count, uet_field_count) };
    assert_eq!(counted, (HEADERS, FIELDS), "HEADERS and FIELDS are to be those of overlay.h");
    (0..HEADERS).map(Header)
}

fn name(pointer: *const c_char) -> &'static str {
    // SAFETY: the pointers come from the name tables of the C side, which hold string literals.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or_default()
}

impl Header {
    /// Its short name, as the codec's tables have it.
    pub fn name(self) -> &'static str {
        // SAFETY: a constant of the C side; `headers` checks its length, and a `Header` lies inside.
        name(unsafe { uet_header_names[self.0] })
    }

    /// Its length in bytes.
    pub fn size(self) -> usize {
        // SAFETY: as in `name`.
        unsafe { uet_header_sizes[self.0] }
    }

    /// Every field that the header at the start of `bytes` has: canonical name and raw bits, right-aligned.
    /// `None` when it is cut.
    pub fn read(self, bytes: &[u8]) -> Option<Vec<(&'static str, u128)>> {
        let mut view = RawView { hi: [0; FIELDS], lo: [0; FIELDS], present: [0; FIELDS] };
        // SAFETY: the pointer and the length are those of `bytes`, and the C side reads no further; `view` has
        // the layout that the C side fills.
        if !unsafe { uet_read_header(self.0, bytes.as_ptr(), bytes.len(), &mut view) } {
            return None;
        }
        let present = (0..FIELDS).filter(|field| view.present[*field] != 0);
        Some(
            present
                .map(|field| {
                    let value = u128::from(view.hi[field]) << 64 | u128::from(view.lo[field]);
                    // SAFETY: a constant of the C side.
                    (name(unsafe { uet_field_names[field] }), value)
                })
                .collect(),
        )
    }
}

impl core::fmt::Debug for Header {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The headers and payload that the overlay finds in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The headers in wire order, each with its offset.
    pub headers: Vec<(Header, usize)>,
    /// Offset and length of what follows the headers; meaningless when reading stopped.
    pub payload: (usize, usize),
    /// The length of the trailer that was split off.
    pub trailer: usize,
    /// The header at which reading stopped, and its offset, when it did.
    pub stopped: Option<(Header, usize)>,
    /// UDP promises more bytes than IP has.
    pub trimmed: bool,
    /// The packet is UET, or the start of it.
    pub is_uet: bool,
}

impl Walk {
    /// A packet that starts with UET.
    pub fn packet(bytes: &[u8]) -> Self {
        let mut raw = RawWalk::default();
        // SAFETY: the pointer and the length are those of `bytes`, and the C side reads no further; `raw` has
        // the layout that the C side fills.
        unsafe { uet_walk_packet(bytes.as_ptr(), bytes.len(), &mut raw) };
        raw.into()
    }

    /// A packet that starts with Ethernet.
    pub fn frame(bytes: &[u8], udp_port: u16, ip_proto: u8, trailer: u32) -> Self {
        let mut raw = RawWalk::default();
        // SAFETY: as in `packet`.
        unsafe { uet_walk_frame(bytes.as_ptr(), bytes.len(), udp_port, ip_proto, trailer, &mut raw) };
        raw.into()
    }
}

impl From<RawWalk> for Walk {
    fn from(raw: RawWalk) -> Self {
        let header = |header: u32| headers().nth(header as usize);
        let found = raw.at.iter().take(raw.count as usize);
        Walk {
            headers: found.filter_map(|at| Some((header(at.header)?, at.offset as usize))).collect(),
            payload: (raw.payload_offset as usize, raw.payload_length as usize),
            trailer: raw.trailer_length as usize,
            stopped: header(raw.stopped_in).map(|header| (header, raw.stopped_at as usize)),
            trimmed: raw.trimmed,
            is_uet: raw.is_uet,
        }
    }
}
