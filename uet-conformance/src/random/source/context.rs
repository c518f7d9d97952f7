//! The life of a context that the suite opens: its packets, its window and its close.

use super::*;
use crate::random::coverage::Event;
use crate::random::play::Player;
use crate::random::step::Fate;
use crate::{Outcome, RxPacket, Stop};

impl Player<'_, '_> {
    /// Returns a context as a conversation plans it.
    pub(in crate::random) fn new_own(&mut self, plan: ContextPlan) -> Result<Own, Stop> {
        let place = self.place(plan.peer);
        let pdc = self.t.initiate_from(place)?;
        let window = self.t.default_range();
        let pdc = Pdc { local: PdcId(plan.pdcid.max(1)), start: Psn(plan.start), rod: plan.rod, ..pdc };
        Ok(Own {
            plan,
            pdc,
            state: State::New,
            life: 0,
            next: 0,
            sent: BTreeMap::new(),
            queue: VecDeque::new(),
            covered: 0,
            named: BTreeSet::new(),
            cleared: 0,
            told: 0,
            window,
            incoming: Incoming::default(),
            timer: false,
            wants_close: false,
            same: false,
            starved: 0,
            ordered: Ordered::default(),
            opening: None,
            renumbered: false,
        })
    }

    /// Queues the packets of a message.
    pub(in crate::random) fn queue(&mut self, context: usize, message: usize, parts: usize) -> Outcome {
        if matches!(self.own[context].state, State::Closed | State::Dead) {
            self.reopen(context)?;
        }
        let own = &mut self.own[context];
        own.queue.extend((0..parts).map(|part| (message, part)));
        self.flush(context)
    }

    pub(super) fn reopen(&mut self, context: usize) -> Outcome {
        let (plan, life, same) = {
            let own = &self.own[context];
            (own.plan, own.life + 1, own.same && own.state == State::Closed)
        };
        self.strangers.insert(self.own[context].pdc.local.0);
        let mut fresh = self.new_own(plan)?;
        let old = &self.own[context];
        fresh.life = life;
        let next = (old.pdc.local.0 ^ 0x2000).wrapping_add(0x80).max(1);
        let free = |id: &u16| !self.served.iter().any(|it| it.pdc.local.0 == *id);
        let other = (next..=u16::MAX).find(free).unwrap_or(next);
        fresh.pdc.local = if same { old.pdc.local } else { PdcId(other) };
        // Far from all that the context before has used.
        fresh.pdc.start = old.pdc.start + 0x0200_0000;
        self.own[context] = fresh;
        Ok(())
    }

    /// Renumbers a context as a NACK demands it.
    pub(super) fn renumber(&mut self, context: usize, start: Psn) -> Outcome {
        let due = self.t.now() + self.own_timeout(0);
        let own = &mut self.own[context];
        // The device refuses each packet that is under way with the same number.
        if own.state != State::Opening || own.pdc.remote.is_some() || own.pdc.start == start {
            return Ok(());
        }
        (own.pdc.start, own.renumbered, own.ordered) = (start, true, Ordered::default());
        for packet in own.sent.values_mut() {
            (packet.tries, packet.due, packet.with) = (0, due, [0; 4]);
        }
        let waiting: Vec<u32> = own.sent.keys().copied().collect();
        for n in waiting {
            self.transmit(context, n, Fate::Arrives, false)?;
        }
        self.arm(context)
    }

    /// Sends what the window permits.
    pub(super) fn flush(&mut self, context: usize) -> Outcome {
        while let Some((message, part)) = self.own[context].queue.front().copied() {
            let own = &mut self.own[context];
            if own.next >= own.covered.saturating_add(own.window) || own.wants_close && part == 0 {
                break;
            }
            own.queue.pop_front();
            let fate = self.messages[message].fate(part);
            self.messages[message].placed(
                part,
                own_key(context, self.own[context].life),
                self.own[context].next,
            );
            self.send_new(context, What::Part(message, part), fate)?;
        }
        self.close_if_quiet(context)
    }

    /// Sends a packet with the next PSN.
    pub(in crate::random) fn send_new(&mut self, context: usize, what: What, fate: Fate) -> Outcome {
        let quiet = match what {
            What::Part(message, part) => {
                let sending = &self.messages[message];
                let last = part + 1 == sending.parts.len();
                sending.plan.quiet && !(last && sending.plan.seed % 2 == 1)
            }
            What::Control(_) => false,
        };
        // An ACK that nobody has asked for may take its time.
        let patience = if quiet && self.t.facts().virtual_time {
            self.t.soon() * 2 + Duration::from_nanos(self.t.parameter("ack_delay")) * 2
        } else {
            Duration::ZERO
        };
        let due = self.t.now() + self.own_timeout(0) + patience;
        let own = &mut self.own[context];
        let n = own.next;
        own.next += 1;
        if own.state == State::New {
            own.state = State::Opening;
        }
        let state = own.state;
        own.sent.insert(
            n,
            OwnPacket {
                what,
                tries: 0,
                done: false,
                arrived: false,
                asked: false,
                size: 0,
                undisturbed: None,
                due,
                with: [0; 4],
                entropies: BTreeSet::new(),
            },
        );
        let event = match what {
            What::Part(message, _) => Event::message(self.messages[message].plan.kind),
            What::Control(kind) => Event::control(kind),
        };
        self.coverage.seen(state, event);
        self.transmit(context, n, fate, false)?;
        self.arm(context)
    }

    pub(in crate::random) fn close(&mut self, context: usize, same: bool) -> Outcome {
        let Some(own) = self.own.get_mut(context) else { return Ok(()) };
        if matches!(own.state, State::New | State::Closed | State::Dead | State::Closing) {
            return Ok(());
        }
        (own.wants_close, own.same) = (true, same);
        self.close_if_quiet(context)
    }

    /// Closes a context once nothing is under way on it.
    pub(in crate::random) fn close_if_quiet(&mut self, context: usize) -> Outcome {
        let own = &self.own[context];
        let waits = own.queue.front().is_some_and(|(_, part)| *part > 0);
        let idle = own.sent.values().all(|packet| packet.done) && !waits && !own.incoming.is_in_doubt();
        let life = own_key(context, own.life);
        let reads = self.messages.iter().any(|message| message.is_on(life) && !message.over);
        if !own.wants_close || !idle || reads || own.state != State::Open {
            return Ok(());
        }
        self.own[context].state = State::Closing;
        self.send_new(context, What::Control(CtlType::CLOSE_COMMAND), Fate::Arrives)
    }

    /// Finds the context of the suite that a packet of the device is for.
    pub(in crate::random) fn own_of(&self, seen: &RxPacket, dpdcid: PdcId) -> Option<usize> {
        self.own.iter().position(|own| {
            own.pdc.local == dpdcid && own.pdc.from == seen.wire.dst && own.state != State::New
        })
    }

    pub(in crate::random) fn what(&self, context: usize, n: u32) -> Option<What> {
        self.own[context].sent.get(&n).map(|packet| packet.what)
    }

    /// Ends a context that the device has ended with good reason.
    pub(super) fn give_up(&mut self, context: usize) {
        let own = &mut self.own[context];
        own.state = State::Dead;
        own.queue.clear();
        own.sent.values_mut().for_each(|packet| packet.done = true);
        let life = own_key(context, own.life);
        self.lose_messages(context, life);
    }

    /// Takes a control packet for a context of the suite in.
    pub(in crate::random) fn own_control(&mut self, context: usize, kind: CtlType) -> Outcome {
        let state = self.own[context].state;
        self.coverage.seen(state, Event::control(kind));
        match kind {
            CtlType::CLOSE_REQUEST => {
                self.own[context].wants_close = true;
                self.close_if_quiet(context)
            }
            CtlType::CLEAR_REQUEST => {
                let own = &self.own[context];
                let (pdc, clear) = (own.pdc.clone(), own.clear());
                self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
            }
            _ => Ok(()),
        }
    }
}
