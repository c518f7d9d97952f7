//! Read data of the device, on the return direction of the contexts of the suite.

use crate::random::coverage::Event;
use crate::random::play::Player;
use crate::random::source::What;
use crate::random::step::Fate;
use crate::{AckBuilder, Outcome, RxPacket};
use uet_wire::catalogue::*;
use uet_wire::pds::Request;
use uet_wire::registry::ReturnCode;
use uet_wire::ses::Ses;

impl Player<'_, '_> {
    /// Takes read data on the return direction of a context of the suite in.
    pub(super) fn returned_data(
        &mut self,
        own: usize,
        seen: &RxPacket,
        request: Request,
        first: bool,
    ) -> Outcome {
        let Some(n) = Self::distance(request.psn(), self.own[own].pdc.start) else {
            let told = format!("PSN {} on a context from {}", request.psn(), self.own[own].pdc.start);
            return self.broken(PDS_SYN_008, "a return direction from Start_PSN on", told);
        };
        let state = self.own[own].state;
        self.coverage.seen(state, Event::Data);
        let (message, offset, total, code) = match seen.uet().ses {
            Some(Ses::ResponseData(data)) => {
                let id = data.read_request_message_id();
                let found = self.messages.iter().rposition(|it| it.id == id && it.plan.context == own);
                (
                    found,
                    data.message_offset() as usize,
                    Some(data.modified_length()),
                    data.head().return_code(),
                )
            }
            Some(Ses::ResponseDataSmall(data)) => {
                let n = Self::distance(data.original_request_psn(), self.own[own].pdc.start);
                let found = match n.and_then(|n| self.what(own, n)) {
                    Some(What::Part(message, _)) => Some(message),
                    _ => None,
                };
                (found, 0, None, data.head().return_code())
            }
            _ => return Ok(()),
        };
        let fate = match message.filter(|_| first && !self.settling) {
            Some(message) => self.messages[message].answer_fate(),
            None => Fate::Arrives,
        };
        if fate == Fate::Lost {
            return Ok(());
        }
        let new = self.own[own].incoming.note(n, seen.wire.bytes.len() + self.sealing);
        let below = self.own[own].incoming.below;
        if fate == Fate::Late {
            self.own[own].incoming.doubt(n);
        } else {
            self.own[own].incoming.confirm(n);
            let (mut pdc, bytes) = (self.own[own].pdc.clone(), self.own[own].incoming.bytes);
            // The ACK that names the device's side may have been lost.
            pdc.remote.get_or_insert(request.spdcid());
            let ack = pdc.ack(pdc.psn(n)).cack(pdc.start - 1 + below);
            let ack = AckBuilder {
                retx: request.retx(),
                marked: seen.wire.marked,
                nscc: self.states().then(|| (self.counted(bytes), 0)),
                ..ack
            };
            self.t.send(&pdc, &ack.build()?)?;
        }
        if new {
            let Some(message) = message else {
                let told = seen.uet().to_string();
                return self.broken(SES_READ_005, "data of a read", told);
            };
            if code == ReturnCode::OK || code == ReturnCode::NULL {
                let length = self.messages[message].plan.length;
                if let Some(total) = total.filter(|total| *total != length) {
                    let told = format!("{total} of {length}");
                    return self.broken(SES_READ_007, "modified_length of the whole read", told);
                }
                self.data_in(message, offset, seen.payload())?;
            }
        }
        self.close_if_quiet(own)
    }
}
