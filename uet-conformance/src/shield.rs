//! The suite's part in a secure domain of the device (section 3.7): keys, counters, and what the device
//! showed.

use crate::axis::axis;
use crate::needs::TSS;
use crate::{Axis, Stop, Wire};
use core::net::IpAddr;
use std::collections::BTreeSet;
use uet_control::{KeyMode, Secret, Secrets, SecureDomain};
use uet_wire::catalogue::Requirement;
use uet_wire::tss::{Direction, Domain, DomainKey, ICV, Outer, Tss, TssBuf, TssError, TssLong, TssShort};
use uet_wire::{Psn, Uet};

/// The device's part in the domain, and the form of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DomainKind {
    /// The device's mode.
    pub mode: KeyMode,
    /// True if packets carry a source identifier.
    pub ssi: bool,
}

/// The kinds of domains.
pub const SECURED: Axis<DomainKind> = axis("domain").needing(&[
    ("cluster", kind(KeyMode::Cluster, false), &[TSS]),
    ("cluster-ssi", kind(KeyMode::Cluster, true), &[TSS]),
    ("direct", kind(KeyMode::Direct, false), &[TSS]),
    ("direct-ssi", kind(KeyMode::Direct, true), &[TSS]),
    ("server", kind(KeyMode::Server, false), &[TSS]),
    ("server-ssi", kind(KeyMode::Server, true), &[TSS]),
    ("client", kind(KeyMode::Client, false), &[TSS]),
    ("client-ssi", kind(KeyMode::Client, true), &[TSS]),
]);

/// Two of them, for rules that play thousands of packets and ask nothing about keys.
pub const FEW_SECURED: Axis<DomainKind> = axis("domain").needing(&[
    ("cluster", kind(KeyMode::Cluster, false), &[TSS]),
    ("server-ssi", kind(KeyMode::Server, true), &[TSS]),
]);

const fn kind(mode: KeyMode, ssi: bool) -> DomainKind {
    DomainKind { mode, ssi }
}

/// The source identifiers of the suite and of the device.
pub(crate) const SUITE_SSI: u32 = 0x5017_e000;
pub(crate) const DEVICE_SSI: u32 = 0xdec1_ce00;

/// The security header of a packet of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The number of the packet in the ladder.
    pub number: usize,
    /// The association number.
    pub an: bool,
    /// The epoch.
    pub epoch: u16,
    /// The counter.
    pub counter: u64,
    /// The source identifier.
    pub ssi: Option<u32>,
    /// True if the reserved bit of the header is set.
    pub reserved: bool,
}

/// The suite's part in the secure domain of the device.
#[derive(Clone, Debug)]
pub struct Shield {
    /// The domain, as the suite takes part in it.
    pub domain: Domain,
    /// The device's part, as it was installed.
    pub installed: SecureDomain,
    /// Other domains of the device.
    pub others: Vec<SecureDomain>,
    /// The suite's part in one of them, if it opens the packets of that domain too.
    pub beside: Option<Box<Shield>>,
    /// The secrets of the domain, by association number. The device keeps its own until
    /// [`Test::install`](crate::Test::install).
    pub secrets: [Option<[u8; 32]>; 2],
    /// The association number with which the suite seals.
    pub an: bool,
    /// The epoch with which the suite seals.
    pub epoch: u16,
    /// The counter of the suite's next packet. Each address of the suite has the same, and an identity of its
    /// own.
    pub counter: u64,
    /// The source identifier of the suite's packets.
    pub ssi: Option<u32>,
    /// The security headers of the device's packets, in order.
    pub seen: Vec<Sighting>,
    /// The association numbers and epochs with which the device was told to send.
    pub ordered: BTreeSet<(bool, u16)>,
    /// The Start_PSNs that ACKs of the device told.
    pub told: Vec<Psn>,
    /// The number of packets that the device has sent in the clear.
    pub clear: usize,
    /// False to pass packets of the suite as they are.
    pub active: bool,
    /// True if the device may send packets in the clear, since a context without protection is open.
    pub permits_clear: bool,
    /// The requirement that a packet of the device breaks if it does not open.
    pub opens: &'static Requirement,
}

impl Shield {
    /// Acts in the domain beside, and keeps this one there. Returns false if there is none.
    pub(crate) fn switch(&mut self) -> bool {
        let Some(mut other) = self.beside.take() else { return false };
        core::mem::swap(self, &mut *other);
        self.beside = Some(other);
        true
    }

    /// Returns the length of the security header.
    pub fn header_length(&self) -> usize {
        if self.domain.ssi { 16 } else { 12 }
    }

    /// Returns the secret of an association number.
    pub(crate) fn secret(&self, an: bool) -> Option<DomainKey> {
        DomainKey::new(&self.secrets[usize::from(an)]?).ok()
    }

    /// Returns the header of a packet with this source identifier, association number, epoch and counter.
    pub(crate) fn header(
        &self,
        ssi: Option<u32>,
        an: bool,
        epoch: u16,
        counter: u64,
    ) -> Result<TssBuf, Stop> {
        let sdi = self.domain.sdi;
        Ok(match ssi {
            None => TssShort::build()
                .head(|h| h.sdi(sdi).an(an))
                .tsc(|t| t.epoch(epoch).counter(counter))
                .done()?
                .into(),
            Some(ssi) => TssLong::build()
                .head(|h| h.sdi(sdi).an(an))
                .ssi(ssi)
                .tsc(|t| t.epoch(epoch).counter(counter))
                .done()?
                .into(),
        })
    }
}

pub(crate) fn refused(error: TssError) -> Stop {
    Stop::Inconclusive(format!("the rule builds a packet that cannot be protected: {error}"))
}

/// Returns a secret as the control channel carries it.
pub(crate) fn told(secret: &[u8]) -> Secrets {
    Secrets::One(Secret(secret.iter().map(|byte| format!("{byte:02x}")).collect()))
}

impl Shield {
    /// Returns the direction of a packet as the domain sees it. The suite derives as a server does, also
    /// where the device is the server and the suite its client: then the client's packets are those that come
    /// in.
    pub(crate) fn direction(&self, leaving: bool) -> Direction {
        let suite_is_client = self.installed.mode == KeyMode::Server;
        if leaving == suite_is_client { Direction::Incoming } else { Direction::Outgoing }
    }

    /// Returns the key and the IV mask of the device as a client of the suite.
    pub(crate) fn client_bytes(&self, an: bool, local: IpAddr, device: IpAddr) -> Result<Vec<u8>, Stop> {
        let secret = self.secret(an).ok_or_else(|| Stop::Inconclusive("there is no such key".into()))?;
        let ssi = Some(DEVICE_SSI).filter(|_| self.domain.ssi);
        let header = self.header(ssi, an, self.installed.epoch, 0)?;
        let (tss, _) = Tss::parse(header.view().bytes()).map_err(|_| refused(TssError::TooShort))?;
        let outer = uet_wire::tss::Outer::native(device, local, 0);
        let id = self.domain.key_id(&outer, &tss, Direction::Incoming).map_err(refused)?;
        Ok(id.client_bytes(&secret).map_err(refused)?.to_vec())
    }

    /// Returns whether a packet names another domain of the device.
    pub(crate) fn is_of_other_domain(&self, wire: &Wire) -> bool {
        let sdi = Uet::parse_lax(&wire.bytes).0.tss.map(|tss| tss.head().sdi());
        self.others.iter().any(|other| Some(other.sdi) == sdi)
    }

    /// Returns the security header and the bytes within. The error is the reason, or `None` for a packet in
    /// the clear.
    pub(crate) fn unsealed(
        &self,
        wire: &Wire,
        outer: Option<Outer>,
    ) -> Result<(Sighting, Vec<u8>), Option<String>> {
        if wire.bytes.first().is_none_or(|first| first >> 3 != 1) {
            return Err(None);
        }
        let said = |error: TssError| Some(error.to_string());
        let outer = outer.ok_or_else(|| Some("the link does not know its outer headers".to_owned()))?;
        let (tss, _) = Tss::parse(&wire.bytes).map_err(|_| said(TssError::TooShort))?;
        let (head, tsc) = (tss.head(), tss.tsc());
        if head.sdi() != self.domain.sdi {
            return Err(Some(format!("it names the domain {:#08x}", head.sdi())));
        }
        let secret =
            self.secret(head.an()).ok_or_else(|| Some(format!("AN {} has no key", u8::from(head.an()))))?;
        let id = self.domain.key_id(&outer, &tss, self.direction(false)).map_err(said)?;
        let key = id.derive(&secret).map_err(said)?;
        let mut bytes = wire.bytes.clone();
        self.domain.open(&key, &outer, &mut bytes).map_err(said)?;
        let sighting = Sighting {
            number: 0,
            an: head.an(),
            epoch: tsc.epoch(),
            counter: tsc.counter(),
            ssi: tss.ssi(),
            reserved: wire.bytes.first().is_some_and(|first| first & 2 != 0),
        };
        let inner = bytes.get(tss.bytes().len()..bytes.len() - ICV).unwrap_or(&[]).to_vec();
        Ok((sighting, inner))
    }
}
