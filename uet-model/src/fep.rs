use crate::cc::CcError;
use crate::pds::Pds;
use crate::ses::{Completion, Ses, SesParams};
use crate::{Command, Indication, Packet, PdsParams, Refused, Time, pds, ses};
use core::fmt;
use core::iter;
use core::net::IpAddr;
use std::collections::VecDeque;

/// A fabric endpoint: packet delivery and semantics, joined.
///
/// Five calls face the network: [`handle_input`](Self::handle_input), [`handle_timeout`](Self::handle_timeout),
/// [`poll_transmit`](Self::poll_transmit), [`poll_timeout`](Self::poll_timeout) and [`poll_event`](Self::poll_event). The
/// application speaks to [`ses_mut`](Self::ses_mut): what it posts leaves with the next `poll_transmit`, and ends as a
/// [`Completion`].
///
/// ```
/// use bytes::Bytes;
/// use std::time::Duration;
/// use uet_model::ses::{Access, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, SesParams, Work};
/// use uet_model::{Fep, PdsParams, Time};
///
/// let fep = |address: [u8; 4], seed| Fep::new(PdsParams::default(), SesParams::default(), address.into(), seed);
/// let (mut a, mut b) = (fep([10, 0, 0, 1], 1)?, fep([10, 0, 1, 12], 2)?);
///
/// // B exposes memory.
/// let process = Process::Relative { job: 101, pid: 2 };
/// b.ses_mut().open(Endpoint { process, start: 0, count: 16 })?;
/// let region = Region { key: Key(0xacce5), base: 0, access: Access::ALL, data: vec![0; 5] };
/// let region = b.ses_mut().expose(ResourceIndex { process, index: 10 }, region)?;
///
/// // A writes into it.
/// let peer = Peer { index: 10, ..Peer::relative([10, 0, 1, 12], 101, 2) };
/// let data = Bytes::from_static(b"hello");
/// a.ses_mut().post(Operation::new(peer, Work::Write { key: Key(0xacce5), offset: 0, data }))?;
///
/// let mut now = Time::ZERO;
/// while a.poll_completion().is_none() {
///     now += Duration::from_micros(1);
///     while let Some(packet) = a.poll_transmit(now) {
///         b.handle_input(now, packet);
///     }
///     while let Some(packet) = b.poll_transmit(now) {
///         a.handle_input(now, packet);
///     }
///     a.handle_timeout(now);
///     b.handle_timeout(now);
/// }
/// assert_eq!(b.ses().memory(region), Some(&b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fep<B = ()> {
    pds: Pds,
    ses: Ses,
    between: B,
    now: Time,
    events: VecDeque<Event>,
    event_capacity: usize,
}

/// What stands between the two halves of a [`Fep`]: it hears what one says to the other (section 3.5.4), and passes on what
/// it likes. `()` passes on everything.
///
/// ```
/// use uet_model::{Between, Command, Fep, Indication, PdsParams, Time, ses::SesParams};
///
/// /// Counts the requests of others.
/// #[derive(Default)]
/// struct Count(usize);
///
/// impl Between for Count {
///     fn up(&mut self, _: Time, indication: Indication) -> impl Iterator<Item = Indication> {
///         self.0 += usize::from(matches!(indication, Indication::Request(_)));
///         std::iter::once(indication)
///     }
///
///     fn down(&mut self, _: Time, command: Command) -> impl Iterator<Item = Command> {
///         std::iter::once(command)
///     }
/// }
///
/// let fep = Fep::new(PdsParams::default(), SesParams::default(), [10, 0, 0, 1].into(), 1)?;
/// let fep = fep.with(Count::default());
/// assert_eq!(fep.between().0, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Between {
    /// What SES is to hear when packet delivery says this.
    fn up(&mut self, now: Time, indication: Indication) -> impl Iterator<Item = Indication>;

    /// What packet delivery is to hear when SES says this.
    fn down(&mut self, now: Time, command: Command) -> impl Iterator<Item = Command>;
}

impl Between for () {
    fn up(&mut self, _: Time, indication: Indication) -> impl Iterator<Item = Indication> {
        iter::once(indication)
    }

    fn down(&mut self, _: Time, command: Command) -> impl Iterator<Item = Command> {
        iter::once(command)
    }
}

/// A decision of an endpoint, in words when displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Of packet delivery.
    Pds(pds::Event),
    /// Of the semantics.
    Ses {
        /// When.
        at: Time,
        /// What.
        event: ses::Event,
    },
}

impl Event {
    /// When it was.
    pub fn at(&self) -> Time {
        match self {
            Event::Pds(event) => event.at,
            Event::Ses { at, .. } => *at,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Pds(event) => event.fmt(f),
            Event::Ses { event, .. } => event.fmt(f),
        }
    }
}

impl Fep {
    /// An endpoint with this address. The seed decides what is random in packet delivery.
    pub fn new(pds: PdsParams, ses: SesParams, address: IpAddr, seed: u64) -> Result<Self, CcError> {
        let event_capacity = pds.event_capacity + usize::from(ses.max_events);
        let ses = Ses::new(ses, &pds);
        let pds = Pds::new(pds, address, seed)?;
        Ok(Fep { pds, ses, between: (), now: Time::ZERO, events: VecDeque::new(), event_capacity })
    }

    /// The same with something between its halves.
    pub fn with<B: Between>(self, between: B) -> Fep<B> {
        let Fep { pds, ses, between: (), now, events, event_capacity } = self;
        Fep { pds, ses, between, now, events, event_capacity }
    }
}

impl<B: Between> Fep<B> {
    /// What stands between its halves.
    pub fn between(&self) -> &B {
        &self.between
    }

    /// The same, to ask something of it.
    pub fn between_mut(&mut self) -> &mut B {
        &mut self.between
    }

    /// The semantics: memory, tables, operations.
    pub fn ses(&self) -> &Ses {
        &self.ses
    }

    /// The same, to ask something of it. What has to be sent for it leaves with the next
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn ses_mut(&mut self) -> &mut Ses {
        &mut self.ses
    }

    /// Packet delivery: contexts, congestion control.
    pub fn pds(&self) -> &Pds {
        &self.pds
    }

    /// The same, to ask something of it.
    pub fn pds_mut(&mut self) -> &mut Pds {
        &mut self.pds
    }

    /// Takes a packet in.
    pub fn handle_input(&mut self, now: Time, packet: Packet) {
        self.pds.handle_input(now, packet);
        self.join(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pds.handle_timeout(now);
        self.join(now);
    }

    /// The next packet to leave.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.join(now);
        let packet = self.pds.poll_transmit(now);
        // A packet that has left may have made room for the next.
        self.join(now);
        packet
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, if nothing else happens before.
    pub fn poll_timeout(&mut self) -> Option<Time> {
        self.pds.poll_timeout()
    }

    /// The next operation or receive that is over.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.ses.poll_completion()
    }

    /// The next decision, in the order in which they were made.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.note();
        self.events.pop_front()
    }

    /// Carries what one has to say to the other, until both are silent. Each indication is answered before the next, as
    /// [`Command::Refuse`] needs it.
    fn join(&mut self, now: Time) {
        self.now = now;
        loop {
            self.note();
            while let Some(command) = self.ses.poll_command() {
                self.note();
                for command in self.between.down(now, command) {
                    carry(&mut self.pds, &mut self.ses, now, command);
                }
            }
            let Some(indication) = self.pds.poll_indication() else { return self.note() };
            for indication in self.between.up(now, indication) {
                self.ses.handle(indication);
            }
        }
    }

    /// Takes the events of both, so that they stay in order.
    fn note(&mut self) {
        let at = self.now;
        while let Some(event) = self.pds.poll_event() {
            self.events.push_back(Event::Pds(event));
        }
        while let Some(event) = self.ses.poll_event() {
            self.events.push_back(Event::Ses { at, event });
        }
        let excess = self.events.len().saturating_sub(self.event_capacity);
        self.events.drain(..excess);
    }
}

fn carry(pds: &mut Pds, ses: &mut Ses, now: Time, command: Command) {
    match command {
        Command::Send(via, request) => {
            if let Err(Refused(request)) = pds.request(now, via, request) {
                ses.put_back(via, request);
            }
        }
        Command::Respond(ticket, response) => pds.respond(now, ticket, response),
        Command::Refuse(ticket, code) => pds.refuse(now, ticket, code),
        Command::Hold(pdc) => pds.hold(now, pdc),
        Command::Release(pdc) => pds.release(now, pdc),
    }
}
