use super::{Prologue, PrologueMut, PrologueRepr};
use crate::header::header;
use crate::layout::{Values, is};
use crate::registry::{AckRequest, CcType, CcxType, PdsType};
use crate::{PdcId, Psn, Units24};
use core::borrow::{Borrow, BorrowMut};

header! {
    /// An acknowledgment (ACK).
    ///
    /// ```
    /// use uet_wire::pds::Ack;
    /// use uet_wire::Psn;
    ///
    /// let bytes = [0x3a, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x00, 0x01, 0x80, 0x01, 0x40, 0x01];
    /// let (ack, _) = Ack::parse(&bytes)?;
    /// assert_eq!(ack.cack_psn(), Psn(1));
    /// assert_eq!(ack.ack_psn(), Some(Psn(0xffff_ffff)), "two before, across the wrap");
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Ack[12] AckMut AckRepr, Pds "ack" "acknowledgment" {
        "prologue"              0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
        "-"                     9.. 10;
        "pds.flags.m"          10.. 11  m: bool, "the packet answered arrived marked by congestion";
        "pds.flags.retx"       11.. 12  retx: bool, "the packet answered was a retransmission";
        "pds.flags.p"          12.. 13  p: bool, "this answers a probe";
        "pds.flags.req"        13.. 15  req: AckRequest, "what the sender of the ACK wants done";
        "-"                    15.. 16;
        "pds.ack_psn_offset"   16.. 32  ack_psn_offset: i16 [when "pds.flags.p" is(0)], "distance from cack_psn to the PSN answered";
        "pds.probe_opaque"     16.. 32  probe_opaque: u16 [when "pds.flags.p" is(1)], "copied from the probe";
        "pds.cack_psn"         32.. 64  cack_psn: Psn, "all PSNs up to this one have been received";
        "pds.spdcid"           64.. 80  spdcid: PdcId, "the sender's identifier of the context";
        "pds.dpdcid"           80.. 96  dpdcid: PdcId, "the receiver's identifier of the context";
    }
}

impl Ack {
    /// Starts building an ACK.
    pub fn build() -> AckMut {
        Ack::zeroed().edit().prologue(|prologue| prologue.kind(PdsType::ACK))
    }
}

impl<B: Borrow<[u8; 12]>> Ack<B> {
    /// Returns the PSN of the acknowledged packet. Returns `None` if the ACK answers a PROBE.
    #[inline]
    pub fn ack_psn(&self) -> Option<Psn> {
        Some(self.cack_psn().offset(self.ack_psn_offset()?))
    }
}

impl<B: BorrowMut<[u8; 12]>> AckMut<B> {
    /// Sets `ack_psn_offset` from the PSN of the acknowledged packet. Set `cack_psn` first: a later `cack_psn` keeps
    /// the offset, and so names another packet.
    ///
    /// An error if the distance does not fit into 16 bits, or if the ACK answers a PROBE.
    ///
    /// ```
    /// use uet_wire::Psn;
    /// use uet_wire::pds::Ack;
    ///
    /// // Packet 335 arrived; all packets up to 332 had arrived before.
    /// let ack = Ack::build().cack_psn(Psn(332)).ack_psn(Psn(335)).done()?;
    /// assert_eq!((ack.ack_psn_offset(), ack.ack_psn()), (Some(3), Some(Psn(335))));
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    #[inline]
    pub fn ack_psn(mut self, psn: Psn) -> Self {
        match psn.offset_from(self.current_unchecked().cack_psn()) {
            Some(offset) => self.ack_psn_offset(offset),
            None => {
                let error = const { &crate::WriteError::psn_too_far("pds.ack_psn_offset", "pds.cack_psn") };
                self.error = self.error.or(Some(error));
                self
            }
        }
    }
}

header! {
    /// The selective acknowledgment (SACK): the PSNs received beyond the cumulative PSN.
    ///
    /// ```
    /// use uet_wire::Psn;
    /// use uet_wire::pds::Sack;
    ///
    /// let (sack, _) = Sack::parse(&[8, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0b101])?;
    /// assert_eq!(sack.mp_range(), Some(1024));
    /// assert_eq!(sack.sacked(Psn(10)).collect::<Vec<_>>(), [Psn(8), Psn(10)]);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Sack[11] SackMut SackRepr, Pds "sack" "receive range and bitmap" {
        "pds.mpr"               0..  8  mpr: u8, "receive range in units of 128 PSNs, 0 for no limit";
        "pds.sack_psn_offset"   8.. 24  sack_psn_offset: i16, "distance from cack_psn to the first PSN of the bitmap";
        "pds.sack_bitmap"      24.. 88  sack_bitmap: u64, "bit i set: PSN sack_psn + i has been received";
    }
}

impl<B: Borrow<[u8; 11]>> Sack<B> {
    /// Returns the number of PSNs that the sender may send above the cumulative PSN. Returns `None` if there is no
    /// limit.
    #[inline]
    pub fn mp_range(&self) -> Option<u32> {
        match self.mpr() {
            0 => None,
            mpr => Some(u32::from(mpr) * 128),
        }
    }

    /// Returns the PSN of bit 0 of the bitmap.
    #[inline]
    pub fn sack_psn(&self, cack_psn: Psn) -> Psn {
        cack_psn.offset(self.sack_psn_offset())
    }

    /// Returns the PSNs that the bitmap reports as received, in ascending order.
    #[inline]
    pub fn sacked(&self, cack_psn: Psn) -> Sacked {
        Sacked { base: self.sack_psn(cack_psn), bits: self.sack_bitmap() }
    }
}

/// An iterator over the PSNs of a bitmap, in ascending serial order.
///
/// ```
/// use uet_wire::pds::Sack;
/// use uet_wire::Psn;
///
/// let sack = Sack::zeroed().edit().sack_psn_offset(2).sack_bitmap(0b1_0110).done()?;
/// let psns: Vec<_> = sack.sacked(Psn(0xffff_fffd)).collect();
/// assert_eq!(psns, [Psn(0), Psn(1), Psn(3)]);
/// let ranges: Vec<_> = sack.sacked(Psn(0xffff_fffd)).ranges().collect();
/// assert_eq!(ranges, [(Psn(0), Psn(1)), (Psn(3), Psn(3))]);
/// # Ok::<(), uet_wire::WriteError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sacked {
    base: Psn,
    bits: u64,
}

impl Iterator for Sacked {
    type Item = Psn;

    #[inline]
    fn next(&mut self) -> Option<Psn> {
        if self.bits == 0 {
            return None;
        }
        let psn = self.base + self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(psn)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl ExactSizeIterator for Sacked {
    fn len(&self) -> usize {
        self.bits.count_ones() as usize
    }
}

impl Sacked {
    /// Returns the PSNs as ranges: first and last PSN of each.
    pub fn ranges(self) -> impl Iterator<Item = (Psn, Psn)> + Clone {
        let Sacked { base, mut bits } = self;
        core::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let first = bits.trailing_zeros();
            let length = (bits >> first).trailing_ones();
            bits &= u64::MAX.checked_shl(first + length).unwrap_or(0);
            Some((base + first, base + (first + length - 1)))
        })
    }
}

/// Types of congestion state whose 64 bits have no public layout.
const OPAQUE: Values = CcType::set(&[CcType::NSCC, CcType::CREDIT]).not();

header! {
    /// An acknowledgment with congestion state (ACK_CC).
    ///
    /// ```
    /// use uet_wire::pds::AckCc;
    /// use uet_wire::registry::CcType;
    /// use uet_wire::{PdcId, Psn, Units24};
    ///
    /// let ack = AckCc::build()
    ///     .ack(|a| a.cack_psn(Psn(334)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)))
    ///     .cc_type(CcType::NSCC)
    ///     .sack(|s| s.mpr(8).sack_psn_offset(2).sack_bitmap(0b11))
    ///     .service_time(8)
    ///     .rcvd_bytes(Units24::from_bytes(16_384))
    ///     .done()?;
    /// assert_eq!(ack.bytes()[..16], [0x40, 0, 0, 0, 0, 0, 1, 0x4e, 0x80, 1, 0x40, 1, 0, 8, 0, 2]);
    /// assert_eq!(ack.bytes()[16..], [0, 0, 0, 0, 0, 0, 0, 3, 0, 8, 0, 0, 0, 64, 0, 0]);
    /// assert_eq!(ack.service_time_ns(), Some(1024));
    /// assert_eq!(ack.credit(), None, "credit has another cc_type");
    /// assert_eq!(ack.sacked().collect::<Vec<_>>(), [Psn(336), Psn(337)]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    AckCc[32] AckCcMut AckCcRepr, Pds "ack_cc" "acknowledgment with congestion state" {
        "ack"                   0.. 96  ack: Ack as AckMut AckRepr, "the acknowledgment without congestion state";
        "pds.cc_type"          96..100  cc_type: CcType, "which congestion state follows";
        "pds.cc_flags"        100..104  cc_flags: u8, "reserved";
        "sack"                104..192  sack: Sack as SackMut SackRepr, "receive range and bitmap";
        "pds.service_time"    192..208  service_time: u16 [when "pds.cc_type" is(0)], "time at the destination in units of 128 ns, 0 when not valid";
        "pds.rc"              208..209  rc: bool [when "pds.cc_type" is(0)], "restore the congestion window";
        "pds.rcv_cwnd_pend"   209..216  rcv_cwnd_pend: u8 [when "pds.cc_type" is(0)], "receiver's penalty, 0 to 127";
        "pds.rcvd_bytes"      216..240  rcvd_bytes: Units24 [when "pds.cc_type" is(0)], "bytes received, cumulative, in units of 256";
        "pds.credit"          192..216  credit: Units24 [when "pds.cc_type" is(1)], "credit granted, cumulative, in units of 256 bytes";
        "-"                   216..240  [when "pds.cc_type" is(1)];
        "pds.ooo_count"       240..256  ooo_count: u16 [when "pds.cc_type" OPAQUE.not()], "packets received out of order, 0xffff when not counted";
        "pds.ack_cc_state"    192..256  ack_cc_state: u64 [when "pds.cc_type" OPAQUE], "congestion state without a public layout";
    }
}

impl AckCc {
    /// Starts building an ACK_CC.
    pub fn build() -> AckCcMut {
        AckCc::zeroed().edit().ack(|ack| ack.prologue(|prologue| prologue.kind(PdsType::ACK_CC)))
    }
}

impl<B: Borrow<[u8; 32]>> AckCc<B> {
    /// Returns the PSN of bit 0 of the bitmap.
    pub fn sack_psn(&self) -> Psn {
        self.sack().sack_psn(self.ack().cack_psn())
    }

    /// Returns the PSNs that the bitmap reports as received.
    pub fn sacked(&self) -> Sacked {
        self.sack().sacked(self.ack().cack_psn())
    }

    /// Returns the service time in nanoseconds, or `None` if it is absent or invalid. The highest value, 8,388,480,
    /// also represents all longer times.
    pub fn service_time_ns(&self) -> Option<u32> {
        match self.service_time()? {
            0 => None,
            units => Some(u32::from(units) * 128),
        }
    }
}

header! {
    /// An acknowledgment with a larger congestion state (ACK_CCX). The layout of the state is not public.
    ///
    /// ```
    /// use uet_wire::pds::AckCcx;
    ///
    /// let ack = AckCcx::build().ack_ccx_state(1 << 127).done()?;
    /// assert_eq!(ack.bytes()[24], 0x80);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    AckCcx[40] AckCcxMut AckCcxRepr, Pds "ack_ccx" "acknowledgment with extended congestion state" {
        "ack"                   0.. 96  ack: Ack as AckMut AckRepr, "the acknowledgment without congestion state";
        "pds.ccx_type"         96..100  ccx_type: CcxType, "which congestion state follows";
        "pds.cc_flags"        100..104  cc_flags: u8, "reserved";
        "sack"                104..192  sack: Sack as SackMut SackRepr, "receive range and bitmap";
        "pds.ack_ccx_state"   192..320  ack_ccx_state: u128, "congestion state without a public layout";
    }
}

impl AckCcx {
    /// Starts building an ACK_CCX.
    pub fn build() -> AckCcxMut {
        AckCcx::zeroed().edit().ack(|ack| ack.prologue(|prologue| prologue.kind(PdsType::ACK_CCX)))
    }
}

impl<B: Borrow<[u8; 40]>> AckCcx<B> {
    /// Returns the PSN of bit 0 of the bitmap.
    pub fn sack_psn(&self) -> Psn {
        self.sack().sack_psn(self.ack().cack_psn())
    }

    /// Returns the PSNs that the bitmap reports as received.
    pub fn sacked(&self) -> Sacked {
        self.sack().sacked(self.ack().cack_psn())
    }
}
