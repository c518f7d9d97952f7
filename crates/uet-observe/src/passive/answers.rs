//! Rules of an answer beside its question.

use super::judgments::{Judgments, Rules};
use crate::{Context, Direction, SentRequest, Stray};
use uet_wire::catalogue::*;
use uet_wire::pds::Ack;
use uet_wire::registry::{List, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Ses};

/// Judges ACKs with the identifiers of a context and PSNs that it never had.
pub(super) fn strays(judge: &mut Judgments, context: &Context, strays: &[Stray]) {
    let Some((start, opened)) = context.start else { return };
    for stray in strays {
        let culprit = context.addresses[stray.sender as usize];
        judge.hold(culprit, PDS_PSN_002, stray.number, Some(opened), false, || {
            let named = stray.ack_psn.map(|psn| format!(", and names PSN {psn}")).unwrap_or_default();
            format!(
                "acknowledges up to PSN {}{named}: nobody sent it, and the context starts at {start}",
                stray.cack_psn
            )
        });
    }
}

impl Rules<'_> {
    /// Rule of the PSN that an ACK names: it is not before the first one of the context.
    pub(super) fn names_a_psn(&mut self, flow: &Direction, ack: Ack) {
        let (Some((start, number)), Some(psn)) = (self.context.start, ack.ack_psn()) else { return };
        if flow.renumbered || psn == ack.cack_psn() {
            return;
        }
        if let Some(from_start) = self.context.distance_from_start(psn) {
            let index = flow.index(psn);
            let sent = flow.is_sent(index) || flow.is_forgotten(index);
            self.hold(PDS_SYN_008, Some(number), from_start >= 0 || sent, || {
                format!("names PSN {psn}, which nobody sent: the context starts at {start}")
            });
        }
    }

    /// Rules of a response beside the request that the ACK names.
    pub(super) fn answer(&mut self, sent: &SentRequest) {
        let with = Some(sent.number);
        match self.packet.uet.ses {
            Some(Ses::Response(response)) => self.response(response.copied(), sent),
            Some(Ses::ResponseData(header)) => {
                let Some(part) = sent.part else { return };
                self.returns_data(part.opcode, with);
                let id = header.read_request_message_id();
                self.hold(PDS_ACK_016, with, id == part.message_id, || {
                    format!("data of message {id}, and the request is of message {}", part.message_id)
                });
            }
            Some(Ses::ResponseDataSmall(_)) => {
                if let Some(opcode) = sent.opcode {
                    self.returns_data(opcode, with);
                }
            }
            _ => {}
        }
    }

    fn returns_data(&mut self, opcode: Opcode, with: Option<u64>) {
        const WITH_DATA: [Opcode; 3] =
            [Opcode::UET_READ, Opcode::UET_FETCHING_ATOMIC, Opcode::UET_TSEND_FETCH_ATOMIC];
        // A vendor's operation may return data.
        let silent = opcode <= Opcode::UET_MSG_ERROR && !WITH_DATA.contains(&opcode);
        self.hold(PDS_ACK_016, with, !silent, || format!("data in answer to {opcode}"));
    }

    /// Rules of a response without data. A default response names no message.
    fn response(&mut self, response: Response, sent: &SentRequest) {
        let (head, with) = (response.head(), Some(sent.number));
        let (kind, code) = (head.opcode(), head.return_code());
        if let Some(part) = sent.part.filter(|_| kind == ResponseOpcode::UET_RESPONSE) {
            let (id, job) = (response.message_id(), response.job_id());
            self.hold(SES_RESP_003, with, id == part.message_id, || {
                format!("response to message {id}, and the request is of message {}", part.message_id)
            });
            self.hold(SES_RESP_003, with, job == part.job_id, || {
                format!("response of job {job}, and the request is of job {}", part.job_id)
            });
        }
        let is_default = kind == ResponseOpcode::UET_DEFAULT_RESPONSE;
        if let Some(part) = sent.part.filter(|_| is_default || kind == ResponseOpcode::UET_RESPONSE) {
            let accepted = response.modified_length();
            self.hold(SES_RESP_004, with, accepted <= part.request_length, || {
                format!(
                    "modified_length {accepted} in the response to a message of {} bytes",
                    part.request_length
                )
            });
        }
        if let Some(id) = sent.data_of {
            let known = code == ReturnCode::UNDELIVERABLE && self.sent().reads.contains_key(&id);
            self.hold(SES_READ_005, with, !known, || {
                format!("answers {code} to data whose read_request_message_id names its own read {id}")
            });
        }
        let Some(part) = sent.part.filter(|_| !is_default) else { return };
        let opcode = part.opcode;
        let of_atomics = (ReturnCode::AMO_UNSUPPORTED_OP..=ReturnCode::AMO_FP_INEXACT).contains(&code);
        const ON_MEMORY: [Opcode; 4] =
            [Opcode::UET_WRITE, Opcode::UET_READ, Opcode::UET_ATOMIC, Opcode::UET_FETCHING_ATOMIC];
        let of_sends = code == ReturnCode::NO_MATCH || head.list() == List::UET_OVERFLOW;
        let fits = (!of_atomics || opcode.is_atomic() || opcode > Opcode::UET_MSG_ERROR)
            && (!of_sends || !ON_MEMORY.contains(&opcode));
        self.hold(PDS_ACK_016, with, fits, || format!("{} {code} in answer to {opcode}", head.list()));
        if code == ReturnCode::BAD_GENERATION {
            let current = response.ri_generation();
            self.hold(SES_GEN_002, with, current != part.ri_generation, || {
                format!("refuses generation {current}, and names it as the current one")
            });
        }
    }
}
