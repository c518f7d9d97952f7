//! Plays a conversation: a right peer with a network that loses, copies, delays, marks and trims.

mod settle;
mod setup;
mod take;

use super::coverage::{Coverage, Event};
use super::serve::{Posted, Served};
use super::shadow::Shadow;
use super::source::{Own, Sending};
use super::step::{ClosePlan, RegionPlan, Sequence, Step, bits};
use crate::{Outcome, Region, RxPacket, Stop, Test, Wire};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::{AddPeer, ClosePdc, Completion, Hex64, Mode, Operated, PostReceive, RequestClose};
use uet_wire::Psn;
use uet_wire::catalogue::Requirement;
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
            Step::CloseByDevice(plan) => self.close_by_device(*plan, false),
            Step::RequestClose(plan) => self.close_by_device(*plan, true),
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

    /// Has the device close its contexts to a peer, or ask the peer to close those that the peer opened.
    fn close_by_device(&mut self, plan: ClosePlan, asks: bool) -> Outcome {
        let (claim, event) =
            if asks { ("request_close", Event::RequestClose) } else { ("close", Event::CloseByDevice) };
        if !self.t.claims(claim) {
            return Ok(());
        }
        self.coverage.operation(event);
        let (peer, class) = (self.peer(plan.peer, plan.job)?, 0);
        let mode = if plan.rod { Mode::Rod } else { Mode::Rud };
        let done = match asks {
            true => self.t.call(RequestClose { peer, mode, class }),
            false => self.t.call(ClosePdc { peer, mode, class }),
        };
        // No open context, nothing to close.
        match done {
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

    /// Records a failure, which ends the conversation.
    pub(super) fn broken(&mut self, requirement: &Requirement, expected: &str, seen: String) -> Outcome {
        self.t.holds(requirement, expected, false, seen);
        Err(Stop::Failed)
    }

    /// The distance of a PSN from the first one of a context.
    pub(super) fn distance(psn: Psn, start: Psn) -> Option<u32> {
        let distance = psn.0.wrapping_sub(start.0);
        (distance < 1 << 24).then_some(distance)
    }
}
