use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use uet_control::{Answer, CallError, Event, Op, Operation, Welcome};
use uet_wire::validate::Finding;

/// Access of the suite to a device under test: a link for packets, and the control channel.
///
/// The link's clock is real, or virtual if the device runs in the suite's process or has a time of its own.
pub trait Dut {
    /// Returns the device's answer to `hello`.
    fn welcome(&self) -> &Welcome;

    /// Returns the abilities of the link.
    fn facts(&self) -> &Facts;

    /// Returns the time since the link was set up.
    fn now(&self) -> Duration;

    /// Sends a packet.
    fn send(&mut self, packet: &Wire) -> Result<(), DutError>;

    /// Waits for the next packet to one of the suite's addresses until this time. Returns `None` if none
    /// arrives.
    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError>;

    /// Requests an operation over the control channel; returns the result as the channel carries it.
    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError>;

    /// Returns the oldest event that arrived with answers of the control channel. Not every device sends
    /// events.
    fn event(&mut self) -> Option<Event> {
        None
    }

    /// Returns the outer headers of a packet with this many bytes, as transport security authenticates them.
    /// Returns `None` if the link does not know them.
    fn outer(&self, _packet: &Wire, _length: usize, _leaving: bool) -> Option<uet_wire::tss::Outer> {
        None
    }

    /// Tells the link that an instance begins after a reset, for captures.
    fn begin(&mut self, _instance: &str) {}

    /// Returns the packets that the network has lost since the last call, with the times of their sending, as
    /// far as that is known.
    fn lost(&mut self) -> Vec<(Duration, Wire)> {
        Vec::new()
    }

    /// Returns how the device has ended, if that is known.
    fn ended(&mut self) -> Option<String> {
        None
    }

    /// Returns the instance that began last, if that is known.
    fn last_instance(&self) -> Option<&str> {
        None
    }

    /// Restarts the device. Returns `false` if it cannot be restarted from here.
    fn restart(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Returns a function that makes more devices like this one, if that is possible here. They can run at
    /// once.
    fn twins(&self) -> Option<Twins> {
        None
    }

    /// Returns the known effects of the network on packets between suite and device, since the link was set
    /// up.
    fn network_effects(&mut self) -> NetworkEffects {
        NetworkEffects::default()
    }

    /// Returns whether the device leaves packets unread: they lie in its socket on the host of the suite.
    fn reads_nothing(&mut self) -> bool {
        false
    }

    /// Returns whether programs on the host of the suite and a real-time device wait for a processor, so that
    /// either may act late.
    fn is_host_busy(&mut self) -> bool {
        false
    }

    /// Returns the round-trip time of the link, if a run has measured a notable one.
    fn round_trip(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns a number that changes the random numbers of a run: a device that nothing resets still has the
    /// contexts of the run before.
    fn nonce(&self) -> u64 {
        0
    }

    /// Returns whether a run has found that the device answers a plain write.
    fn serves_writes(&self) -> bool {
        false
    }

    /// Returns whether a run has found that the standing region of this length takes no write.
    fn refuses_region(&self, _length: u64) -> bool {
        false
    }
}

/// Makes a device.
pub type Twins = Box<dyn Fn() -> Option<Box<dyn Dut>> + Send + Sync>;

/// Counts of packets that the network between suite and device has lost or changed.
///
/// A device is not to blame for their consequences.
///
/// ```
/// use uet_conformance::NetworkEffects;
///
/// let before = NetworkEffects { sent: 10, lost: 1, ..NetworkEffects::default() };
/// let after = NetworkEffects { sent: 40, lost: 3, delayed: 1, ..NetworkEffects::default() };
/// assert_eq!(after.since(before).to_string(), "the network lost 2 and delayed 1 of 30 packets");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkEffects {
    /// Packets sent into the network; 0 if unknown.
    pub sent: u64,
    /// Lost packets.
    pub lost: u64,
    /// Duplicates that the network made.
    pub duplicated: u64,
    /// Delayed packets.
    pub delayed: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Marked, trimmed or damaged packets.
    pub changed: u64,
}

impl NetworkEffects {
    /// Returns the effects after an earlier count.
    pub fn since(self, earlier: NetworkEffects) -> NetworkEffects {
        NetworkEffects {
            sent: self.sent.saturating_sub(earlier.sent),
            lost: self.lost.saturating_sub(earlier.lost),
            duplicated: self.duplicated.saturating_sub(earlier.duplicated),
            delayed: self.delayed.saturating_sub(earlier.delayed),
            reordered: self.reordered.saturating_sub(earlier.reordered),
            changed: self.changed.saturating_sub(earlier.changed),
        }
    }

    fn all(self) -> [(u64, &'static str); 5] {
        [
            (self.lost, "lost"),
            (self.duplicated, "duplicated"),
            (self.delayed, "delayed"),
            (self.reordered, "reordered"),
            (self.changed, "changed"),
        ]
    }

    /// Returns whether every packet arrived once, in order and unchanged, as far as is known.
    pub fn is_none(self) -> bool {
        self.all().iter().all(|(count, _)| *count == 0)
    }

    /// Returns whether the network affects most packets, so that another attempt meets the same effects.
    pub fn is_constant(self) -> bool {
        self.sent > 0 && self.all().iter().map(|(count, _)| count).sum::<u64>() * 2 > self.sent
    }
}

/// Displays a clause: `the network lost 2 and delayed 1 of 30 packets`.
impl fmt::Display for NetworkEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the network ")?;
        let counts: Vec<String> = self
            .all()
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, effect)| format!("{effect} {count}"))
            .collect();
        match counts.split_last() {
            None => return f.write_str("changed nothing"),
            Some((last, [])) => f.write_str(last)?,
            Some((last, others)) => write!(f, "{} and {last}", others.join(", "))?,
        }
        match self.sent {
            0 => f.write_str(" packets"),
            sent => write!(f, " of {sent} packets"),
        }
    }
}

/// Typed calls of a [`Dut`].
pub trait DutExt: Dut {
    /// Requests an operation over the control channel.
    fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, CallError> {
        self.call_any::<O>(op.into())
    }

    /// Requests an operation, which is an `O`.
    fn call_any<O: Operation>(&mut self, op: Op) -> Result<O::Answer, CallError> {
        let result = self.ask(op)?;
        let answer = Answer { id: 0, ok: Some(true), error: None, result };
        answer.into_result::<O>().map_err(|refusal| CallError::Refused { op: O::NAME, refusal })
    }
}

impl<D: Dut + ?Sized> DutExt for D {}

/// Abilities of a link. A rule that needs a missing ability is skipped with that reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Addresses of the suite. Those of each IP version are in the order in which rules use them.
    pub local: Vec<IpAddr>,
    /// Address of the device.
    pub device: IpAddr,
    /// The device's address of the other IP version, if the link carries both.
    pub second_device: Option<IpAddr>,
    /// Can send packets as if a switch had trimmed them.
    pub trim: bool,
    /// Can set ECN on sent packets.
    pub set_ecn: bool,
    /// Sends packets with their own entropy values.
    pub set_entropy: bool,
    /// Sends packets with their own TTL and UDP checksum.
    pub set_ttl: bool,
    /// Shows the traffic class of received packets.
    pub see_class: bool,
    /// Shows the entropy value of received packets.
    pub see_entropy: bool,
    /// Can create and damage CRC trailers.
    pub crc: bool,
    /// Time is virtual: it advances only while the suite waits.
    pub virtual_time: bool,
    /// The device has a control channel. Without one, it refuses every operation but `reset`, which does
    /// nothing.
    pub control: bool,
}

impl Facts {
    /// Creates a link between these addresses without other abilities.
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
            set_ttl: false,
            see_class: false,
            see_entropy: false,
            crc: false,
            virtual_time: false,
            control: true,
        }
    }

    /// Returns whether this is an address of the device.
    pub fn is_device(&self, address: IpAddr) -> bool {
        address == self.device || Some(address) == self.second_device
    }

    /// Returns the device's address of one IP version, if the link carries it.
    pub fn device_of(&self, ipv4: bool) -> Option<IpAddr> {
        [Some(self.device), self.second_device].into_iter().flatten().find(|device| device.is_ipv4() == ipv4)
    }

    /// Returns the suite's addresses of one IP version.
    pub fn local_of(&self, ipv4: bool) -> impl Iterator<Item = IpAddr> + '_ {
        self.local.iter().copied().filter(move |local| local.is_ipv4() == ipv4)
    }
}

/// A packet on the link, from the first byte of UET to the last before a trailer, with its IP fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// The entropy value.
    pub entropy: u16,
    /// True if its DSCP is that of acknowledgments and control packets; `None` if the link does not show it.
    pub high: Option<bool>,
    /// True if it carries a congestion mark.
    pub marked: bool,
    /// The TTL or hop limit. Only some links set that of a packet to send.
    pub ttl: u8,
    /// The UDP checksum, which senders set to 0. Only some links set that of a packet to send.
    pub udp_checksum: u16,
    /// The place where a switch trimmed it, if any.
    pub trimmed: Option<Trimmed>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// True if the switch that trimmed a packet to send leaves the IP length and the IPv4 checksum as they
    /// were.
    pub stale_length: bool,
    /// Bytes that a switch removed from the end of a packet to send.
    pub taken: Vec<u8>,
    /// The bit of a packet to send that flips after its CRC is computed, counted from its first bit. Bits
    /// behind its last one are the trailer's. Only links with trailers support it.
    pub flipped: Option<usize>,
    /// True if the network lost it, as far as that is known.
    pub lost: bool,
    /// Violations in the outer layers of a received packet, if the link shows them.
    pub around: Vec<Finding>,
}

impl Wire {
    /// The TTL of a packet, unless a rule sets another.
    pub const TTL: u8 = 64;

    /// Creates a packet without marks, trims or damage.
    pub fn new(src: IpAddr, dst: IpAddr, entropy: u16, bytes: Vec<u8>) -> Self {
        Wire {
            src,
            dst,
            entropy,
            high: None,
            marked: false,
            ttl: Self::TTL,
            udp_checksum: 0,
            trimmed: None,
            stale_length: false,
            bytes,
            taken: Vec::new(),
            flipped: None,
            lost: false,
            around: Vec::new(),
        }
    }
}

/// The place where a switch trimmed a packet, from its traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trimmed {
    /// Within the fabric.
    Fabric,
    /// At the last switch before the destination.
    LastHop,
}

/// The device or its link has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutError(pub String);

impl fmt::Display for DutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DutError {}
