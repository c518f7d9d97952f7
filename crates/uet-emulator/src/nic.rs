//! A NIC: a fabric endpoint with memory, queues and counters. It has no clock and no link of its own. Its driver
//! supplies time and arriving packets and takes outgoing packets.
//!
//! [`Network`](crate::Network) drives several in virtual time, [`link`](crate::link) drives one in real time.

use crate::classes::Classes;
use crate::config::{Config, ConfigError};
use crate::fault::{self, Handed, Running};
use crate::frame::{Framed, Outer, carried, ipv6_start};
use crate::security::Security;
use core::fmt;
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use uet_control::SecureDomain;
use uet_model::pds::{Dropped, Protect};
use uet_model::secure::Encapsulation;
use uet_model::ses::{
    AddressError, Completion, Done, Endpoint, Operation, OperationError, OperationId, PostError, Receive,
    ReceiveId, Received, Region, RegionId, ResourceIndex, Unexpected,
};
use uet_model::{Event, Fep, Memory, Packet, PdcHandle, Route, Time};
use uet_packet_io::keys::KeyError;

/// A NIC with one fabric endpoint. Model a card with several endpoints as several NICs on one
/// [`Network`](crate::Network) or link.
pub struct Nic {
    address: IpAddr,
    second_address: Option<IpAddr>,
    /// Encapsulation of packets from a [`Network`](crate::Network) on their last hop, if they are frames there.
    frames: Option<Outer>,
    config: Config,
    security: Security,
    fep: Fep<Running>,
    /// Completions that have been searched and not taken.
    completions: VecDeque<Completion>,
    received: u64,
    sent: u64,
    /// Packets dropped on arrival or on sending, by reason.
    dropped: BTreeMap<&'static str, u64>,
    /// Number of starts. Each start continues with different random numbers.
    starts: u64,
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nic").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Spreads the bits of an entropy value over a flow label.
const LABEL: u32 = 0x9e37;

/// Counters of a NIC since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets received, including dropped ones.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Contexts, including closed ones that are still remembered.
    pub pdcs: u64,
    /// State held for requests and responses: 0 when the NIC is idle.
    pub held: u64,
}

impl Nic {
    /// Creates a NIC with this address. Fails if the configuration is invalid.
    pub fn new(address: impl Into<IpAddr>, config: Config) -> Result<Self, ConfigError> {
        let address = address.into();
        let fep = start(address, None, &config, Running::default(), 0)?;
        let completions = VecDeque::new();
        let security = Security::new(config.seed);
        security.set_params(&config.secure);
        Ok(Nic {
            security,
            address,
            second_address: None,
            frames: None,
            config,
            fep,
            completions,
            received: 0,
            sent: 0,
            dropped: BTreeMap::new(),
            starts: 1,
        })
    }

    /// Adds [deliberate faults](fault). The reported parameters stay those of a correct NIC.
    pub fn with_faults(mut self, faults: &[&'static fault::Fault]) -> Result<Self, ConfigError> {
        self.fep = start(self.address, self.second_address, &self.config, Running::new(faults), 0)?;
        self.security.set_params(&self.fep.tap().config(&self.config).secure);
        Ok(self)
    }

    /// Adds an address of the other IP version: the NIC sends from the address of the version that its peer has. Call it
    /// before adding the NIC to a [`Network`](crate::Network).
    pub fn with_second_address(mut self, address: impl Into<IpAddr>) -> Self {
        let address = address.into();
        self.second_address = Some(address);
        self.fep = self.fep.with_second_address(address);
        self
    }

    /// Turns each packet that arrives from a [`Network`](crate::Network) into a frame, which the NIC parses. Faults in
    /// reading IP headers then take effect. The IPv6 flow label is derived from the entropy value.
    pub fn with_frames(mut self, outer: Outer) -> Self {
        self.frames = Some(outer);
        self
    }

    /// Adds protection: every packet is sealed before it leaves and opened when it arrives. Call it after
    /// [`with_faults`](Self::with_faults). The keys and their counters survive a [`restart`](Self::restart).
    pub fn with_protection(mut self, protect: impl Protect + 'static) -> Self {
        self.fep = self.fep.with_protection(protect);
        self
    }

    /// Prepares transport security for packets that leave the process. Without it, equal seeds give equal packets.
    ///
    /// Keys then continue their counters over all such NICs of the process. First counters and Start_PSNs come from random
    /// numbers of the operating system, because an earlier process may have had the keys. Call it before
    /// [`install_keys`](Self::install_keys).
    #[cfg(target_os = "linux")]
    pub fn with_process_security(mut self) -> std::io::Result<Self> {
        self.security = Security::of_process()?;
        self.security.set_params(&self.fep.tap().config(&self.config).secure);
        Ok(self)
    }

    /// Installs these secure domains in place of all others: from now on, the NIC protects its packets. Every key that the
    /// NIC has ever had keeps its counter. Fails without a change if a domain cannot be used safely.
    ///
    /// ```
    /// use uet_emulator::{Config, Nic};
    ///
    /// let file = format!("[[domain]]\nsdi = 7\nmode = \"cluster\"\nkeys = {{ 0 = \"{}\" }}\n", "5a".repeat(32));
    /// let mut nic = Nic::new([10, 0, 0, 1], Config::default())?;
    /// nic.install_keys(&uet_packet_io::keys::domains_from_toml(&file)?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn install_keys(&mut self, domains: &[SecureDomain]) -> Result<(), KeyError> {
        self.security.install(&self.fep.tap().domains(domains))?;
        let protection = self.fep.tap().guard(&self.security);
        self.fep.pds_mut().replace_protection(protection);
        Ok(())
    }

    /// Sets the encapsulation of its packets, which protection includes. UDP to the registered port unless set.
    pub fn set_encapsulation(&mut self, encapsulation: Encapsulation) {
        self.security.set_encapsulation(encapsulation);
    }

    /// Returns the names of its faults.
    pub fn faults(&self) -> impl Iterator<Item = &'static str> {
        self.fep.tap().faults().map(|fault| fault.name)
    }

    /// Returns its address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns its address of the other IP version, if it has one.
    pub fn second_address(&self) -> Option<IpAddr> {
        self.second_address
    }

    /// Returns its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Restarts the NIC with this configuration. It forgets contexts, memory, operations and counters.
    pub fn restart(&mut self, config: Config) -> Result<(), ConfigError> {
        let faults: Vec<_> = self.fep.tap().faults().collect();
        let mut fep = start(self.address, self.second_address, &config, Running::new(&faults), self.starts)?;
        fep.pds_mut().replace_protection(self.fep.pds_mut().replace_protection(None));
        self.security.set_params(&fep.tap().config(&config).secure);
        self.fep = fep;
        self.config = config;
        self.starts += 1;
        self.completions.clear();
        (self.received, self.sent) = (0, 0);
        self.dropped.clear();
        Ok(())
    }

    // ---- For applications.

    /// Opens an endpoint: the indices of a process.
    pub fn open(&mut self, endpoint: Endpoint) -> Result<(), AddressError> {
        self.fep.ses_mut().open(endpoint)
    }

    /// Opens this index if no endpoint has it.
    fn open_index(&mut self, ResourceIndex { process, index }: ResourceIndex) -> Result<(), AddressError> {
        match self.fep.ses_mut().open(Endpoint { process, start: index, count: 1 }) {
            Err(AddressError::Taken(_)) => Ok(()),
            other => other,
        }
    }

    /// Exposes memory to peers at an index. Opens the index if no endpoint has it.
    pub fn expose<M: Memory + 'static>(
        &mut self,
        index: ResourceIndex,
        region: Region<M>,
    ) -> Result<RegionId, AddressError> {
        self.open_index(index)?;
        let Region { key, base, access, data } = region;
        let mut region = Region { key, base, access, data: Vec::new() };
        self.fep.tap().expose(&mut region);
        let (key, length) = (region.key.0, data.len());
        let region = Region { key: region.key, base: region.base, access: region.access, data };
        let id = self.fep.ses_mut().expose(index, region)?;
        self.fep.tap_mut().exposed(id, index, key, length);
        Ok(id)
    }

    /// Opens an index if no endpoint has it, and sets whether it is disabled and whether it is ordered.
    pub fn set_index(
        &mut self,
        index: ResourceIndex,
        disabled: Option<bool>,
        ordered: Option<bool>,
    ) -> Result<(), AddressError> {
        self.open_index(index)?;
        let ses = self.fep.ses_mut();
        disabled.map_or(Ok(()), |disabled| ses.set_disabled(index, disabled))?;
        ordered.map_or(Ok(()), |ordered| ses.set_ordered(index, ordered))
    }

    /// Sets the initiator that requests to a peer state if they answer a request of the peer.
    pub fn set_initiator(&mut self, peer: IpAddr, job: u32, initiator: u32) {
        self.fep.ses_mut().set_initiator(peer, job, initiator);
    }

    /// Sets the generation of an index.
    pub fn set_generation(&mut self, index: ResourceIndex, generation: u8) -> Result<(), AddressError> {
        self.fep.tap_mut().generation(index, generation);
        self.fep.ses_mut().set_generation(index, generation)
    }

    /// Withdraws an exposed region.
    pub fn withdraw(&mut self, region: RegionId) -> Option<Region<Box<dyn Memory>>> {
        self.fep.tap_mut().withdrawn(region);
        self.fep.ses_mut().withdraw(region)
    }

    /// Returns the contents of a region.
    pub fn memory(&self, region: RegionId) -> Option<&[u8]> {
        self.fep.ses().memory(region)
    }

    /// Returns the contents of a region for changes.
    pub fn memory_mut(&mut self, region: RegionId) -> Option<&mut [u8]> {
        self.fep.ses_mut().memory_mut(region)
    }

    /// Posts an operation. It ends with a [`Completion`].
    ///
    /// ```
    /// use bytes::Bytes;
    /// use uet_emulator::{Config, Network, Nic};
    /// use uet_model::ses::*;
    /// use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
    ///
    /// let mut net = Network::new(7);
    /// let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    /// let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    /// let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
    /// let region = Region { key: Key(7), base: 0, access: Access::ALL, data: 41u64.to_le_bytes().to_vec() };
    /// let region = net[b].expose(index, region)?;
    /// let peer = Peer::relative([10, 0, 0, 2], 101, 2);
    ///
    /// // A read.
    /// let read = net[a].post(Operation::new(peer, Work::Read { key: Key(7), offset: 0, length: 8 }))?;
    /// assert_eq!(net.operation(a, read).unwrap().unwrap().data, 41u64.to_le_bytes()[..]);
    ///
    /// // An atomic sum, which brings the old value.
    /// let sum = Work::Atomic {
    ///     on: AtomicOn::Memory { key: Key(7), offset: 0 },
    ///     opcode: AtomicOpcode::SUM,
    ///     datatype: AtomicDatatype::UINT64,
    ///     operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
    ///     fetch: true,
    /// };
    /// let sum = net[a].post(Operation::new(peer, sum))?;
    /// assert_eq!(net.operation(a, sum).unwrap().unwrap().data, 41u64.to_le_bytes()[..]);
    /// assert_eq!(net[b].memory(region), Some(&42u64.to_le_bytes()[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn post(&mut self, operation: Operation) -> Result<OperationId, PostError> {
        self.fep.ses_mut().post(operation)
    }

    /// Aborts an operation; returns whether it was still active.
    pub fn abort(&mut self, operation: OperationId) -> bool {
        self.fep.ses_mut().abort(operation)
    }

    /// Posts a receive at an index. Opens the index if no endpoint has it.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use uet_emulator::{Config, Network, Nic};
    /// use uet_model::ses::*;
    ///
    /// let mut net = Network::new(7);
    /// let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    /// let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    /// let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
    /// let next = net[b].receive(index, Receive::new(4096))?;
    /// let tagged = net[b].receive(index, Receive::tagged(4096, 0x7a))?;
    ///
    /// let peer = Peer::relative([10, 0, 0, 2], 101, 2);
    /// net[a].post(Operation::new(peer, Work::Send { tag: Some(0x7a), data: Bytes::from_static(b"tagged") }))?;
    /// net[a].post(Operation::new(peer, Work::Send { tag: None, data: Bytes::from_static(b"plain") }))?;
    /// assert_eq!(net.received(b, tagged).unwrap().data, "tagged");
    /// assert_eq!(net.received(b, next).unwrap().data, "plain");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn receive(&mut self, index: ResourceIndex, mut receive: Receive) -> Result<ReceiveId, AddressError> {
        self.open_index(index)?;
        self.fep.tap().receive(&mut receive);
        self.fep.ses_mut().post_receive(index, receive)
    }

    /// Posts a receive into the caller's memory, as [`Ses::post_receive_into`](uet_model::ses::Ses::post_receive_into)
    /// does. Opens the index if no endpoint has it.
    pub fn receive_into(
        &mut self,
        index: ResourceIndex,
        mut receive: Receive,
        memory: impl Memory + 'static,
    ) -> Result<ReceiveId, AddressError> {
        self.open_index(index)?;
        self.fep.tap().receive(&mut receive);
        self.fep.ses_mut().post_receive_into(index, receive, memory)
    }

    /// Cancels a receive that no send has filled; returns whether there was one. It completes with CANCELLED, and so does
    /// a send that has matched it.
    pub fn cancel_receive(&mut self, index: ResourceIndex, receive: ReceiveId) -> bool {
        self.fep.ses_mut().cancel_receive(index, receive)
    }

    /// Drops the messages of an index that no receive has taken.
    pub fn discard_unexpected(&mut self, index: ResourceIndex) -> Result<(), AddressError> {
        self.fep.ses_mut().discard_unexpected(index)
    }

    /// Returns whether a send has matched this receive and not filled it yet.
    pub fn has_matched(&self, receive: ReceiveId) -> bool {
        self.fep.ses().has_matched(receive)
    }

    /// Returns the first unexpected send that a receive would take, once it has arrived completely.
    pub fn peek_unexpected(&mut self, index: ResourceIndex, receive: &Receive) -> Option<Unexpected> {
        self.fep.ses_mut().peek_unexpected(index, receive)
    }

    /// Returns the next completed operation or receive.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front().or_else(|| self.next_completion())
    }

    /// Returns the next completion that `takes` accepts. The others stay in order.
    pub fn poll_completion_if(&mut self, takes: impl Fn(&Completion) -> bool) -> Option<Completion> {
        while let Some(completion) = self.fep.ses_mut().poll_completion_if(&takes) {
            let told = self.fep.tap().completion(completion);
            if told.is_some() {
                return told;
            }
        }
        None
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.poll_completion_if(|_| true)
    }

    /// Returns the completion of an operation, if it has completed. Other completions stay.
    pub fn operation(&mut self, operation: OperationId) -> Option<Result<Done, OperationError>> {
        let ended = |completion: &Completion| matches!(completion, Completion::Operation { id, .. } if *id == operation);
        match self.take_completion(ended)? {
            Completion::Operation { result, .. } => Some(result),
            _ => None,
        }
    }

    /// Returns the result of a receive, once a send has matched it. Other completions stay.
    pub fn received(&mut self, receive: ReceiveId) -> Option<Received> {
        let met =
            |completion: &Completion| matches!(completion, Completion::Received(got) if got.id == receive);
        match self.take_completion(met)? {
            Completion::Received(received) => Some(received),
            _ => None,
        }
    }

    fn take_completion(&mut self, wanted: impl FnMut(&Completion) -> bool) -> Option<Completion> {
        while let Some(completion) = self.next_completion() {
            self.completions.push_back(completion);
        }
        let place = self.completions.iter().position(wanted)?;
        self.completions.remove(place)
    }

    /// Returns the next decision of the model, for tracing.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.fep.poll_event()
    }

    /// Closes the context of a route once it is idle; returns whether there is one.
    pub fn close(&mut self, now: Time, route: &Route) -> bool {
        let context = self.fep.pds().context_of(route);
        if let Some(context) = context {
            self.close_context(now, context);
        }
        context.is_some()
    }

    /// Closes a context once it is idle. For one that the peer opened, requests that from the peer.
    pub fn close_context(&mut self, now: Time, context: PdcHandle) {
        self.fep.pds_mut().close(now, context);
    }

    /// Asks a peer to close the contexts that it opened with this mode and traffic class; returns whether there is one.
    /// The job of the route has no effect: a target does not know it.
    pub fn request_close(&mut self, now: Time, route: &Route) -> bool {
        self.fep.pds_mut().request_close(now, route.destination, route.mode, route.class)
    }

    /// Returns the address of the peer of each context, including closed ones that are still remembered.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.fep.pds().peers()
    }

    /// Returns the counters.
    pub fn counted(&self) -> Counted {
        let dropped = Dropped::ALL.iter().map(|why| (why.to_string(), self.fep.pds().dropped(*why)));
        let dropped = dropped.chain(self.security.counts());
        let dropped = dropped.chain(self.dropped.iter().map(|(why, count)| ((*why).into(), *count)));
        Counted {
            received: self.received,
            sent: self.sent,
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
            pdcs: self.fep.pds().contexts() as u64,
            held: self.fep.pds().held() as u64,
        }
    }

    // ---- For the driver.

    /// Handles an arriving packet.
    pub fn handle_input(&mut self, now: Time, packet: Packet) {
        self.received += 1;
        for packet in self.fep.tap_mut().arrive(now, packet) {
            self.fep.handle_input(now, packet);
        }
        self.take_handed(now);
    }

    /// Handles packets that faults inject.
    fn take_handed(&mut self, now: Time) {
        for handed in self.fep.tap_mut().poll_handed(now) {
            match handed {
                Handed::Packet(packet) => self.fep.handle_input(now, packet),
                Handed::Indication(indication) => self.fep.ses_mut().handle(indication),
            }
        }
    }

    /// Handles a packet that was damaged in transit, as its CRC or its outer headers show. Counts and drops it.
    pub fn handle_damaged(&mut self, now: Time, packet: Packet, why: &'static str) {
        if self.fep.tap().believes(&packet) {
            return self.handle_input(now, packet);
        }
        self.received += 1;
        self.count_dropped(why);
    }

    /// Handles a packet as a link has read it. `classes` are those of the link, for a [fault] that reads them
    /// differently.
    pub fn handle_framed(&mut self, now: Time, framed: Framed, classes: &Classes) {
        let Framed { mut packet, damage, ipv6_start, .. } = framed;
        if let Some(class) = ipv6_start.and_then(|start| self.fep.tap().read_class(start)) {
            classes.read(&mut packet, class);
        }
        match damage {
            None => self.handle_input(now, packet),
            Some(why) => self.handle_damaged(now, packet, why),
        }
    }

    /// Handles a packet from a network.
    pub(crate) fn handle_carried(&mut self, now: Time, packet: Packet) {
        let Some(outer) = self.frames.take() else { return self.handle_input(now, packet) };
        let label = u32::from(packet.entropy).wrapping_mul(LABEL);
        let start = ipv6_start(outer.classes.tos(&packet), label);
        // A packet too long for a frame does not arrive.
        if let Ok(framed) = carried(packet, None, Some(start), &outer) {
            self.handle_framed(now, framed, &outer.classes);
        }
        self.frames = Some(outer);
    }

    /// Returns the first four bytes of the IPv6 header of an outgoing packet, if a [fault] makes them wrong.
    pub fn ipv6_start(&self, packet: &Packet, classes: &Classes) -> Option<u32> {
        self.fep.tap().written_class(classes.tos(packet)).filter(|_| packet.dst.is_ipv6())
    }

    /// Returns the bit that a [fault] changes in a packet after its CRC has been computed, counted from its first bit.
    pub fn corrupted_bit(&self, packet: &Packet) -> Option<usize> {
        self.fep.tap().corrupted_bit(packet)
    }

    /// Counts a packet that was lost between the NIC and its link.
    pub fn count_dropped(&mut self, why: &'static str) {
        *self.dropped.entry(why).or_default() += 1;
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        loop {
            if let Some(packet) = self.fep.tap_mut().poll_leaving(now) {
                self.sent += 1;
                return Some(packet);
            }
            let packet = self.fep.poll_transmit(now)?;
            self.fep.tap_mut().leave(now, packet);
            self.take_handed(now);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.fep.poll_timeout(), self.fep.tap().poll_timeout()].into_iter().flatten().min()
    }

    /// Runs due timers.
    pub fn handle_timeout(&mut self, now: Time) {
        self.fep.handle_timeout(now);
        self.take_handed(now);
    }
}

fn start(
    address: IpAddr,
    second_address: Option<IpAddr>,
    config: &Config,
    faults: Running,
    starts: u64,
) -> Result<Fep<Running>, ConfigError> {
    let seed = config.seed.wrapping_add(starts);
    let config = faults.config(config);
    let fep = Fep::new(config.pds()?, config.ses.clone(), address, seed)?.with_tap(faults);
    Ok(match second_address {
        Some(second) => fep.with_second_address(second),
        None => fep,
    })
}
