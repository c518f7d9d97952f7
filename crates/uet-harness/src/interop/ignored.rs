//! Finds an end that ignores `ar`: it acknowledges no packet that asks for an ACK, but each retransmission at once.
//!
//! A packet or its ACK may be lost even on a network that drops nothing: at the socket of an end. An end may also be
//! slow. So many packets must show it, and few the opposite: such an end still acknowledges every so many bytes.

use super::acknowledged::Acknowledged;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_wire::pds::Pds;
use uet_wire::{PdcId, Psn};

/// An end is quick if it answers a retransmission in this share of the time that the first transmission had.
const SHARE: u32 = 4;

/// The number of packets that must show it.
const ENOUGH: u64 = 16;

/// At most one in so many of them may show the opposite.
const FEW: u64 = 8;

/// A packet with `ar` and without an ACK so far.
#[derive(Debug)]
struct Asking {
    number: u64,
    sent: Duration,
    /// The time of its first retransmission.
    repeated: Option<Duration>,
}

/// The packets with `ar` that an end has answered.
#[derive(Debug, Default)]
struct Answers {
    /// The number of those that it has answered before their retransmission, or without `retx`.
    served: u64,
    /// The number of those that it has answered only after the retransmission, and then at once.
    ignored: u64,
    /// The packet number of the last of them.
    last: u64,
}

/// Follows the packets with `ar` of both ends.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    /// By sender, its PDCID and the PSN.
    asking: BTreeMap<(IpAddr, PdcId, u32), Asking>,
    /// By receiver.
    answers: BTreeMap<IpAddr, Answers>,
}

impl Ignored {
    /// Takes the next packet. Only packets without `syn` count, since each `syn` demands an ACK.
    pub(super) fn packet(
        &mut self,
        (src, dst): (IpAddr, IpAddr),
        pds: &Pds<'_>,
        number: u64,
        time: Duration,
    ) {
        if let Some(request) = pds.request() {
            let key = (src, request.spdcid(), request.psn().0);
            if let Some(asking) = self.asking.get_mut(&key) {
                asking.repeated.get_or_insert(time);
            } else if request.ar() && !request.syn() && !request.retx() {
                self.asking.insert(key, Asking { number, sent: time, repeated: None });
            }
        } else if let Some(ack) = Acknowledged::of(pds) {
            self.acknowledge(src, dst, &ack, time);
        } else if let Some(nack) = pds.nack() {
            let refused = (dst, nack.dpdcid());
            self.asking.retain(|(sender, context, _), _| (*sender, *context) != refused);
        }
    }

    fn acknowledge(&mut self, receiver: IpAddr, sender: IpAddr, ack: &Acknowledged, time: Duration) {
        let of_context = (sender, ack.context, 0)..=(sender, ack.context, u32::MAX);
        let psns = self.asking.range(of_context).map(|((.., psn), _)| Psn(*psn));
        let answered: Vec<Psn> = psns.filter(|psn| ack.has(*psn)).collect();
        let answers = self.answers.entry(receiver).or_default();
        for psn in answered {
            let Some(asking) = self.asking.remove(&(sender, ack.context, psn.0)) else { continue };
            let Some(repeated) = asking.repeated.filter(|_| ack.retx) else {
                answers.served += 1;
                continue;
            };
            let (waited, took) = (repeated.saturating_sub(asking.sent), time.saturating_sub(repeated));
            if ack.named == Some(psn) && took * SHARE < waited {
                answers.ignored += 1;
                answers.last = asking.number;
            }
        }
    }

    /// Returns an end that ignores `ar`, and the number of a packet that shows it.
    pub(super) fn end(&self) -> Option<(IpAddr, u64)> {
        let mut ends = self.answers.iter();
        let ignores = |answers: &Answers| answers.ignored >= ENOUGH.max(FEW * answers.served);
        let (end, answers) = ends.find(|(_, answers)| ignores(answers))?;
        Some((*end, answers.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_wire::pds::{Ack, PdsBuf, Request};
    use uet_wire::{Uet, UetBuf};

    const ENDS: (IpAddr, IpAddr) = (
        IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)),
        IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2)),
    );

    /// Follows packets with their times in milliseconds.
    #[derive(Default)]
    struct Watch(Ignored, u64);

    impl Watch {
        fn take(&mut self, ends: (IpAddr, IpAddr), pds: PdsBuf, at: u64) {
            let bytes = UetBuf::new(pds).to_bytes();
            let pds = Uet::parse_lax(&bytes).0.pds.unwrap();
            self.1 += 1;
            self.0.packet(ends, &pds, self.1, Duration::from_millis(at));
        }

        fn request(&mut self, psn: u32, retx: bool, at: u64) {
            let request = Request::rud().ar(true).retx(retx).clear_psn_offset(-1).psn(Psn(psn));
            let request = request.spdcid(PdcId(1)).dpdcid(PdcId(2)).done().unwrap();
            self.take(ENDS, request.into(), at);
        }

        fn ack(&mut self, psn: u32, retx: bool, at: u64) {
            let ack = Ack::build().retx(retx).cack_psn(Psn(psn)).spdcid(PdcId(2)).dpdcid(PdcId(1));
            self.take((ENDS.1, ENDS.0), ack.done().unwrap().into(), at);
        }

        /// Plays packets of which only the retransmission is answered, after this many milliseconds.
        fn ignores(&mut self, count: u32, after: u64) {
            for psn in 0..count {
                let at = u64::from(psn) * 100;
                self.request(psn, false, at);
                self.request(psn, true, at + 20);
                self.ack(psn, true, at + 20 + after);
            }
        }
    }

    #[test]
    fn many_packets_without_an_ack_before_their_retransmission_show_it() {
        for (count, after, found) in [(16, 4, Some((ENDS.1, 46))), (15, 4, None), (16, 6, None)] {
            let mut watch = Watch::default();
            watch.ignores(count, after);
            assert_eq!(watch.0.end(), found, "{count} after {after} ms");
        }
    }

    #[test]
    fn acks_in_time_or_late_refute_it() {
        for retransmits in [false, true] {
            let mut watch = Watch::default();
            for psn in 1000..1003 {
                watch.request(psn, false, 0);
                if retransmits {
                    watch.request(psn, true, 20);
                }
                watch.ack(psn, false, 30);
            }
            watch.ignores(23, 1);
            assert_eq!(watch.0.end(), None);
            watch.ignores(1, 1);
            assert!(watch.0.end().is_some());
        }
    }
}
