//! Rules of RUDI requests and responses, which have no context.

use super::judgments::Judgments;
use super::suspicion::Suspicion;
use crate::{Observed, RudiFacts, RudiQuestion};
use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::catalogue::*;
use uet_wire::pds::Pds;
use uet_wire::registry::{Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::Ses;

/// Pairs of addresses that are remembered; all are forgotten when there are more.
const KEPT: usize = 1 << 16;

/// Strange requests and strange responses, by the addresses of requester and responder.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<(IpAddr, IpAddr), [Suspicion; 2]>);

impl Doubts {
    pub(super) fn judge(&mut self, judge: &mut Judgments, packet: &Observed<'_>, facts: RudiFacts) {
        let Some(Pds::Rudi(header)) = packet.uet.pds else { return };
        if self.0.len() > KEPT {
            self.0.clear();
        }
        let (id, number, src, dst) = (header.pkt_id(), packet.number, packet.src, packet.dst);
        match facts {
            RudiFacts::Request { digest, earlier } => {
                let [reused, _] = self.0.entry((src, dst)).or_default();
                let before = earlier.and_then(|(before, _)| before);
                let other = before.zip(digest).is_some_and(|(before, now)| before != now);
                let often = reused.add(other, 3);
                let with = earlier.map(|(_, number)| number);
                judge.hold(src, PDS_RUDI_001, number, with, !often, || {
                    format!("pkt_id {id:#x} names another request that is not answered")
                });
            }
            RudiFacts::Response { known: Some(known), question, answers, awaited } => {
                if let (Some(question), Some(with)) = (question, answers) {
                    response(judge, packet, question, with);
                }
                let [_, unasked] = self.0.entry((dst, src)).or_default();
                // The capture may lack the request. But a wrong pkt_id leaves a request without a response, which is
                // then sent again.
                let often = unasked.add(!known && awaited, 3);
                judge.hold(src, PDS_RUDI_002, number, None, !often, || {
                    format!("no request has pkt_id {id:#x}")
                });
            }
            RudiFacts::Response { known: None, .. } => {}
        }
    }
}

/// Judges a response beside the request with its `pkt_id`.
fn response(judge: &mut Judgments, packet: &Observed<'_>, asked: RudiQuestion, with: u64) {
    let RudiQuestion { opcode, message_id, job_id, bytes } = asked;
    let mut hold = |requirement, holds, message: String| {
        judge.hold(packet.src, requirement, packet.number, Some(with), holds, || message);
    };
    let data = |length: u16| format!("{length} bytes of data in answer to {opcode} of {bytes}");
    match packet.uet.ses {
        Some(Ses::Response(answer)) => {
            let (head, id, job) = (answer.head(), answer.message_id(), answer.job_id());
            let code = head.return_code();
            if head.opcode() == ResponseOpcode::UET_RESPONSE {
                let same = message_id.is_none_or(|asked| asked == id) && job == job_id;
                let message = format!("response to message {id} of job {job}, and the request is another");
                hold(SES_RESP_003, same, message);
            }
            let lacks = opcode == Opcode::UET_READ && bytes > 0 && code == ReturnCode::OK;
            hold(SES_READ_008, !lacks, format!("no data in answer to a read of {bytes} bytes"));
        }
        Some(Ses::ResponseData(answer)) => {
            let id = answer.read_request_message_id();
            let length = answer.payload_length();
            hold(SES_READ_008, u32::from(length) <= bytes || opcode > Opcode::UET_MSG_ERROR, data(length));
            let same = message_id.is_none_or(|asked| asked == id);
            hold(SES_READ_005, same, format!("data of message {id}, and the request is another"));
        }
        Some(Ses::ResponseDataSmall(answer)) => {
            let length = answer.payload_length();
            hold(SES_READ_008, u32::from(length) <= bytes || opcode > Opcode::UET_MSG_ERROR, data(length));
        }
        _ => {}
    }
}
