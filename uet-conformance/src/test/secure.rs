//! The suite seals each of its packets and opens each packet of the device, with the codec's primitives and
//! none of the model.

use super::Test;
use crate::shield::{DEVICE_SSI, SUITE_SSI, refused, told};
use crate::{DomainKind, Outcome, Pdc, Shield, Sighting, Stop, Wire};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::{InstallKeys, KeyMode, SecureDomain};
use uet_wire::catalogue::{
    TSS_AN_002, TSS_CLEAR_002, TSS_CTR_001, TSS_EPOCH_002, TSS_HDR_001, TSS_HDR_003, TSS_ICV_001,
};
use uet_wire::pds::Pds;
use uet_wire::tss::{Domain, ICV, Mode, Outer, Tss, TssError};
use uet_wire::{Psn, Uet, UetBuf};

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
        let sdi = 1 + self.rng().u32(..0xff_fffe);
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
        self.suite.secure(Shield {
            domain,
            an: installed.an == 1,
            epoch: installed.epoch,
            installed,
            others: Vec::new(),
            beside: None,
            secrets: [Some(secret), None],
            counter: if upper { 1 << 47 } else { 0 },
            ssi: ssi.filter(|_| kind.ssi),
            seen: Vec::new(),
            ordered: BTreeSet::new(),
            told: Vec::new(),
            clear: 0,
            active: true,
            permits_clear: false,
            opens: TSS_ICV_001,
        });
        self.install()
    }

    /// Skips a link that does not know what is authenticated.
    fn is_testable(&mut self) -> Outcome {
        let probe = Wire::new(self.own_address()?, self.device_address(), 0, Vec::new());
        self.session.outer(&probe, 64, true).ok_or_else(no_outer)?;
        self.make_patient()
    }

    /// Returns whether the suite has made the device a member of a secure domain.
    pub(crate) fn is_secure(&self) -> bool {
        self.suite.shield().is_some()
    }

    /// Returns the shield. Stops a script that has not called [`secure`](Self::secure).
    pub fn shield(&mut self) -> Result<&mut Shield, Stop> {
        self.suite.shield_mut().ok_or_else(|| Stop::Inconclusive("the rule has no secure domain".into()))
    }

    /// Returns a fresh secret.
    pub fn fresh_secret(&mut self) -> [u8; 32] {
        let mut secret = [0; 32];
        self.rng().fill(&mut secret);
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
        shield.ordered.insert((shield.installed.an == 1, shield.installed.epoch));
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
    pub(super) fn shielded(&mut self, wire: &Wire) -> Result<Wire, Stop> {
        match self.suite.shield() {
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
        let mut outer = self.session.outer(wire, wire.bytes.len(), true).ok_or_else(no_outer)?;
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
        let active = self.suite.shield_mut().map(|shield| core::mem::replace(&mut shield.active, false));
        let sent = self.send_wire(wire);
        if let (Some(active), Some(shield)) = (active, self.suite.shield_mut()) {
            shield.active = active;
        }
        sent
    }

    /// Opens a packet of the device, and judges the security of all that it sends.
    pub(super) fn unshielded(&mut self, wire: Wire) -> Wire {
        let Some(shield) = self.suite.shield_mut() else { return wire };
        let number = self.judge.packets();
        if shield.is_of_other_domain(&wire) {
            // The suite opens the packets of two domains at most.
            if !shield.switch() {
                return wire;
            }
            let opened = self.unshielded(wire);
            if let Some(shield) = self.suite.shield_mut() {
                shield.switch();
            }
            return opened;
        }
        let opened = shield.unsealed(&wire, self.session.outer(&wire, wire.bytes.len(), false));
        match opened {
            Ok((sighting, bytes)) => {
                let sighting = Sighting { number, ..sighting };
                let same = |old: &&Sighting| {
                    (old.an, old.epoch, old.counter, old.ssi)
                        == (sighting.an, sighting.epoch, sighting.counter, sighting.ssi)
                };
                let again = shield.seen.iter().find(same).map(|old| old.number);
                let proper = sighting.ssi.is_some() == shield.domain.ssi;
                let own = shield.installed.own_ssi.filter(|_| shield.installed.mode != KeyMode::Server);
                let foreign = own.filter(|own| sighting.ssi.is_some_and(|ssi| ssi != *own));
                let key = shield.ordered.iter().any(|(an, _)| *an == sighting.an);
                let epoch = shield.ordered.contains(&(sighting.an, sighting.epoch));
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
                if let Some(own) = foreign {
                    let seen = format!("{:#x}", sighting.ssi.unwrap_or(0));
                    self.holds(
                        TSS_HDR_001,
                        &format!("the device's source identifier is {own:#x}"),
                        false,
                        seen,
                    );
                }
                let an = u8::from(sighting.an);
                if sighting.reserved {
                    self.holds(TSS_HDR_003, "the reserved bit of the security header is 0", false, "1");
                }
                if !key {
                    self.holds(TSS_AN_002, "the device sends with the key that it was told to", false, an);
                } else if !epoch {
                    let seen = format!("epoch {} of key {an}", sighting.epoch);
                    self.holds(
                        TSS_EPOCH_002,
                        "the device sends in the epoch that it was told to",
                        false,
                        seen,
                    );
                }
                if let Some(psn) = told {
                    self.note(format!("the next ACK tells {psn} as the next Start_PSN"));
                }
                Wire { bytes, ..wire }
            }
            Err(None) if shield.permits_clear => wire,
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
}

fn is_nack_without_context(bytes: &[u8]) -> bool {
    match Uet::parse_lax(bytes).0.pds {
        Some(Pds::Nack(nack)) => !nack.spdcid().is_valid(),
        _ => false,
    }
}

/// The flag of an ACK that tells a Start_PSN.
const TELLS: u8 = 0x40;

impl Test<'_> {
    /// Sends an ACK without a response that tells a Start_PSN, as a target does when a context closes.
    pub(crate) fn send_telling(&mut self, pdc: &Pdc, ack: &UetBuf, start: Psn) -> Outcome {
        let mut bytes = ack.to_bytes().to_vec();
        if let Some(flags) = bytes.get_mut(1) {
            *flags |= TELLS;
        }
        bytes.extend(start.0.to_be_bytes());
        self.send_wire(&pdc.raw(&bytes))
    }
}

/// Takes the Start_PSN off an ACK that tells one: flag bit 6, and 4 bytes after the header. Public sources
/// disagree about it, so that the rules about reserved bits and lengths do not judge it.
fn take_expected_psn(bytes: &mut Vec<u8>) -> Option<Psn> {
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

fn no_outer() -> Stop {
    Stop::Skipped("the link does not know its outer headers, which are authenticated".into())
}
