//! Takes in what the device sends and tells, and what the observers find.

use super::Player;
use crate::random::coverage::Event;
use crate::{Outcome, RxPacket};
use uet_control::Completion;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::Pds;

impl Player<'_, '_> {
    /// Judges the facts that the observers have found since the last call, and takes completions in.
    pub(super) fn heed(&mut self) -> Outcome {
        if let Some(finding) = self.t.watch().take_finding() {
            let own = self.t.facts().local.contains(&finding.culprit);
            if !own {
                return self.broken(finding.requirement, finding.requirement.sentence, finding.message);
            }
        }
        for completion in self.t.events() {
            self.completed(completion)?;
        }
        Ok(())
    }

    fn completed(&mut self, completion: Completion) -> Outcome {
        let number = completion.operation;
        let times = self.told.get(&number).map_or(0, |(_, times)| *times) + 1;
        if times > 1 {
            return self.broken(SES_DONE_001, "one completion of an operation", format!("{times}"));
        }
        self.told.insert(number, (completion.clone(), times));
        self.coverage.operation(Event::Completion);
        self.completed_early(&completion)
    }

    /// Takes a packet of the device in.
    pub(super) fn take(&mut self, seen: &RxPacket, first: bool) -> Outcome {
        if first {
            self.well_formed(seen)?;
        }
        self.heed_answer(seen);
        let uet = seen.uet();
        match uet.pds {
            Some(Pds::Control(control)) => self.take_control(seen, &control.copied()),
            Some(Pds::Rudi(rudi)) => self.take_rudi(seen, &rudi.copied(), first),
            Some(pds) => match (pds.request(), pds.ack(), pds.nack()) {
                (Some(request), _, _) => self.take_request(seen, request, first),
                (_, Some(ack), _) => self.take_ack(seen, ack, first),
                (_, _, Some(nack)) => self.take_nack(seen, nack),
                _ => self.take_datagram(seen),
            },
            None => Ok(()),
        }
    }

    /// Strikes out an answer that has to come.
    fn heed_answer(&mut self, seen: &RxPacket) {
        let (ack, nack) = (seen.ack(), seen.nack());
        let named = ack.and_then(|ack| ack.ack_psn()).or_else(|| nack.and_then(|nack| nack.nack_psn()));
        let code = nack.map(|nack| nack.nack_code());
        self.wanted_answers.retain(|(to, psn, wanted)| {
            *to != seen.wire.dst || named != Some(Psn(*psn)) || wanted.is_some() && *wanted != code
        });
    }

    fn well_formed(&mut self, seen: &RxPacket) -> Outcome {
        if let Some(finding) = seen.wire.around.first() {
            return self.broken(finding.requirement, finding.requirement.sentence, finding.to_string());
        }
        let (uet, cut) = uet_wire::Uet::parse_lax(&seen.wire.bytes);
        if let Some(cut) = cut {
            return self.broken(ROB_LIFE_001, "a packet that can be read", cut.to_string());
        }
        let spec = self.t.spec();
        let finding = uet.validate(spec).into_iter().find(|it| it.requirement.level == Level::Must);
        match finding {
            Some(it) => self.broken(it.requirement, it.requirement.sentence, it.to_string()),
            None => Ok(()),
        }
    }
}
