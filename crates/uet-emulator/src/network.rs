//! NICs on one fabric, in virtual time.

use crate::capture::Capture;
use crate::frame::Record;
use crate::nic::Nic;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::collections::VecDeque;
use uet_model::ladder::{Fate, Ladder};
use uet_model::network::{Node, Observer, Treatment};
use uet_model::ses::{Done, OperationError, OperationId, ReceiveId, Received};
use uet_model::{Packet, Time};

/// NICs on one fabric, in virtual time: a [`uet_model::network::Network`] with captures and ladders.
///
/// ```
/// use bytes::Bytes;
/// use uet_emulator::{Config, Network, Nic};
/// use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
///
/// let mut net = Network::new(7);
/// let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
/// let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
///
/// let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
/// let region = Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; 8] };
/// let region = net[b].expose(index, region)?;
/// let (peer, data) = (Peer::relative([10, 0, 0, 2], 101, 2), Bytes::from_static(b"hello"));
/// let write = net[a].post(Operation::new(peer, Work::Write { key: Key(7), offset: 1, data }))?;
///
/// assert!(net.operation(a, write).is_some_and(|result| result.is_ok()));
/// assert_eq!(net[b].memory(region), Some(&b"\0hello\0\0"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Network(uet_model::network::Network<Nic, Recorder>);

/// The number of a NIC on a [`Network`].
pub type NicId = usize;

/// Records a network: a capture of its packets, a ladder of packets and decisions.
#[derive(Debug, Default)]
pub struct Recorder {
    capture: Option<Capture>,
    ladder: Option<Ladder>,
    lost: VecDeque<(Time, Packet)>,
}

/// Maximum number of lost packets that wait for [`Network::poll_lost`]; older ones are forgotten.
const LOST: usize = 1024;

/// Maximum wait of [`Network::operation`] and [`Network::received`], in virtual time.
pub const PATIENCE: Duration = Duration::from_secs(1);

impl Network {
    /// Creates a network without NICs, at time 0. The seed is that of its [fabric](uet_model::network::Fabric).
    pub fn new(seed: u64) -> Self {
        Network(uet_model::network::Network::new(seed))
    }

    /// Adds a NIC, at its address or addresses.
    pub fn add(&mut self, nic: Nic) -> NicId {
        let second = nic.second_address();
        let number = self.0.add(nic.address(), nic);
        second.into_iter().for_each(|second| self.0.add_address(number, second));
        number
    }

    /// Captures every packet sent from now on, once, as the network changes it. A comment lists the impairments that met it.
    pub fn capture(&mut self, capture: Capture) {
        self.observer.capture = Some(capture);
    }

    /// Stops capturing and returns the capture.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.observer.capture.take()
    }

    /// Adds a comment to the next captured packet.
    pub fn comment_next(&mut self, comment: &str) {
        if let Some(capture) = &mut self.observer.capture {
            capture.comment_next(comment);
        }
    }

    /// Returns the oldest packet that the rules of the fabric have lost, with the time of its sending.
    pub fn poll_lost(&mut self) -> Option<(Time, Packet)> {
        self.observer.lost.pop_front()
    }

    /// Draws packets and decisions of NICs into a ladder. Decisions need room: the parameter `event_capacity`.
    pub fn draw(&mut self, ladder: Ladder) {
        self.observer.ladder = Some(ladder);
    }

    /// Stops drawing and returns the ladder.
    pub fn end_drawing(&mut self) -> Option<Ladder> {
        self.observer.ladder.take()
    }

    /// Waits until an operation has completed. Returns `None` if it has not after [`PATIENCE`].
    pub fn operation(&mut self, nic: NicId, operation: OperationId) -> Option<Result<Done, OperationError>> {
        let until = self.now() + PATIENCE;
        self.run_until(until, |net| net[nic].operation(operation))
    }

    /// Waits until a send has met a receive. Returns `None` if none has after [`PATIENCE`].
    pub fn received(&mut self, nic: NicId, receive: ReceiveId) -> Option<Received> {
        let until = self.now() + PATIENCE;
        self.run_until(until, |net| net[nic].received(receive))
    }
}

impl Deref for Network {
    type Target = uet_model::network::Network<Nic, Recorder>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Network {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Observer<Nic> for Recorder {
    fn node(&mut self, nic: &mut Nic) {
        let Some(ladder) = &mut self.ladder else { return };
        let address = nic.address();
        while let Some(event) = nic.poll_event() {
            ladder.note(event.at(), address, event);
        }
    }

    fn sent(&mut self, now: Time, packet: &Packet, treatment: &Treatment) {
        if treatment.lost {
            if self.lost.len() == LOST {
                self.lost.pop_front();
            }
            self.lost.push_back((now, packet.clone()));
        }
        if let Some(capture) = &mut self.capture {
            let Treatment { marked, trim, corrupt, .. } = *treatment;
            let comment = &treatment.to_string();
            capture.write(&Record { marked, trim, corrupt, comment, ..Record::new(now, packet) });
        }
        if let Some(ladder) = &mut self.ladder {
            ladder.packet(now, packet, if treatment.lost { Fate::Lost } else { Fate::Arrives });
        }
    }
}

impl Node for Nic {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.poll_transmit(now)
    }
    fn handle_input(&mut self, now: Time, packet: Packet) {
        self.handle_carried(now, packet);
    }
    fn handle_damaged(&mut self, now: Time, packet: Packet) {
        self.handle_damaged(now, packet, "bad CRC");
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.poll_timeout()
    }
    fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }
}
