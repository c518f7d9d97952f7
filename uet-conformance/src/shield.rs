//! The suite's part in a secure domain of the device (section 3.7). It seals every packet of the suite and
//! opens every packet of the device, with the codec's primitives and none of the model.

use crate::axis::axis;
use crate::needs::TSS;
use crate::{Axis, Outcome, Stop, Test, Wire};
use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_control::{InstallKeys, KeyMode, Secret, Secrets, SecureDomain};
use uet_wire::catalogue::{Requirement, TSS_CLEAR_002, TSS_CTR_001, TSS_HDR_001, TSS_ICV_001};
use uet_wire::pds::Pds;
use uet_wire::tss::{
    Direction, Domain, DomainKey, ICV, Mode, Outer, Tss, TssBuf, TssError, TssLong, TssShort,
};
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

const fn kind(mode: KeyMode, ssi: bool) -> DomainKind {
    DomainKind { mode, ssi }
}

/// The source identifiers of the suite and of the device.
const SUITE_SSI: u32 = 0x5017_e000;
const DEVICE_SSI: u32 = 0xdec1_ce00;

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
    /// The secrets of the domain, by association number. The device keeps its own until [`Test::install`].
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
    /// The Start_PSNs that ACKs of the device told.
    pub told: Vec<Psn>,
    /// The number of packets that the device has sent in the clear.
    pub clear: usize,
    /// False to pass packets of the suite as they are.
    pub active: bool,
    /// The requirement that a packet of the device breaks if it does not open.
    pub opens: &'static Requirement,
}

impl Shield {
    /// Returns the length of the security header.
    pub fn header_length(&self) -> usize {
        if self.domain.ssi { 16 } else { 12 }
    }

    /// Returns the secret of an association number.
    fn secret(&self, an: bool) -> Option<DomainKey> {
        DomainKey::new(&self.secrets[usize::from(an)]?).ok()
    }

    /// Returns the header of a packet with this source identifier, association number, epoch and counter.
    fn header(&self, ssi: Option<u32>, an: bool, epoch: u16, counter: u64) -> Result<TssBuf, Stop> {
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

fn refused(error: TssError) -> Stop {
    Stop::Inconclusive(format!("the rule builds a packet that cannot be protected: {error}"))
}

/// Returns a secret as the control channel carries it.
pub(crate) fn told(secret: &[u8]) -> Secrets {
    Secrets::One(Secret(secret.iter().map(|byte| format!("{byte:02x}")).collect()))
}

impl Test<'_> {
    /// Makes the device a member of a secure domain with a fresh key. From now on, the suite protects all its
    /// packets.
    pub fn secure(&mut self, kind: DomainKind) -> Outcome {
        self.secure_as(kind, |_| {})
    }

    /// Does the same with other settings of the domain.
    pub fn secure_as(&mut self, kind: DomainKind, change: impl FnOnce(&mut SecureDomain)) -> Outcome {
        // Over IPv6, only a cluster works without source identifiers.
        let ssi = kind.ssi || kind.mode != KeyMode::Cluster && self.own_address()?.is_ipv6();
        let kind = DomainKind { ssi, ..kind };
        self.is_testable()?;
        let secret = self.fresh_secret();
        let sdi = 1 + self.rng.u32(..0xff_fffe);
        let client = matches!(kind.mode, KeyMode::Client | KeyMode::Server).then_some(SUITE_SSI);
        let device = if kind.mode == KeyMode::Client { Some(DEVICE_SSI) } else { client };
        let mut installed = SecureDomain {
            sdi,
            mode: kind.mode,
            ssi: kind.ssi,
            rekey_mask: 0,
            rekey_shift: 0,
            confidentiality_offset: None,
            ipv6_ssi_context: Default::default(),
            keys: BTreeMap::new(),
            an: 0,
            epoch: 0,
            own_ssi: device.or(Some(DEVICE_SSI)).filter(|_| kind.ssi),
            counter: None,
        };
        change(&mut installed);
        let mode = match kind.mode {
            KeyMode::Direct => Mode::Direct,
            KeyMode::Cluster => Mode::Cluster,
            // The other end of the device.
            KeyMode::Client | KeyMode::Server => Mode::Server,
        };
        let domain = Domain {
            ssi: installed.ssi,
            rekey_mask: installed.rekey_mask,
            rekey_shift: installed.rekey_shift,
            confidentiality_offset: installed.confidentiality_offset,
            ..Domain::new(sdi, mode)
        };
        let ssi = match kind.mode {
            KeyMode::Client => Some(DEVICE_SSI),
            _ => Some(SUITE_SSI),
        };
        // A server counts from the upper half, because both directions share key and source identifier.
        let upper = kind.ssi && kind.mode == KeyMode::Client;
        self.shield = Some(Box::new(Shield {
            domain,
            an: installed.an == 1,
            epoch: installed.epoch,
            installed,
            others: Vec::new(),
            secrets: [Some(secret), None],
            counter: if upper { 1 << 47 } else { 0 },
            ssi: ssi.filter(|_| kind.ssi),
            seen: Vec::new(),
            told: Vec::new(),
            clear: 0,
            active: true,
            opens: TSS_ICV_001,
        }));
        self.install()
    }

    /// Skips a link that does not know what is authenticated. Gives the device time: during a rule, an idle
    /// context must not close, and a lost packet must come again.
    fn is_testable(&mut self) -> Outcome {
        let probe = Wire::new(self.own_address()?, self.device_address(), 0, Vec::new());
        self.dut.outer(&probe, 64, true).ok_or_else(no_outer)?;
        if self.parameter("idle_time") > 0 {
            self.configure("idle_time", 0)?;
        }
        for retries in ["max_rto_retx_cnt", "max_nack_retx_cnt"] {
            if self.parameter(retries) < 3 {
                self.configure(retries, 5)?;
            }
        }
        Ok(())
    }

    /// Returns the shield. Stops a script that has not called [`secure`](Self::secure).
    pub fn shield(&mut self) -> Result<&mut Shield, Stop> {
        self.shield.as_deref_mut().ok_or_else(|| Stop::Inconclusive("the rule has no secure domain".into()))
    }

    /// Returns a fresh secret.
    pub fn fresh_secret(&mut self) -> [u8; 32] {
        let mut secret = [0; 32];
        self.rng.fill(&mut secret);
        secret
    }

    /// Installs the keys of the shield on the device, as its settings name them.
    pub fn install(&mut self) -> Outcome {
        let (local, device) = (self.own_address()?, self.device_address());
        let shield = self.shield()?;
        let mut keys = BTreeMap::new();
        for (an, name) in [(false, "0"), (true, "1")] {
            let Some(secret) = shield.secrets[usize::from(an)] else { continue };
            let held = match shield.installed.mode {
                KeyMode::Client => told(&shield.client_bytes(an, local, device)?),
                _ => told(&secret),
            };
            keys.insert(name.to_owned(), held);
        }
        shield.installed.keys = keys;
        let mut domains = vec![shield.installed.clone()];
        domains.extend(shield.others.iter().cloned());
        self.call(InstallKeys { domains }).map(|_| ())
    }

    /// Returns the suite's first address, as [`initiate`](Self::initiate) uses it.
    fn own_address(&mut self) -> Result<IpAddr, Stop> {
        self.address(0)
    }

    fn device_address(&mut self) -> IpAddr {
        self.initiate().to
    }

    /// Returns a packet as it goes on the link: protected, if the device is in a secure domain.
    pub(crate) fn shielded(&mut self, wire: &Wire) -> Result<Wire, Stop> {
        match self.shield.as_deref() {
            Some(shield) if shield.active => self.sealed(wire),
            _ => Ok(wire.clone()),
        }
    }

    /// Protects a packet with the next counter.
    pub fn sealed(&mut self, wire: &Wire) -> Result<Wire, Stop> {
        self.sealed_over(wire, |_| {})
    }

    /// Protects a packet with other outer headers than those that it gets.
    pub fn sealed_over(&mut self, wire: &Wire, change: impl FnOnce(&mut Outer)) -> Result<Wire, Stop> {
        let mut sealed = self.unsealed_wire(wire)?;
        self.seal_over(&mut sealed, change)?;
        Ok(sealed)
    }

    /// Puts the security header with the next counter in front of a packet, and room for the ICV behind it.
    pub fn unsealed_wire(&mut self, wire: &Wire) -> Result<Wire, Stop> {
        let shield = self.shield()?;
        let header = shield.header(shield.ssi, shield.an, shield.epoch, shield.counter)?;
        shield.counter += 1;
        let bytes = [header.view().bytes(), &wire.bytes, &[0; ICV]].concat();
        Ok(Wire { bytes, ..wire.clone() })
    }

    /// Seals a packet that already has its security header and room for the ICV.
    pub fn seal(&mut self, wire: &mut Wire) -> Outcome {
        self.seal_over(wire, |_| {})
    }

    fn seal_over(&mut self, wire: &mut Wire, change: impl FnOnce(&mut Outer)) -> Outcome {
        let mut outer = self.dut.outer(wire, wire.bytes.len(), true).ok_or_else(no_outer)?;
        change(&mut outer);
        let shield = self.shield()?;
        let header = wire.bytes.clone();
        let (tss, _) = Tss::parse(&header).map_err(|_| refused(TssError::TooShort))?;
        let secret = shield
            .secret(tss.head().an())
            .ok_or_else(|| Stop::Inconclusive("there is no such key".into()))?;
        let id = shield.domain.key_id(&outer, &tss, shield.direction(true)).map_err(refused)?;
        let key = id.derive(&secret).map_err(refused)?;
        shield.domain.seal(&key, &outer, &mut wire.bytes).map_err(refused)
    }

    /// Sends a packet that is already protected, or is to go in the clear. The ladder shows it as it is.
    pub fn send_as_it_is(&mut self, wire: &Wire) -> Outcome {
        let active = self.shield.as_deref_mut().map(|shield| core::mem::replace(&mut shield.active, false));
        let sent = self.send_wire(wire);
        if let (Some(active), Some(shield)) = (active, self.shield.as_deref_mut()) {
            shield.active = active;
        }
        sent
    }

    /// Opens a packet of the device, and judges the security of all that it sends.
    pub(crate) fn unshielded(&mut self, wire: Wire) -> Wire {
        if self.shield.is_none() {
            return wire;
        }
        let number = self.packets;
        if self.is_of_other_domain(&wire) {
            return wire;
        }
        let opened = self.unsealed(&wire);
        let Some(shield) = self.shield.as_deref_mut() else { return wire };
        match opened {
            Ok((sighting, bytes)) => {
                let sighting = Sighting { number, ..sighting };
                let same = |old: &&Sighting| {
                    (old.an, old.epoch, old.counter, old.ssi)
                        == (sighting.an, sighting.epoch, sighting.counter, sighting.ssi)
                };
                let again = shield.seen.iter().find(same).map(|old| old.number);
                let proper = sighting.ssi.is_some() == shield.domain.ssi;
                shield.seen.push(sighting);
                let mut bytes = bytes;
                let told = take_expected_psn(&mut bytes);
                shield.told.extend(told);
                if let Some(old) = again {
                    let statement = "each packet has a counter of its own";
                    self.holds(
                        TSS_CTR_001,
                        statement,
                        false,
                        format!("{:#x} of packet {old} again", sighting.counter),
                    );
                }
                if !proper {
                    let seen = if sighting.ssi.is_some() { "one" } else { "none" };
                    self.holds(TSS_HDR_001, "a source identifier if the domain uses them", false, seen);
                }
                if let Some(psn) = told {
                    self.note(format!("the next ACK tells {psn} as the next Start_PSN"));
                }
                Wire { bytes, ..wire }
            }
            // Sources disagree about a NACK of an endpoint without a context.
            Err(None) if is_nack_without_context(&wire.bytes) => wire,
            Err(None) => {
                shield.clear += 1;
                self.holds(TSS_CLEAR_002, "the device protects each packet", false, "a packet in the clear");
                wire
            }
            Err(Some(why)) => {
                let opens = shield.opens;
                self.holds(opens, "the packet opens under the key of its domain", false, why);
                wire
            }
        }
    }

    /// Returns whether a packet names another domain of the device, whose packets the suite does not read.
    fn is_of_other_domain(&self, wire: &Wire) -> bool {
        let others = self.shield.as_deref().map_or(&[][..], |shield| &shield.others);
        let sdi = Uet::parse_lax(&wire.bytes).0.tss.map(|tss| tss.head().sdi());
        others.iter().any(|other| Some(other.sdi) == sdi)
    }

    /// Returns the security header and the bytes within. The error is the reason, or `None` for a packet in
    /// the clear.
    fn unsealed(&self, wire: &Wire) -> Result<(Sighting, Vec<u8>), Option<String>> {
        let Some(shield) = self.shield.as_deref() else { return Err(None) };
        if wire.bytes.first().is_none_or(|first| first >> 3 != 1) {
            return Err(None);
        }
        let said = |error: TssError| Some(error.to_string());
        let outer = self.dut.outer(wire, wire.bytes.len(), false);
        let outer = outer.ok_or_else(|| Some("the link does not know its outer headers".to_owned()))?;
        let (tss, _) = Tss::parse(&wire.bytes).map_err(|_| said(TssError::TooShort))?;
        let (head, tsc) = (tss.head(), tss.tsc());
        if head.sdi() != shield.domain.sdi {
            return Err(Some(format!("it names the domain {:#08x}", head.sdi())));
        }
        let secret =
            shield.secret(head.an()).ok_or_else(|| Some(format!("AN {} has no key", u8::from(head.an()))))?;
        let id = shield.domain.key_id(&outer, &tss, shield.direction(false)).map_err(said)?;
        let key = id.derive(&secret).map_err(said)?;
        let mut bytes = wire.bytes.clone();
        shield.domain.open(&key, &outer, &mut bytes).map_err(said)?;
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

fn is_nack_without_context(bytes: &[u8]) -> bool {
    match Uet::parse_lax(bytes).0.pds {
        Some(Pds::Nack(nack)) => !nack.spdcid().is_valid(),
        _ => false,
    }
}

/// Takes the Start_PSN off an ACK that tells one: flag bit 6, and 4 bytes after the header. Public sources
/// disagree about it, so that the rules about reserved bits and lengths do not judge it.
fn take_expected_psn(bytes: &mut Vec<u8>) -> Option<Psn> {
    const TELLS: u8 = 0x40;
    let flags = *bytes.get(1)?;
    let header = match Uet::parse_lax(bytes).0.pds? {
        Pds::Ack(header) if flags & TELLS != 0 => header.bytes().len(),
        _ => return None,
    };
    let psn = bytes.get(header..)?.try_into().ok().map(u32::from_be_bytes)?;
    bytes.truncate(header);
    *bytes.get_mut(1)? &= !TELLS;
    Some(Psn(psn))
}

impl Shield {
    /// Returns the direction of a packet as the domain sees it. The suite derives as a server does, also
    /// where the device is the server and the suite its client: then the client's packets are those that come
    /// in.
    fn direction(&self, leaving: bool) -> Direction {
        let suite_is_client = self.installed.mode == KeyMode::Server;
        if leaving == suite_is_client { Direction::Incoming } else { Direction::Outgoing }
    }

    /// Returns the key and the IV mask of the device as a client of the suite.
    fn client_bytes(&self, an: bool, local: IpAddr, device: IpAddr) -> Result<Vec<u8>, Stop> {
        let secret = self.secret(an).ok_or_else(|| Stop::Inconclusive("there is no such key".into()))?;
        let ssi = Some(DEVICE_SSI).filter(|_| self.domain.ssi);
        let header = self.header(ssi, an, self.installed.epoch, 0)?;
        let (tss, _) = Tss::parse(header.view().bytes()).map_err(|_| refused(TssError::TooShort))?;
        let outer = uet_wire::tss::Outer::native(device, local, 0);
        let id = self.domain.key_id(&outer, &tss, Direction::Incoming).map_err(refused)?;
        Ok(id.client_bytes(&secret).map_err(refused)?.to_vec())
    }
}

fn no_outer() -> Stop {
    Stop::Skipped("the link does not know its outer headers, which are authenticated".into())
}
