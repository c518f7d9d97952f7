//! Plays a conversation: a right peer with a network that loses, copies, delays, marks and trims.

use super::coverage::{Coverage, Event, State};
use super::serve::{Posted, Served};
use super::shadow::Shadow;
use super::source::{Own, Sending};
use super::step::{RegionPlan, Sequence, Step, bits};
use crate::receives::tagged_room;
use crate::{Outcome, Region, RxPacket, Stop, Test, Wire};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::{
    AddPeer, ClosePdc, Completion, Configure, Fill, Hex64, Mode, Operated, Permission, PostReceive,
    RequestClose, Reset, SetIndices,
};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::Pds;
use uet_wire::registry::NackCode;

/// The job with this number.
pub(super) fn job(number: u8) -> u32 {
    101 + u32::from(number)
}

/// The initiator of the suite's messages of this job.
pub(super) fn initiator(number: u8) -> u32 {
    0x2000 + (u32::from(number) << 8)
}

/// The process of the device that owns regions and receives.
pub(super) const PROCESS: u16 = 2;

/// The index of sends, and that of the first region.
pub(super) const SENDS: u16 = 10;
pub(super) const REGIONS: u16 = 20;

/// Indices that the process owns besides.
pub(super) const OWNED: core::ops::Range<u16> = 0x2f8..0x300;

/// Something to do at a time.
#[derive(Debug)]
pub(super) enum Due {
    /// The network delivers a packet to the device.
    Deliver(Wire),
    /// The network delivers a packet of the device.
    Take(RxPacket),
    /// The timer of a context of the suite.
    Own(usize),
    /// The suite tells CLEAR_PSN on a context of its own.
    Clear(usize),
    /// The timer of a context of the device.
    Served(usize),
    /// The suite acknowledges this PSN of a context of the device.
    Answer(usize, u32),
    /// The timer of a message without a context.
    Lone(usize),
    /// The suite wants a send of the device that it has put off.
    Want(usize),
}

/// A region and what it must hold.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) plan: RegionPlan,
    pub(super) region: Region,
    pub(super) shadow: Shadow,
}

/// A receive of the device.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) operation: Operated,
    pub(super) region: u64,
    pub(super) length: usize,
    pub(super) job: u8,
    pub(super) tag: Option<u8>,
    pub(super) ignore: u8,
    pub(super) initiator: Option<u8>,
    pub(super) ended: Option<Completion>,
}

/// A conversation under way.
pub(super) struct Player<'p, 'a> {
    pub(super) t: &'p mut Test<'a>,
    pub(super) sequence: &'p Sequence,
    pub(super) regions: Vec<Held>,
    pub(super) own: Vec<Own>,
    pub(super) messages: Vec<Sending>,
    pub(super) served: Vec<Served>,
    pub(super) posts: Vec<Posted>,
    pub(super) receives: Vec<Receiving>,
    pub(super) peers: BTreeMap<(u8, u8), u64>,
    due: BTreeMap<(Duration, u64), Due>,
    dues: u64,
    /// PDCIDs of strangers and of contexts that are over: what comes for them is ignored.
    pub(super) strangers: BTreeSet<u16>,
    /// Completions, by operation.
    pub(super) told: BTreeMap<u64, (Completion, usize)>,
    pub(super) coverage: &'p mut Coverage,
    /// Set at the end of the conversation: the network no longer disturbs.
    pub(super) settling: bool,
    pub(super) next_id: u32,
    /// Tokens of the next deferrable send, if it is a second attempt.
    pub(super) second: Option<(u32, u32)>,
    /// Contexts that the suite has ended: peer, mode, and until when a post may still use one.
    pub(super) aborts: Vec<(u8, bool, Duration)>,
    /// Answers that must come: to whom, for which PSN, and the code if it has to be a NACK.
    pub(super) wanted_answers: Vec<(core::net::IpAddr, u32, Option<NackCode>)>,
    /// Probes that must be answered: the context and its life, and `pds.probe_opaque`.
    pub(super) wanted_probes: Vec<(usize, u32, u16)>,
    /// Packets that opened contexts of the suite, and when these were closed.
    pub(super) openings: Vec<(usize, Wire, Duration)>,
    /// How long the network delays a late packet.
    pub(super) gap: Duration,
    /// Bytes that the protection of a secure domain adds to each packet.
    pub(super) sealing: usize,
}

impl<'p, 'a> Player<'p, 'a> {
    /// Plays the whole conversation.
    pub(super) fn play(t: &'p mut Test<'a>, sequence: &'p Sequence, coverage: &'p mut Coverage) -> Outcome {
        let gap = t.grace() / 8;
        // The player knows which packets it has lost.
        t.auto_ack_control = false;
        let mut player = Player {
            t,
            sequence,
            regions: Vec::new(),
            own: Vec::new(),
            messages: Vec::new(),
            served: Vec::new(),
            posts: Vec::new(),
            receives: Vec::new(),
            peers: BTreeMap::new(),
            due: BTreeMap::new(),
            dues: 0,
            strangers: BTreeSet::new(),
            told: BTreeMap::new(),
            coverage,
            settling: false,
            next_id: 1,
            second: None,
            aborts: Vec::new(),
            wanted_answers: Vec::new(),
            wanted_probes: Vec::new(),
            openings: Vec::new(),
            gap,
            sealing: 0,
        };
        player.set_up()?;
        for step in &sequence.steps {
            player.step(step)?;
            let until = player.t.now() + player.gap / 4;
            player.pump(until)?;
        }
        player.settle()?;
        player.judge()
    }

    fn set_up(&mut self) -> Outcome {
        let sequence = self.sequence;
        // A packet of a conversation that failed may have arrived after the first reset.
        self.t.call(Reset {})?;
        if !sequence.parameters.is_empty() {
            let parameters = sequence.parameters.clone();
            let taken = self.t.call(Configure { parameters: parameters.clone() })?.taken;
            self.t.was_set(parameters.into_iter().filter(|(name, _)| taken.contains(name)));
        }
        if let Some(domain) = sequence.secured {
            self.secure(domain)?;
        }
        self.gap = self.t.grace() / 8;
        for (number, plan) in sequence.regions.iter().enumerate() {
            let safe = if plan.safe { 1 << 63 } else { 0 };
            let mut permissions = Vec::new();
            permissions.extend((!plan.no_read).then_some(Permission::Read));
            permissions.extend((!plan.no_write).then_some(Permission::Write));
            permissions.extend((!plan.no_atomic).then_some(Permission::Atomic));
            let fill = Fill::Seed(1000 + number as u32);
            // Atomics need plain numbers: the second half is zeros.
            let mut bytes = fill.bytes(plan.length as usize);
            bytes.get_mut(plan.length as usize / 2..).unwrap_or_default().fill(0);
            let wanted = Region {
                number: 0,
                job: job(plan.job),
                process: PROCESS,
                index: REGIONS + number as u16,
                generation: 0,
                key: safe | (0xacc_0000 + number as u64),
                message_id: 1,
                length: plan.length.into(),
            };
            let fill = Fill::Hex(uet_control::Hex(bytes.clone()));
            let (number, key) = self.t.expose(wanted.exposure(&permissions, Some(fill)), false)?;
            let region = Region { number, key, ..wanted };
            self.regions.push(Held { plan: *plan, region, shadow: Shadow::new(bytes) });
        }
        if self.t.claims("receive") {
            for number in 0..super::step::JOBS {
                // The index has to be there. No send is for this receive.
                let receive = tagged_room(8, 0x5ca1_ab1e_0000_0000);
                self.t.call(PostReceive { job: Some(job(number)), ..receive })?;
            }
        }
        if self.t.claims("indices") {
            for number in 0..super::step::JOBS {
                let indices = SetIndices {
                    job: Some(job(number)),
                    process: PROCESS,
                    index: OWNED.start,
                    count: OWNED.len() as u16,
                    generation: None,
                    disabled: None,
                    ordered: None,
                };
                // Without them, their neighbors belong to nobody either.
                if let Err(Stop::Gone(why)) = self.t.call(indices) {
                    return Err(Stop::Gone(why));
                }
            }
        }
        for plan in &sequence.contexts {
            let own = self.new_own(*plan)?;
            self.own.push(own);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Message(message) => self.send_message(message),
            Step::Post(posting) => self.post(posting),
            Step::Receive { job: number, length, tag, ignore, initiator } => {
                self.coverage.operation(Event::Receive);
                let received = self.t.call(PostReceive {
                    length: (*length).into(),
                    job: Some(job(*number)),
                    process: PROCESS,
                    index: SENDS,
                    tag: tag.map(|tag| Hex64(bits(tag))),
                    ignore: Hex64((*ignore).into()),
                    initiator: initiator.map(|it| self::initiator(*number) + u32::from(it)),
                })?;
                self.receives.push(Receiving {
                    operation: Operated { operation: received.operation },
                    region: received.region,
                    length: *length as usize,
                    job: *number,
                    tag: *tag,
                    ignore: *ignore,
                    initiator: *initiator,
                    ended: None,
                });
                Ok(())
            }
            Step::Control { context, kind, back, fate } => self.control(*context, *kind, *back, *fate),
            Step::Ask { target, kind } => self.ask(*target, *kind),
            Step::Repeat { context, back, retx } => self.repeat(*context, *back, *retx),
            Step::Close { context, same } => self.close(*context, *same),
            Step::CloseByDevice { peer, job, rod } => self.close_by_device(*peer, *job, *rod),
            Step::RequestClose { peer, job, rod } => self.request_close(*peer, *job, *rod),
            Step::Abort { target, code } => self.abort(*target, *code),
            Step::Stranger { context, kind } => self.strange(*context, *kind),
            Step::Hostile { context, packet, edits } => self.hostile(*context, *packet, edits),
            Step::Rekey { change } => self.rekey(*change),
            Step::Pause { us } => {
                let scale = self.t.rto().as_secs_f64() / 100e-6;
                let span = Duration::from_micros((*us).into()).mul_f64(scale.clamp(0.1, 200.0));
                let until = self.t.now() + span;
                self.pump(until)
            }
            Step::Changed { .. } | Step::Recorded { .. } => {
                Err(Stop::Skipped("`uet fuzz` plays conversations with changed and recorded packets".into()))
            }
        }
    }

    /// The number of a peer in the control channel.
    pub(super) fn peer(&mut self, address: u8, number: u8) -> Result<u64, Stop> {
        if let Some(peer) = self.peers.get(&(address, number)) {
            return Ok(*peer);
        }
        let address_of = self.t.address(self.place(address))?;
        let peer = AddPeer {
            address: address_of,
            port: None,
            job: job(number),
            process: 1,
            initiator: 0x1000 + u32::from(address),
        };
        let peer = self.t.call(peer)?.peer;
        self.peers.insert((address, number), peer);
        Ok(peer)
    }

    /// The suite may have fewer addresses than the conversation has peers.
    pub(super) fn place(&self, peer: u8) -> usize {
        usize::from(peer) % self.t.addresses().max(1)
    }

    pub(super) fn close_by_device(&mut self, peer: u8, number: u8, rod: bool) -> Outcome {
        if !self.t.claims("close") {
            return Ok(());
        }
        self.coverage.operation(Event::CloseByDevice);
        let peer = self.peer(peer, number)?;
        let mode = if rod { Mode::Rod } else { Mode::Rud };
        // No open context, nothing to close.
        match self.t.call(ClosePdc { peer, mode, class: 0 }) {
            Err(Stop::Gone(why)) => Err(Stop::Gone(why)),
            _ => Ok(()),
        }
    }

    fn request_close(&mut self, peer: u8, number: u8, rod: bool) -> Outcome {
        if !self.t.claims("request_close") {
            return Ok(());
        }
        self.coverage.operation(Event::RequestClose);
        let peer = self.peer(peer, number)?;
        let mode = if rod { Mode::Rod } else { Mode::Rud };
        // No open context, nothing to ask for.
        match self.t.call(RequestClose { peer, mode, class: 0 }) {
            Err(Stop::Gone(why)) => Err(Stop::Gone(why)),
            _ => Ok(()),
        }
    }

    /// Does something later.
    pub(super) fn later(&mut self, at: Duration, what: Due) {
        self.dues += 1;
        self.due.insert((at, self.dues), what);
    }

    /// Lets the conversation go on until then.
    pub(super) fn pump(&mut self, until: Duration) -> Outcome {
        loop {
            let now = self.t.now();
            while let Some(entry) = self.due.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                let what = entry.remove();
                self.fire(what)?;
            }
            self.heed()?;
            let next = self.due.first_key_value().map_or(until, |((at, _), _)| (*at).min(until));
            match self.t.wait(next.saturating_sub(now), |_| Some(()))? {
                Some((seen, ())) => self.take(&seen, true)?,
                None if next >= until => return Ok(()),
                None => {}
            }
        }
    }

    fn fire(&mut self, what: Due) -> Outcome {
        match what {
            Due::Deliver(wire) => self.t.send_wire(&wire),
            Due::Take(seen) => self.take(&seen, false),
            Due::Own(own) => self.own_timer(own),
            Due::Clear(own) => self.tell_clear(own),
            Due::Served(served) => self.served_timer(served),
            Due::Answer(served, n) => self.answer(served, n, false),
            Due::Lone(message) => self.lone_timer(message),
            Due::Want(post) => self.want(post),
        }
    }

    /// Judges the facts that the observers have found since the last call, and takes completions in.
    fn heed(&mut self) -> Outcome {
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

    /// Records a failure, which ends the conversation.
    pub(super) fn broken(&mut self, requirement: &Requirement, expected: &str, seen: String) -> Outcome {
        self.t.holds(requirement, expected, false, seen);
        Err(Stop::Failed)
    }

    /// Takes a packet of the device in.
    fn take(&mut self, seen: &RxPacket, first: bool) -> Outcome {
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

    /// The distance of a PSN from the first one of a context.
    pub(super) fn distance(psn: Psn, start: Psn) -> Option<u32> {
        let distance = psn.0.wrapping_sub(start.0);
        (distance < 1 << 24).then_some(distance)
    }

    /// How often contexts of the suite have opened again.
    fn lives(&self) -> u32 {
        self.own.iter().map(|own| own.life).sum()
    }

    /// Lets everything end: what is under way, then the contexts.
    fn settle(&mut self) -> Outcome {
        self.settling = true;
        let rto = self.t.rto();
        let patience = self.t.until_given_up() * 2;
        let (mut end, mut lives) = (self.t.now() + patience, self.lives());
        while !self.is_quiet() && self.t.now() < end {
            let until = self.t.now() + rto;
            self.pump(until)?;
            // Messages that waited for a close start on another context.
            if self.lives() > lives {
                (end, lives) = (self.t.now() + patience, self.lives());
            }
        }
        self.unfinished()?;
        if (0..self.messages.len()).any(|message| self.is_accepted(message) && !self.has_receive(message)) {
            // The device may still read the rest of a rendezvous send, once it has credit for that.
            let until = self.t.now() + patience;
            self.pump(until)?;
        }
        // Packets that the network still delays, and those that nobody waits for.
        while self.due.values().any(|due| matches!(due, Due::Deliver(_) | Due::Take(_))) {
            let until = self.t.now() + rto;
            self.pump(until)?;
        }
        let until = self.t.now() + rto;
        self.pump(until)?;
        if let Some((to, psn, code)) = self.wanted_answers.first().copied() {
            let (requirement, expected) = match code {
                None => (PDS_ASK_003, "an answer to ACK_REQUEST".to_owned()),
                Some(NackCode::INV_DPDCID) => (PDS_OPEN_002, "NACK INV_DPDCID".to_owned()),
                Some(NackCode::PDC_MODE_MISMATCH) => (PDS_OPEN_008, "NACK PDC_MODE_MISMATCH".to_owned()),
                Some(NackCode::PSN_OOR_WINDOW) => (PDS_OPEN_006, "NACK PSN_OOR_WINDOW".to_owned()),
                Some(NackCode::ROD_OOO) => (PDS_ROD_002, "NACK ROD_OOO, once per gap".to_owned()),
                Some(code @ (NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP)) => {
                    (PDS_TRIM_001, format!("NACK {code}"))
                }
                Some(code) => (PDS_OPEN_003, format!("NACK {code}")),
            };
            return self.broken(requirement, &expected, format!("none to {to} for PSN {psn}"));
        }
        let open = |(context, life, _): &&(usize, u32, u16)| {
            self.own[*context].life == *life && self.own[*context].state == State::Open
        };
        if let Some((_, _, opaque)) = self.wanted_probes.iter().find(open).copied() {
            let told = format!("none with probe_opaque {opaque:#06x}");
            return self.broken(PDS_PRB_001, "an answer to PROBE", told);
        }
        if self.clear_rest()? {
            let until = self.t.now() + rto;
            self.pump(until)?;
            self.judge_cleared()?;
        }
        if self.unclear().is_some() {
            let until = self.t.now() + self.t.soon();
            self.pump(until)?;
        }
        self.judge_clears()?;
        let end = self.t.now() + patience;
        let mut served = 0;
        while !self.all_closed() && self.t.now() < end {
            // A send that the device asks for again opens contexts again.
            for context in 0..self.own.len() {
                self.close(context, false)?;
            }
            let open = self.served.iter().skip(served).filter(|it| it.state == State::Open);
            let open: BTreeSet<(u8, u8, bool)> = open.map(|it| (it.peer, it.job, it.pdc.rod)).collect();
            served = self.served.len();
            for (address, number, rod) in open {
                self.close_by_device(address, number, rod)?;
            }
            let until = self.t.now() + rto;
            self.pump(until)?;
        }
        Ok(())
    }
}
