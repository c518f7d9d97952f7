use super::SettingsError;
use super::counters::{Counter, Counters};
use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_wire::Psn;
use uet_wire::tss::{Domain, DomainKey, Mode};

/// The first counter of the upper half.
const UPPER_HALF: u64 = 1 << 47;

/// The last counter of 48 bits.
const LAST: u64 = (1 << 48) - 1;

/// A key in use.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) key: DomainKey,
    /// The current epoch of this key.
    pub(super) epoch: u16,
    counter: Counter,
}

/// An endpoint's part in a secure domain.
#[derive(Clone, Debug)]
pub struct Member {
    domain: Domain,
    /// The keys, by association number.
    slots: [Option<Slot>; 2],
    /// The association number for sending.
    pub current_an: bool,
    /// False to drop all packets of the domain.
    pub enabled: bool,
    /// The own source identifier. At a server, that of any client without an entry in `clients`.
    ssi: Option<u32>,
    /// At a server: the source identifier of each client.
    clients: BTreeMap<IpAddr, u32>,
    counters: Counters,
    counter_base: u64,
    fatal_threshold: u64,
    /// The number of wrong ICVs.
    pub(super) failures: u32,
    /// The Start_PSN for contexts that this endpoint opens; `None` for a random one.
    pub ini_start_psn: Option<Psn>,
    /// The lowest Start_PSN that this endpoint accepts.
    pub(super) tgt_start_psn: Psn,
}

impl Member {
    /// Returns a member without keys. Its keys take their packet counters from `counters`.
    pub fn new(domain: Domain, counters: &Counters) -> Result<Self, SettingsError> {
        domain.check()?;
        let counter_base = if domain.mode == Mode::Server { UPPER_HALF } else { 0 };
        Ok(Member {
            domain,
            slots: [None, None],
            current_an: false,
            enabled: true,
            ssi: None,
            clients: BTreeMap::new(),
            counters: counters.clone(),
            counter_base,
            fatal_threshold: if domain.mode == Mode::Client { UPPER_HALF - 1 } else { LAST },
            failures: 0,
            ini_start_psn: None,
            tgt_start_psn: Psn(0),
        })
    }

    /// Returns the settings that all members share.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Sets the own source identifier.
    pub fn with_ssi(self, ssi: u32) -> Result<Self, SettingsError> {
        match self.domain.ssi {
            true => Ok(Member { ssi: Some(ssi), ..self }),
            false => Err(SettingsError::UnexpectedSsi),
        }
    }

    /// Tells a server the source identifier of a client, for contexts that the server opens.
    pub fn set_client(&mut self, client: IpAddr, ssi: u32) {
        self.clients.insert(client, ssi);
    }

    /// Sets the half of the counters for keys that are installed from now on. Client and server share a key, and can share
    /// source identifier or address. So each takes a half of its own: one starts at 0, and the other one at 2^47.
    pub fn with_counter_base(self, base: u64) -> Result<Self, SettingsError> {
        if ![0, UPPER_HALF].contains(&base) {
            return Err(SettingsError::CounterBase);
        }
        let fatal_threshold = if base == 0 { UPPER_HALF - 1 } else { LAST };
        Ok(Member { counter_base: base, fatal_threshold, ..self })
    }

    /// Sets the counter at which nothing more is sent under a key.
    pub fn with_fatal_threshold(self, threshold: u64) -> Self {
        Member { fatal_threshold: threshold.min(self.fatal_threshold), ..self }
    }

    /// Installs a key. If its counters know it in this epoch, it continues there.
    pub fn install(&mut self, an: bool, key: DomainKey, epoch: u16) -> Result<(), SettingsError> {
        if key.is_client() != (self.domain.mode == Mode::Client) {
            return Err(SettingsError::KeyKind);
        }
        let counter = self.counters.of(&key, epoch, self.counter_base)?;
        self.slots[usize::from(an)] = Some(Slot { key, epoch, counter });
        Ok(())
    }

    /// Removes a key.
    pub fn remove(&mut self, an: bool) {
        self.slots[usize::from(an)] = None;
    }

    /// Sets the epoch of a key. The counter starts anew if the epoch is new.
    pub fn set_epoch(&mut self, an: bool, epoch: u16) -> Result<(), SettingsError> {
        match self.slots[usize::from(an)].take() {
            Some(Slot { key, .. }) => self.install(an, key, epoch),
            None => Ok(()),
        }
    }

    /// Continues at this counter under a key. Does nothing if the key has passed it.
    pub fn skip_to_counter(&mut self, an: bool, next: u64) {
        if let Some(slot) = self.slot(an) {
            slot.counter.skip_to(next);
        }
    }

    /// Continues at this counter under a key even if IVs repeat, as a faulty device does.
    pub fn set_counter(&mut self, an: bool, next: u64) {
        if let Some(slot) = self.slot(an) {
            slot.counter.set(next);
        }
    }

    /// Takes over the Start_PSNs of the same domain before a change of its keys.
    pub fn inherit(&mut self, before: &Member) {
        self.tgt_start_psn = before.tgt_start_psn;
        self.ini_start_psn = self.ini_start_psn.or(before.ini_start_psn);
    }

    /// Returns the counter of the next packet under a key.
    pub fn counter(&self, an: bool) -> Option<u64> {
        self.slot(an).map(|slot| slot.counter.next())
    }

    pub(super) fn slot(&self, an: bool) -> Option<&Slot> {
        self.slots[usize::from(an)].as_ref()
    }

    /// Takes a counter of the current key: the key's epoch and the counter. `None` without a key, and an error at the
    /// limit.
    pub(super) fn take_counter(&self) -> Option<Result<(u16, u64), ()>> {
        let slot = self.slot(self.current_an)?;
        let counter = slot.counter.take(self.fatal_threshold);
        Some(counter.map(|counter| (slot.epoch, counter)).ok_or(()))
    }

    /// Returns the source identifier in the packets of a peer, if it is known before the first one. In client-server
    /// domains both directions carry the client's.
    pub(super) fn ssi_of_peer(&self, peer: IpAddr) -> Option<u32> {
        match self.domain.mode {
            Mode::Client => self.ssi,
            Mode::Server => self.clients.get(&peer).copied().or(self.ssi),
            Mode::Direct | Mode::Cluster => None,
        }
    }

    /// Returns the source identifier of packets to a peer whose own packets carry this one.
    pub(super) fn ssi_towards(&self, peer: Option<u32>) -> Option<u32> {
        match (self.domain.ssi, self.domain.mode) {
            (false, _) => None,
            (true, Mode::Server) => peer,
            (true, _) => self.ssi,
        }
    }
}
