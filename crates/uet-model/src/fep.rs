use crate::cc::CcError;
use crate::pds::{Pds, Protect};
use crate::ses::{Completion, Ses, SesParams};
use crate::{BufferTooSmall, Command, Indication, Packet, PdsParams, Refused, Time, Transmit, pds, ses};
use core::fmt;
use core::iter;
use core::net::IpAddr;
use std::collections::VecDeque;

/// A fabric endpoint: packet delivery and semantics without I/O.
///
/// The caller owns the clock and the network. The methods fall into four classes:
///
/// - **Input**: [`handle_input`](Self::handle_input) and [`handle_batch`](Self::handle_batch) handle packets that
///   arrived.
/// - **Output**: [`poll_transmit`](Self::poll_transmit), [`poll_transmit_into`](Self::poll_transmit_into) and
///   [`transmit_batch`](Self::transmit_batch) return packets to send. [`poll_completion`](Self::poll_completion) and
///   [`poll_event`](Self::poll_event) report completions and events to the application.
/// - **Timers**: [`poll_timeout`](Self::poll_timeout) returns the time of the next timer, and
///   [`handle_timeout`](Self::handle_timeout) runs the timers that are due.
/// - **Application**: [`ses_mut`](Self::ses_mut) posts operations and receives and registers memory,
///   [`pds_mut`](Self::pds_mut) closes contexts and sends probes.
///
/// # Call order
///
/// After each input, timeout or application call:
///
/// 1. Call `poll_transmit` until it returns `None`, and send the packets in this order. A packet that the network
///    rejects is lost, and its retransmission timer recovers it.
/// 2. Take completions and events.
/// 3. Call `poll_timeout` last, because every other call may change its result.
///
/// At the time of `poll_timeout`, call `handle_timeout`. An early call does nothing, and a late one only delays the
/// timers. The event queue is bounded and drops the oldest events.
///
/// # Time
///
/// `now` must not decrease from call to call. If it does, timers fire late, but nothing else breaks. The origin of the
/// clock is arbitrary.
///
/// # Cost
///
/// No method waits, reads a clock or starts a thread. The work per packet does not depend on the number of contexts.
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
/// // A writes to it.
/// let peer = Peer { index: 10, ..Peer::relative([10, 0, 1, 12], 101, 2) };
/// let data = Bytes::from_static(b"hello");
/// a.ses_mut().post(Operation::new(peer, Work::Write { key: Key(0xacce5), offset: 0, data }))?;
///
/// let mut now = Time::ZERO;
/// while a.poll_completion().is_none() {
///     while let Some(packet) = a.poll_transmit(now) {
///         b.handle_input(now, packet);
///     }
///     while let Some(packet) = b.poll_transmit(now) {
///         a.handle_input(now, packet);
///     }
///     now += Duration::from_micros(1);
///     for end in [&mut a, &mut b] {
///         if end.poll_timeout().is_some_and(|at| at <= now) {
///             end.handle_timeout(now);
///         }
///     }
/// }
/// assert_eq!(b.ses().memory(region), Some(&b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(feature = "explore", derive(Clone))]
pub struct Fep<B = ()> {
    pds: Pds,
    ses: Ses,
    tap: B,
    now: Time,
    /// A packet that did not fit the caller's buffer.
    unsent: Option<Packet>,
    events: VecDeque<Event>,
    event_capacity: usize,
}

#[cfg(feature = "explore")]
impl<B: core::hash::Hash> core::hash::Hash for Fep<B> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Fep { pds, ses, tap, now: _, unsent, events: _, event_capacity: _ } = self;
        (pds, ses, tap, unsent).hash(state);
    }
}

/// A tap on the interface between packet delivery and semantics (section 3.5.4).
///
/// It sees each indication and each command, and passes on, replaces or drops it. `()` passes everything on.
///
/// ```
/// use uet_model::{Command, Fep, Indication, LayerTap, PdsParams, Time, ses::SesParams};
///
/// /// Counts the requests of peers.
/// #[derive(Default)]
/// struct Count(usize);
///
/// impl LayerTap for Count {
///     fn on_indication(&mut self, _: Time, indication: Indication) -> impl Iterator<Item = Indication> {
///         self.0 += usize::from(matches!(indication, Indication::Request(_)));
///         std::iter::once(indication)
///     }
///
///     fn on_command(&mut self, _: Time, command: Command) -> impl Iterator<Item = Command> {
///         std::iter::once(command)
///     }
/// }
///
/// let fep = Fep::new(PdsParams::default(), SesParams::default(), [10, 0, 0, 1].into(), 1)?;
/// let fep = fep.with_tap(Count::default());
/// assert_eq!(fep.tap().0, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LayerTap {
    /// Returns the indications that SES gets in place of this one.
    fn on_indication(&mut self, now: Time, indication: Indication) -> impl Iterator<Item = Indication>;

    /// Returns the commands that packet delivery gets in place of this one.
    fn on_command(&mut self, now: Time, command: Command) -> impl Iterator<Item = Command>;
}

impl LayerTap for () {
    fn on_indication(&mut self, _: Time, indication: Indication) -> impl Iterator<Item = Indication> {
        iter::once(indication)
    }

    fn on_command(&mut self, _: Time, command: Command) -> impl Iterator<Item = Command> {
        iter::once(command)
    }
}

/// A decision of an endpoint. Its [`Display`](fmt::Display) is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A decision of packet delivery.
    Pds(pds::PdsEvent),
    /// A decision of the semantics.
    Ses {
        /// The time.
        at: Time,
        /// The decision.
        event: ses::SesEvent,
    },
}

impl Event {
    /// Returns the time of the decision.
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
    /// Creates an endpoint with this address. The seed determines the random choices of packet delivery: the first PSNs
    /// and the paths. Fails if the parameters of congestion control contradict each other.
    pub fn new(pds: PdsParams, ses: SesParams, address: IpAddr, seed: u64) -> Result<Self, CcError> {
        let event_capacity = pds.event_capacity.saturating_add(usize::from(ses.max_events));
        let ses = Ses::new(ses, &pds);
        let pds = Pds::new(pds, address, seed)?;
        let events = VecDeque::new();
        Ok(Fep { pds, ses, tap: (), now: Time::ZERO, unsent: None, events, event_capacity })
    }

    /// Adds a tap between packet delivery and semantics.
    pub fn with_tap<B: LayerTap>(self, tap: B) -> Fep<B> {
        let Fep { pds, ses, tap: (), now, unsent, events, event_capacity } = self;
        Fep { pds, ses, tap, now, unsent, events, event_capacity }
    }
}

impl<B: LayerTap> Fep<B> {
    /// Adds an address of the other IP version. The endpoint accepts packets to both addresses. Its packets to a peer
    /// come from the address of the peer's IP version.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use uet_model::ses::{Key, Operation, Peer, SesParams, Work};
    /// use uet_model::{Fep, PdsParams, Time};
    ///
    /// let fep = Fep::new(PdsParams::default(), SesParams::default(), "10.0.0.1".parse()?, 1)?;
    /// let mut fep = fep.with_second_address("fd00::1".parse()?);
    /// for peer in ["10.0.0.2", "fd00::2"] {
    ///     let peer = Peer::relative(peer.parse::<std::net::IpAddr>()?, 101, 2);
    ///     let work = Work::Write { key: Key(7), offset: 0, data: Bytes::from_static(b"hello") };
    ///     fep.ses_mut().post(Operation::new(peer, work))?;
    /// }
    /// let sources = core::iter::from_fn(|| fep.poll_transmit(Time::ZERO)).map(|packet| packet.src.to_string());
    /// assert_eq!(sources.collect::<Vec<_>>(), ["10.0.0.1", "fd00::1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_second_address(mut self, address: IpAddr) -> Self {
        self.pds = self.pds.with_second_address(address);
        self
    }

    /// Adds protection: the endpoint seals every packet before it leaves and opens every packet that arrives. See
    /// [`Protect`].
    pub fn with_protection(mut self, protect: impl Protect + 'static) -> Self {
        self.pds = self.pds.with_protection(protect);
        self
    }

    /// Returns the tap.
    pub fn tap(&self) -> &B {
        &self.tap
    }

    /// Returns a mutable reference to the tap.
    pub fn tap_mut(&mut self) -> &mut B {
        &mut self.tap
    }

    /// Returns the semantics layer: memory, tables, operations.
    pub fn ses(&self) -> &Ses {
        &self.ses
    }

    /// Returns the semantics layer, to post operations and register memory. The resulting packets leave with the next
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn ses_mut(&mut self) -> &mut Ses {
        &mut self.ses
    }

    /// Returns the packet delivery layer: contexts, congestion control.
    pub fn pds(&self) -> &Pds {
        &self.pds
    }

    /// Returns the packet delivery layer, to close contexts or send probes.
    pub fn pds_mut(&mut self) -> &mut Pds {
        &mut self.pds
    }

    /// Handles a packet that arrived.
    pub fn handle_input(&mut self, now: Time, packet: Packet) {
        self.pds.handle_input(now, packet);
        self.pump(now);
    }

    /// Handles packets that arrived, in this order.
    pub fn handle_batch(&mut self, now: Time, packets: impl IntoIterator<Item = Packet>) {
        // The reply to a packet can depend on the state after the previous one.
        packets.into_iter().for_each(|packet| self.handle_input(now, packet));
    }

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pds.handle_timeout(now);
        self.pump(now);
    }

    /// Returns the next packet to send, or `None` if there is none now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.unsent.is_some() {
            return self.unsent.take();
        }
        self.pump(now);
        let packet = self.pds.poll_transmit(now);
        // A packet that leaves may make room for the next.
        self.pump(now);
        packet
    }

    /// Writes the next packet to the start of `buffer`, without allocation. Returns `None` if there is none now.
    ///
    /// Fails if the packet does not fit. The packet stays queued, and the next call returns it first.
    ///
    /// ```
    /// use uet_model::{Fep, PdsParams, Time, ses::SesParams};
    ///
    /// let mut fep = Fep::new(PdsParams::default(), SesParams::default(), [10, 0, 0, 1].into(), 1)?;
    /// let mut buffer = [0; 9216];
    /// while let Some(transmit) = fep.poll_transmit_into(Time::ZERO, &mut buffer)? {
    ///     send(transmit.dst, &buffer[..transmit.length]);
    /// }
    /// # fn send(_: std::net::IpAddr, _: &[u8]) {}
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_transmit_into(
        &mut self,
        now: Time,
        buffer: &mut [u8],
    ) -> Result<Option<Transmit>, BufferTooSmall> {
        let Some(packet) = self.poll_transmit(now) else { return Ok(None) };
        let written = packet.write_to(buffer);
        if written.is_err() {
            self.unsent = Some(packet);
        }
        written.map(Some)
    }

    /// Writes one packet to each buffer, in order, until there are no more packets or buffers. Appends the description
    /// of each packet to `sent`, and returns the number of packets.
    ///
    /// Stops at a packet that does not fit its buffer, and keeps it queued. Fails only if this is the first packet.
    pub fn transmit_batch<'b>(
        &mut self,
        now: Time,
        buffers: impl IntoIterator<Item = &'b mut [u8]>,
        sent: &mut Vec<Transmit>,
    ) -> Result<usize, BufferTooSmall> {
        let before = sent.len();
        for buffer in buffers {
            match self.poll_transmit_into(now, buffer) {
                Ok(Some(transmit)) => sent.push(transmit),
                Ok(None) => break,
                Err(error) if sent.len() == before => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent.len() - before)
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout); `None` if no timer runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.pds.poll_timeout(), self.ses.poll_timeout()].into_iter().flatten().min()
    }

    /// Returns the next operation or receive that has completed.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.ses.poll_completion()
    }

    /// Returns the next decision, in chronological order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.drain_events();
        self.events.pop_front()
    }

    /// Carries commands and indications between the layers until both are idle. Each indication is answered before the
    /// next, as [`Command::Refuse`] requires.
    fn pump(&mut self, now: Time) {
        self.now = now;
        self.ses.handle_timeout(now);
        loop {
            self.drain_events();
            while let Some(command) = self.ses.poll_command() {
                self.drain_events();
                for command in self.tap.on_command(now, command) {
                    carry(&mut self.pds, &mut self.ses, now, command);
                }
            }
            let Some(indication) = self.pds.poll_indication() else { return self.drain_events() };
            for indication in self.tap.on_indication(now, indication) {
                self.ses.handle(indication);
            }
        }
    }

    /// Moves the events of both layers to one queue, which keeps them in order.
    fn drain_events(&mut self) {
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
        Command::Abandon(pdc) => pds.abandon(now, pdc),
    }
}
