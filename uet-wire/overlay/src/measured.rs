//! The packets that are measured: their fields as a program would keep them, and the C functions that read
//! and write them.

use core::ptr;

/// Fields of a kind of packet, which the overlay can read from bytes and write to them.
pub trait Measured: Copy + core::fmt::Debug + PartialEq {
    /// No field set.
    fn empty() -> Self;
    /// Parses a packet and keeps every field; false when it is not whole, or not of this kind.
    fn get(bytes: &[u8], out: &mut Self) -> bool;
    /// Parses an Ethernet frame with UDP over IPv4, as [`get`](Self::get) does a packet.
    fn get_framed(bytes: &[u8], outer: &mut Outer, out: &mut Self) -> bool;
    /// Writes the headers and gives their length, 0 when `buffer` is too short or a value too wide.
    fn put(&self, buffer: &mut [u8]) -> usize;
}

macro_rules! measured {
    ($(
        $(#[$meta:meta])*
        $Name:ident $get:ident $get_framed:ident $put:ident { $($field:ident: $ty:ty = $empty:expr,)* }
    )*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)] // the fields have their canonical names
        pub struct $Name { $(pub $field: $ty,)* }

        unsafe extern "C" {
            fn $get(bytes: *const u8, length: usize, out: *mut $Name) -> bool;
            fn $get_framed(bytes: *const u8, length: usize, outer: *mut Outer, out: *mut $Name) -> bool;
            fn $put(fields: *const $Name, buffer: *mut u8, length: usize) -> usize;
        }

        impl Measured for $Name {
            #[inline]
            fn empty() -> Self {
                $Name { $($field: $empty,)* }
            }

            #[inline]
            fn get(bytes: &[u8], out: &mut Self) -> bool {
                // SAFETY: the pointer and the length are those of `bytes`, and the C side reads no further;
                // `out` has the layout that the C side fills.
                unsafe { $get(bytes.as_ptr(), bytes.len(), out) }
            }

            #[inline]
            fn get_framed(bytes: &[u8], outer: &mut Outer, out: &mut Self) -> bool {
                // SAFETY: as in `get`, for both structs.
                unsafe { $get_framed(bytes.as_ptr(), bytes.len(), outer, out) }
            }

            #[inline]
            fn put(&self, buffer: &mut [u8]) -> usize {
                // SAFETY: `self` has the layout that the C side reads, and the C side writes within the
                // length of `buffer`.
                unsafe { $put(self, buffer.as_mut_ptr(), buffer.len()) }
            }
        }
    )*};
}

measured! {
    /// RUD_REQ with a standard request.
    RequestStd uet_get_request_std uet_frame_request_std uet_put_request_std {
        kind: u8 = 0, next_hdr: u8 = 0, retx: bool = false, ar: bool = false, syn: bool = false,
        clear_psn_offset: i16 = 0, psn: u32 = 0, spdcid: u16 = 0, dpdcid: u16 = 0,
        pdc_info: u8 = 0, psn_offset: u16 = 0,
        opcode: u8 = 0, version: u8 = 0, dc: bool = false, ie: bool = false, rel: bool = false, hd: bool = false,
        eom: bool = false, som: bool = false,
        message_id: u16 = 0, ri_generation: u8 = 0, job_id: u32 = 0, pid_on_fep: u16 = 0, resource_index: u16 = 0,
        buffer_offset: u64 = 0, initiator_restart_token: u32 = 0, target_restart_token: u32 = 0,
        initiator: u32 = 0, memory_key: u64 = 0, match_bits: u64 = 0,
        header_data: u64 = 0, payload_length: u16 = 0, message_offset: u32 = 0, request_length: u32 = 0,
        payload: *const u8 = ptr::null(), payload_bytes: usize = 0,
    }

    /// ACK with a response.
    AckResponse uet_get_ack_response uet_frame_ack_response uet_put_ack_response {
        kind: u8 = 0, next_hdr: u8 = 0, m: bool = false, retx: bool = false, p: bool = false, req: u8 = 0,
        ack_psn_offset: i16 = 0, probe_opaque: u16 = 0, cack_psn: u32 = 0, spdcid: u16 = 0, dpdcid: u16 = 0,
        list: u8 = 0, opcode: u8 = 0, version: u8 = 0, return_code: u8 = 0,
        message_id: u16 = 0, ri_generation: u8 = 0, job_id: u32 = 0, modified_length: u32 = 0,
    }

    /// ACK_CC.
    AckCc uet_get_ack_cc uet_frame_ack_cc uet_put_ack_cc {
        kind: u8 = 0, next_hdr: u8 = 0, m: bool = false, retx: bool = false, p: bool = false, req: u8 = 0,
        ack_psn_offset: i16 = 0, probe_opaque: u16 = 0, cack_psn: u32 = 0, spdcid: u16 = 0, dpdcid: u16 = 0,
        cc_type: u8 = 0, cc_flags: u8 = 0, mpr: u8 = 0, sack_psn_offset: i16 = 0, sack_bitmap: u64 = 0,
        service_time: u16 = 0, rc: bool = false, rcv_cwnd_pend: u8 = 0, rcvd_bytes: u32 = 0,
        credit: u32 = 0, ooo_count: u16 = 0, ack_cc_state: u64 = 0,
    }

    /// NACK.
    Nack uet_get_nack uet_frame_nack uet_put_nack {
        kind: u8 = 0, next_hdr: u8 = 0, m: bool = false, retx: bool = false, nt: bool = false,
        nack_code: u8 = 0, vendor_code: u8 = 0, nack_psn: u32 = 0, nack_pkt_id: u32 = 0,
        spdcid: u16 = 0, dpdcid: u16 = 0, payload: u32 = 0,
    }
}

/// The fields of the layers around UET that are kept.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields have their canonical names
pub struct Outer {
    pub dscp: u8,
    pub ecn: u8,
    pub ttl: u8,
    pub src: u32,
    pub dst: u32,
    pub entropy: u16,
}
