//! Checks the parts of a frame against each other before anything is written.

use super::{Encapsulation, FrameBuilder, Network};
use crate::WriteError;
use crate::outer::{MAX_VLANS, PROTO_UDP};
use crate::pds::{Pds, PdsBuf, Prologue};
use crate::registry::{NextHdr, Opcode, PdsType};
use crate::ses::{ExtBuf, Ses};
use crate::trailer::TrailerKind;
use crate::tss::Tss;
use crate::validate::may_follow;

type Verdict = Result<(), WriteError>;

const fn mismatch(field: &'static str, with: &'static str) -> Verdict {
    Err(WriteError::mismatch(field, with))
}

impl FrameBuilder<'_> {
    /// Fails if parts of the frame contradict each other.
    pub(super) fn check(&self) -> Verdict {
        self.check_writable()?;
        if self.checked {
            self.check_outer()?;
            self.check_tss()?;
            self.check_pds()?;
            self.check_ses()?;
        }
        Ok(())
    }

    /// Fails if a part cannot be written, or would be dropped silently.
    fn check_writable(&self) -> Verdict {
        if matches!(self.ip, Network::Mixed) {
            return mismatch("ip.src", "`ip.dst`: one is IPv4, the other IPv6");
        }
        let options = self.ipv4_options.len();
        if options > 0 && !matches!(self.ip, Network::V4(..)) {
            return mismatch("ip.ihl", "a packet that is not IPv4");
        }
        if options % 4 != 0 || options > 40 {
            return Err(WriteError::too_long("ip.ihl", options.saturating_add(20)));
        }
        if self.eth.is_none() && !self.vlans.is_empty() {
            return mismatch("vlan.id", "a packet without Ethernet");
        }
        if matches!(self.ip, Network::None) {
            if self.trailer == TrailerKind::Crc {
                return mismatch("crc", "a packet without IP: it covers the addresses");
            }
            if self.dscp != 0 {
                return mismatch("ip.dscp", "a packet without IP");
            }
            if self.ecn != 0 {
                return mismatch("ip.ecn", "a packet without IP");
            }
        }
        Ok(())
    }

    fn check_outer(&self) -> Verdict {
        if self.vlans.len() > MAX_VLANS {
            return Err(WriteError::too_long("vlan.id", self.vlans.len()));
        }
        match (self.ip, self.encapsulation) {
            (Network::None, Encapsulation::Native { .. }) => mismatch("pds.entropy", "a packet without IP"),
            (Network::None, _) if self.eth.is_some() => mismatch("eth.type", "a packet without IP"),
            (Network::None, Encapsulation::Bare) if self.pad_to > self.ip_payload_len() => {
                mismatch("padding", "a packet without IP and UDP: nothing tells it from payload")
            }
            (Network::None, _) => Ok(()),
            (_, Encapsulation::Bare) => {
                mismatch("ip.proto", "a packet with neither UDP nor entropy header: call `udp` or `native`")
            }
            (_, Encapsulation::Native { proto: PROTO_UDP, .. }) => {
                mismatch("ip.proto", "the native encapsulation: it says UDP")
            }
            _ => Ok(()),
        }
    }

    fn check_tss(&self) -> Verdict {
        let Some(tss) = &self.tss else {
            return match self.trailer {
                TrailerKind::Icv => mismatch("icv", "a packet without security header: start with `secured`"),
                _ => Ok(()),
            };
        };
        let tss = tss.view();
        if tss.head().kind() != PdsType::TSS {
            return mismatch("tss.type", "a security header");
        }
        if tss.head().sp() != matches!(tss, Tss::TssLong(_)) {
            return mismatch("tss.sp", "the form of the security header");
        }
        if self.ses.is_some() || self.ext.is_some() {
            return mismatch("tss.type", "a header that is not encrypted");
        }
        if self.trailer != TrailerKind::Icv {
            return mismatch("icv", "another trailer");
        }
        Ok(())
    }

    fn check_pds(&self) -> Verdict {
        let Some(pds) = &self.pds else { return Ok(()) };
        let kind = pds.view().kind();
        let form = Pds::TABLE.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, layout)| *layout);
        let form = form.unwrap_or(Prologue::LAYOUT);
        if kind == PdsType::TSS || form.name != pds.view().layout().name {
            return Err(WriteError::form(kind, pds.view().layout()));
        }
        let Some(ses) = &self.ses else {
            let announced = Ses::parse_as(pds.view().next_hdr(), &[]).is_some();
            // Any header may follow an unknown type.
            return if announced && !matches!(pds, PdsBuf::Prologue(_)) {
                Err(WriteError::next_hdr(pds.view().next_hdr(), None))
            } else {
                Ok(())
            };
        };
        let (stated, next) = (pds.view().next_hdr(), ses.view().next_hdr());
        if !may_follow(kind).contains(next.code().into()) {
            return Err(WriteError::ses(kind, next));
        }
        if stated != NextHdr::UET_HDR_NONE && stated != next {
            return Err(WriteError::next_hdr(stated, Some(next)));
        }
        Ok(())
    }

    fn check_ses(&self) -> Verdict {
        let opcode = self.ses.as_ref().and_then(|ses| ses.view().opcode());
        let is_atomic = opcode.is_some_and(|opcode| opcode.is_atomic());
        let is_rendezvous = opcode.is_some_and(|opcode| opcode.is_rendezvous());
        let fits = match self.ext {
            Some(ExtBuf::Rendezvous(_)) => is_rendezvous,
            Some(ExtBuf::Atomic(ext)) => is_atomic && !ext.atomic_opcode().is_compare_and_swap(),
            Some(ExtBuf::CompareSwap(ext)) => is_atomic && ext.atomic().atomic_opcode().is_compare_and_swap(),
            None => !is_atomic && !is_rendezvous,
        };
        if !fits {
            let with = match self.ext {
                None => "a packet without extension header: atomic and rendezvous requests need one",
                Some(ExtBuf::Rendezvous(_)) => "the rendezvous extension: it is for rendezvous requests",
                Some(ExtBuf::Atomic(_)) => "the atomic extension: it is for atomics without compare and swap",
                Some(ExtBuf::CompareSwap(_)) => {
                    "the extension with operands: it is for atomics that compare and swap"
                }
            };
            return mismatch("ses.opcode", with);
        }
        let Some(ses) = &self.ses else { return Ok(()) };
        let ses = ses.view();
        // A read request states the length of the data that it requests and has no payload.
        if let (Some(stated), true) = (ses.payload_length(), opcode != Some(Opcode::UET_READ)) {
            if usize::from(stated) != self.payload.len() {
                // A request that never set `payload_length` has probably forgotten `som`.
                let lacks_som = stated == 0 && matches!(ses, Ses::Std(_));
                let (stated, present) = (stated.into(), self.payload.len());
                return Err(WriteError::payload("ses.payload_length", stated, present, lacks_som));
            }
        }
        if let Some(stated) = whole_message(&ses) {
            if usize::try_from(stated) != Ok(self.payload.len()) {
                return Err(WriteError::payload("ses.request_length", stated, self.payload.len(), false));
            }
        }
        Ok(())
    }
}

/// Returns the payload length that a request states, if it carries a whole message, only data, and no error.
fn whole_message(ses: &Ses<'_>) -> Option<u32> {
    let head = ses.request_head()?;
    if !(head.opcode().is_plain() && head.som() && head.eom() && !head.ie()) {
        return None;
    }
    match ses {
        Ses::Small(header) => Some(header.request_length().into()),
        Ses::Medium(header) => Some(header.request_length().into()),
        Ses::Std(header) => Some(header.request_length()),
        _ => None,
    }
}
