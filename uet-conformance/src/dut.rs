use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use uet_control::{Answer, CallError, Event, Op, Operation, Welcome};
use uet_wire::validate::Finding;

/// How the suite reaches a device under test: a link for packets, and the control channel.
///
/// Time is the link's: real, or virtual where the device runs inside the suite's process.
pub trait Dut {
    /// What the device said of itself.
    fn welcome(&self) -> &Welcome;

    /// What the link can do and show.
    fn facts(&self) -> &Facts;

    /// The time since the link was set up.
    fn now(&self) -> Duration;

    /// Sends a packet.
    fn send(&mut self, packet: &Wire) -> Result<(), DutError>;

    /// Waits for the next packet that comes for one of the suite's addresses, until this time; then `None`.
    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError>;

    /// Asks for an operation over the control channel; the result as the channel carries it.
    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError>;

    /// The oldest event that the control channel has told with its answers so far. Not every device tells any.
    fn event(&mut self) -> Option<Event> {
        None
    }

    /// How the device has ended, where that can be known and has happened.
    fn ended(&mut self) -> Option<String> {
        None
    }

    /// Starts it anew. `false` when nobody here can.
    fn restart(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

/// What follows from the calls of a [`Dut`].
pub trait DutExt: Dut {
    /// Asks for an operation over the control channel.
    fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, CallError> {
        self.call_any::<O>(op.into())
    }

    /// Asks for an operation, which is an `O`.
    fn call_any<O: Operation>(&mut self, op: Op) -> Result<O::Answer, CallError> {
        let result = self.ask(op)?;
        let answer = Answer { id: 0, ok: Some(true), error: None, result };
        answer.into_result::<O>().map_err(|refusal| CallError::Refused { op: O::NAME, refusal })
    }
}

impl<D: Dut + ?Sized> DutExt for D {}

/// What a link can do and show. What it cannot, no case may ask of it: it is skipped, with that reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The suite's own addresses. Those of either IP version are in the order in which cases use them.
    pub local: Vec<IpAddr>,
    /// The device's address.
    pub device: IpAddr,
    /// The device's address of the other IP version, if the link carries both.
    pub second_device: Option<IpAddr>,
    /// Packets can be sent as a switch would have trimmed them.
    pub trim: bool,
    /// ECN can be set on what is sent.
    pub set_ecn: bool,
    /// The entropy value of what is sent is the packet's.
    pub set_entropy: bool,
    /// The traffic class of what comes can be seen.
    pub see_class: bool,
    /// The entropy value of what comes can be seen.
    pub see_entropy: bool,
    /// CRC trailers can be made and damaged.
    pub crc: bool,
    /// Time is virtual: nothing happens that the suite does not wait for.
    pub virtual_time: bool,
}

impl Facts {
    /// A link that carries packets between these addresses, and can do and show nothing else.
    ///
    /// ```
    /// use uet_conformance::Facts;
    ///
    /// let facts = Facts { see_class: true, ..Facts::new(&[[10, 0, 0, 1].into()], [10, 0, 0, 2].into()) };
    /// assert!(facts.see_class && !facts.trim);
    /// ```
    pub fn new(local: &[IpAddr], device: IpAddr) -> Self {
        Facts {
            local: local.to_vec(),
            device,
            second_device: None,
            trim: false,
            set_ecn: false,
            set_entropy: false,
            see_class: false,
            see_entropy: false,
            crc: false,
            virtual_time: false,
        }
    }

    /// The device's address of one IP version, if the link carries it.
    pub fn device_of(&self, ipv4: bool) -> Option<IpAddr> {
        [Some(self.device), self.second_device].into_iter().flatten().find(|device| device.is_ipv4() == ipv4)
    }

    /// The suite's addresses of one IP version.
    pub fn local_of(&self, ipv4: bool) -> impl Iterator<Item = IpAddr> + '_ {
        self.local.iter().copied().filter(move |local| local.is_ipv4() == ipv4)
    }
}

/// A packet on the link, from the first byte of UET to the last before a trailer, and what IP says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Where it comes from.
    pub src: IpAddr,
    /// Where it goes.
    pub dst: IpAddr,
    /// The entropy value.
    pub entropy: u16,
    /// Whether it belongs to the high class of acknowledgements and control; `None` where that cannot be seen.
    pub high: Option<bool>,
    /// Whether it is marked by congestion.
    pub marked: bool,
    /// Whether a switch has cut it, and where.
    pub trimmed: Option<Trimmed>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What a switch has taken off the end of a packet that is to be sent.
    pub taken: Vec<u8>,
    /// The bit of a packet to be sent that changes once its CRC has been made, counted from its first; those behind its last
    /// are the trailer's. Only links with trailers do so.
    pub flipped: Option<usize>,
    /// What is wrong around a packet that came, on a link that shows it.
    pub around: Vec<Finding>,
}

impl Wire {
    /// A packet to which nothing happens.
    pub fn new(src: IpAddr, dst: IpAddr, entropy: u16, bytes: Vec<u8>) -> Self {
        let (high, marked, trimmed) = (None, false, None);
        Wire { src, dst, entropy, high, marked, trimmed, bytes, taken: vec![], flipped: None, around: vec![] }
    }
}

/// Where a packet was cut by a switch, as its traffic class says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trimmed {
    /// Within the fabric.
    Fabric,
    /// At the last switch before the destination.
    LastHop,
}

/// The device, or the way to it, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutError(pub String);

impl fmt::Display for DutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DutError {}
