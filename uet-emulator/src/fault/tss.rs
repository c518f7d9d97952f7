//! Faults in transport security. They act on a protection around the right one, see [`guard`](super::guard).

use super::fields::{Fields, Kinds};
use super::guard::{Hooks, Opened, Right, Sealed, misdirect};
use super::recipe::Recipe;
use super::tap::Tap;
use super::{Fault, fault};
use core::net::IpAddr;
use uet_control::{KeyMode, SecureDomain};
use uet_model::pds::{Association, OpenError, SealError, SecureContext};
use uet_model::{Head, Packet, Priority};
use uet_wire::catalogue::*;
use uet_wire::pds::{Control, Nack};
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::tss::{ICV, OuterLayer};
use uet_wire::{Psn, Uet};

const fn recipe(change: fn(&mut Recipe)) -> Tap {
    Tap::Guard(Hooks { recipe: Some(change), ..Hooks::NONE })
}

const fn install(change: fn(&mut SecureDomain)) -> Tap {
    Tap::Guard(Hooks { install: Some(change), ..Hooks::NONE })
}

const fn seal(hook: fn(&mut Right<'_>, Packet) -> Sealed) -> Tap {
    Tap::Guard(Hooks { seal: Some(hook), ..Hooks::NONE })
}

const fn open(hook: fn(&mut Right<'_>, Packet) -> Opened) -> Tap {
    Tap::Guard(Hooks { open: Some(hook), ..Hooks::NONE })
}

/// Takes a packet in the clear for one of the domain.
fn as_secured(right: &Right<'_>, packet: Packet) -> Opened {
    let domain = right.security.domains.first();
    let Some(domain) = domain else { return Ok((packet, None)) };
    let context = SecureContext { sdi: domain.sdi, ssi: None };
    let association = Association { context, an: false, epoch: 0, counter: 0 };
    // Without source identifiers, the binding is the domain alone.
    Ok((packet, Some(association)))
}

fn is_secured(packet: &Packet) -> bool {
    packet.head.first().is_some_and(|first| first >> 3 == 1)
}

/// Opens a packet whose ICV is wrong, if `believes` takes what it says.
fn believing(right: &mut Right<'_>, packet: Packet, believes: fn(&Packet) -> bool) -> Opened {
    match right.open(packet.clone()) {
        Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
            Some((inner, association, _)) if believes(&inner) => Ok((inner, association)),
            _ => Err(OpenError::NotAuthentic),
        },
        other => other,
    }
}

/// Returns a fresh number of a sequence.
fn next(right: &mut Right<'_>, sequence: u64, of: u64) -> u64 {
    let number = right.notes.numbers.entry((sequence, of)).or_default();
    *number += 1;
    *number - 1
}

/// Names a request or control packet among those of a domain.
fn name(packet: &Packet) -> (u64, u64) {
    let sdi = packet.security.map_or(0, |context| context.sdi);
    let (pdcid, psn) = (packet.get("pds.spdcid").unwrap_or(0), packet.get("pds.psn").unwrap_or(0));
    (u64::from(sdi) << 16 | pdcid, psn)
}

/// The parts of the notes.
const STARTS: u64 = 1 << 60;
const PENDING: u64 = 2 << 60;
const HIGHEST: u64 = 3 << 60;
const ACKED: u64 = 4 << 60;
const MOVED: u64 = 5 << 60;

fn domain_of(packet: &Packet) -> u64 {
    packet.security.map_or(0, |context| context.sdi).into()
}

fn is_new_start(packet: &Packet) -> bool {
    packet.is_nack() && packet.is("pds.nack_code", NackCode::NEW_START_PSN.code().into())
}

/// Returns the Start_PSN of an opening request, and whether it is another than that of the first one.
fn renumbered(right: &mut Right<'_>, packet: &Packet) -> bool {
    if !packet.is_request() || !packet.is("pds.flags.syn", 1) {
        return false;
    }
    let start = super::seen::start(packet).unwrap_or(Psn(0));
    let (context, _) = name(packet);
    let first = *right.notes.numbers.entry((STARTS, context)).or_insert(start.0.into());
    first != u64::from(start.0)
}

fn answer_instead(packet: &Packet, start: u64) -> Packet {
    let psn = super::seen::named(packet).unwrap_or(Psn(0));
    let remote = super::forge::id(packet, "pds.dpdcid");
    let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(psn).dpdcid(remote).payload(start as u32);
    let head: Head = nack.current_unchecked().copied().bytes().iter().copied().collect();
    Packet { head, payload: Default::default(), ..packet.clone() }
}

fn accept_all(right: &mut Right<'_>, peer: IpAddr, refused: Psn) {
    let key = match peer {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64,
    };
    right.notes.numbers.insert((PENDING, key), refused.0.into());
}

fn accepted(right: &Right<'_>, peer: IpAddr) -> Option<u64> {
    let key = match peer {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64,
    };
    right.notes.numbers.get(&(PENDING, key)).copied()
}

/// Opens a packet as one of the domain that this NIC knows, whatever domain it names.
fn as_known_domain(right: &mut Right<'_>, packet: Packet) -> Opened {
    match right.open(packet.clone()) {
        Err(OpenError::NoDomain) => {
            let opened = right.recipe(&packet).and_then(|recipe| right.open_as(&packet, &recipe));
            opened.ok_or(OpenError::NoDomain)
        }
        other => other,
    }
}

/// Opens a packet with the last bytes of its ICV missing.
fn with_short_icv(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NotAuthentic)) {
        return opened;
    }
    let Some(recipe) = right.recipe(&packet) else { return opened };
    for missing in 1..=8 {
        let bytes = [&packet.to_wire()[..], &vec![0; missing]].concat();
        let mut clear = bytes.clone();
        let Some(icv) = recipe.decrypt(&mut clear) else { continue };
        if bytes[bytes.len() - ICV..].starts_with(&icv[..ICV - missing]) {
            let mut whole = bytes;
            let at = whole.len() - ICV;
            whole[at..].copy_from_slice(&icv);
            let (head, payload) = whole.split_at(packet.head.len());
            let head = head.iter().copied().collect();
            let longer = Packet { head, payload: payload.to_vec().into(), ..packet.clone() };
            if let Some(opened) = right.open_as(&longer, &recipe) {
                return Ok(opened);
            }
        }
    }
    opened
}

/// Opens a packet with bytes behind its ICV.
fn with_bytes_behind(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NotAuthentic)) {
        return opened;
    }
    for behind in [1, 4, 16] {
        let length = packet.payload.len().saturating_sub(behind);
        let shorter = Packet { payload: packet.payload.slice(..length), ..packet.clone() };
        if let Ok(opened) = right.open(shorter) {
            return Ok(opened);
        }
    }
    opened
}

/// Opens a packet under a key that was installed before.
fn under_old_key(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NoKey | OpenError::NotAuthentic)) {
        return opened;
    }
    let Some(recipe) = right.recipe(&packet) else { return opened };
    let old = right.notes.domains.iter().filter(|old| old.sdi == recipe.domain.sdi);
    let old = old.map(|old| Recipe { domain: old.clone(), ..recipe.clone() });
    old.filter_map(|recipe| right.open_as(&packet, &recipe)).next().map_or(opened, Ok)
}

/// The bytes that protection without a source identifier adds.
const ADDED: usize = 12 + ICV;

/// Drops a packet whose payload leaves no room for protection in a whole MTU.
fn below_mtu(right: &mut Right<'_>, packet: Packet) -> Opened {
    let (inner, association) = right.open(packet)?;
    let bytes = inner.payload.len();
    match bytes >= 1024 && (bytes + ADDED).next_power_of_two() != bytes.next_power_of_two() {
        true => Err(OpenError::Malformed),
        false => Ok((inner, association)),
    }
}

/// Decrypts what is left of a trimmed request, and opens it as a NOOP with its PSN.
fn as_receipt(right: &mut Right<'_>, packet: Packet) -> Opened {
    let receipt = |right: &Right<'_>| {
        packet.trimmed.filter(|_| is_secured(&packet))?;
        let recipe = right.recipe(&packet)?;
        let mut bytes = [&packet.to_wire()[..], &[0; ICV]].concat();
        recipe.decrypt(&mut bytes)?;
        let (header, body) = bytes.split_at_checked(recipe.header.len())?;
        let request = Uet::parse_lax(body).0.pds?.request()?;
        let noop = Control::build(CtlType::NOOP).ar(true).psn(request.psn()).spdcid(request.spdcid());
        let noop = noop.dpdcid(request.dpdcid()?).done().ok()?;
        let whole = Packet { trimmed: None, ..packet.clone() };
        right.inner(&whole, &recipe, [header, noop.bytes(), &[0; ICV]].concat())
    };
    match receipt(right) {
        Some(opened) => Ok(opened),
        None => right.open(packet),
    }
}

/// Moves the PSNs of a context to a Start_PSN that was demanded after its first ACK.
fn moved(right: &mut Right<'_>, mut packet: Packet) -> Sealed {
    let (context, _) = name(&packet);
    if let Some(&distance) = right.notes.numbers.get(&(MOVED, context)).filter(|_| packet.is_request()) {
        packet.change("pds.psn", |psn| u64::from((psn as u32).wrapping_add(distance as u32)));
    }
    right.seal(packet)
}

/// Notes the first ACK of a context, and a Start_PSN that is demanded after it.
fn watching_starts(right: &mut Right<'_>, packet: Packet) -> Opened {
    let (inner, association) = right.open(packet)?;
    let sdi = association.map_or(0, |association| association.context.sdi);
    let context = u64::from(sdi) << 16 | inner.get("pds.dpdcid").unwrap_or(0);
    if inner.is_ack() {
        right.notes.numbers.insert((ACKED, context), 1);
    } else if is_new_start(&inner) && right.notes.numbers.contains_key(&(ACKED, context)) {
        let [start, named] =
            ["pds.payload", "pds.nack_psn"].map(|field| inner.get(field).unwrap_or(0) as u32);
        right.notes.numbers.insert((MOVED, context), start.wrapping_sub(named).into());
    }
    Ok((inner, association))
}

fn epoch(packet: &Packet) -> Option<u16> {
    let (uet, _) = Uet::parse_lax(&packet.head);
    uet.tss.map(|tss| tss.tsc().epoch())
}

fn an(packet: &Packet) -> bool {
    packet.head.first().is_some_and(|first| first & 1 != 0)
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "derives-with-long-length",
        "The derivation of keys takes its length in four bytes instead of two",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.length = vec![0, 0, 1, 0x60])],
    ),
    fault(
        "derives-without-separator",
        "The derivation of keys lacks the zero between label and context",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.label.truncate(2))],
    ),
    fault(
        "derives-with-swapped-epoch",
        "The derivation of keys takes the epoch with its low byte first",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.epoch.reverse())],
    ),
    fault(
        "derives-without-rekey",
        "The derivation of keys always takes 0 as the rekey index",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.index = 0)],
    ),
    fault(
        "derives-for-current-epoch",
        "The receiver derives keys with its own epoch instead of the one in the packet",
        TSS_KEY_003,
        &[recipe(|recipe| {
            if !recipe.leaving {
                recipe.epoch = recipe.domain.epoch.to_be_bytes();
            }
        })],
    ),
    fault(
        "server-derives-for-sender",
        "A server derives the key of its own packets from its own identity",
        TSS_KEY_002,
        &[recipe(|recipe| {
            if recipe.domain.mode == KeyMode::Server && recipe.leaving {
                recipe.identity = recipe.outer.src;
            }
        })],
    ),
    fault(
        "masks-only-the-counter",
        "The mask changes only the last eight bytes of the IV",
        TSS_IV_001,
        &[recipe(|recipe| recipe.masked_from = 4)],
    ),
    fault(
        "iv-without-epoch",
        "The IV has zeros instead of the epoch",
        TSS_IV_001,
        &[recipe(|recipe| recipe.iv[4..6].fill(0))],
    ),
    fault(
        "iv-of-short-counter",
        "The IV takes only the lower 32 bits of the counter",
        TSS_IV_001,
        &[recipe(|recipe| recipe.iv[6..8].fill(0))],
    ),
    fault(
        "authenticates-length-without-icv",
        "The authenticated UDP length does not include the ICV",
        TSS_AAD_001,
        &[recipe(|recipe| {
            if let OuterLayer::Udp { length, .. } = &mut recipe.outer.layer {
                *length = length.wrapping_sub(ICV as u16);
            }
        })],
    ),
    fault(
        "ignores-confidentiality-offset",
        "The NIC encrypts from the end of the security header on, whatever the domain says",
        TSS_AAD_001,
        &[recipe(|recipe| recipe.offset = recipe.header.len())],
    ),
    fault(
        "authenticates-class",
        "The NIC drops a secured request whose DSCP has changed on its way",
        TSS_AAD_001,
        &[open(|right, packet| {
            let is_high = packet.priority == Priority::High;
            match right.open(packet)? {
                (inner, _) if is_high && inner.is_request() => Err(OpenError::NotAuthentic),
                opened => Ok(opened),
            }
        })],
    ),
    fault(
        "authenticates-reserved-bit-as-zero",
        "The NIC authenticates the security header with a reserved bit of 0",
        TSS_HDR_002,
        &[recipe(|recipe| recipe.authentic[0] &= !2)],
    ),
    fault(
        "sets-reserved-security-bit",
        "The NIC sets the reserved bit of the security header",
        TSS_HDR_003,
        &[recipe(|recipe| {
            if recipe.leaving {
                (recipe.header[0], recipe.authentic[0]) = (recipe.header[0] | 2, recipe.authentic[0] | 2);
            }
        })],
    ),
    fault(
        "sends-wrong-source-identifier",
        "The NIC sends packets under another source identifier than its own",
        TSS_HDR_001,
        &[install(|domain| domain.own_ssi = domain.own_ssi.map(|ssi| ssi ^ 0x10))],
    ),
    fault(
        "accepts-missing-source-identifier",
        "The NIC accepts packets without a source identifier in a domain that uses them",
        TSS_HDR_004,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::Source) => {
                let recipe = right.recipe(&packet).and_then(|recipe| {
                    let domain = SecureDomain { ssi: false, ..recipe.domain.clone() };
                    Recipe::right(&domain, recipe.outer, &packet.to_wire(), false)
                });
                let opened = recipe.and_then(|recipe| right.open_as(&packet, &recipe));
                let (inner, association) = opened.ok_or(OpenError::Source)?;
                // The source is the one that has come before.
                let known = |association: Association| {
                    let key = (u64::from(association.context.sdi), 7 << 40);
                    let ssi = right.notes.numbers.get(&key).map(|ssi| *ssi as u32);
                    Association { context: SecureContext { ssi, ..association.context }, ..association }
                };
                Ok((inner, association.map(known)))
            }
            Ok((inner, Some(association))) => {
                let key = (u64::from(association.context.sdi), 7 << 40);
                right.notes.numbers.insert(key, association.context.ssi.unwrap_or(0).into());
                Ok((inner, Some(association)))
            }
            other => other,
        })],
    ),
    fault(
        "crc-behind-icv",
        "The NIC appends four more bytes behind the ICV",
        TSS_ICV_001,
        &[seal(|right, packet| {
            right.seal(packet).map(|(sealed, association)| {
                let payload = [&sealed.payload[..], &[0; 4]].concat().into();
                (Packet { payload, ..sealed }, association)
            })
        })],
    ),
    fault(
        "accepts-any-icv",
        "The NIC does not look at the ICV",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |_| true))],
    ),
    fault(
        "compares-half-the-icv",
        "The NIC compares only the first eight bytes of the ICV",
        TSS_ICV_002,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
                Some((inner, association, icv))
                    if packet.to_wire()[packet.wire_len() - ICV..][..8] == icv[..8] =>
                {
                    Ok((inner, association))
                }
                _ => Err(OpenError::NotAuthentic),
            },
            other => other,
        })],
    ),
    fault(
        "accepts-short-icv",
        "The NIC accepts an ICV of eight bytes or more",
        TSS_ICV_002,
        &[open(with_short_icv)],
    ),
    fault(
        "accepts-bytes-behind-icv",
        "The NIC ignores bytes behind the ICV",
        TSS_ICV_002,
        &[open(with_bytes_behind)],
    ),
    fault(
        "answers-altered-packets",
        "The NIC answers packets whose ICV is wrong with a NACK",
        TSS_ICV_003,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::NotAuthentic) => match right.decrypt(&packet) {
                Some((inner, association, _)) if inner.is_request() => Ok((misdirect(inner), association)),
                _ => Err(OpenError::NotAuthentic),
            },
            other => other,
        })],
    ),
    fault(
        "believes-altered-acks",
        "The NIC takes ACKs whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, Kinds::is_ack))],
    ),
    fault(
        "believes-altered-nacks",
        "The NIC takes NACKs whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, Kinds::is_nack))],
    ),
    fault(
        "believes-altered-control",
        "The NIC takes control packets whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::CP))],
    ),
    fault(
        "believes-altered-idempotents",
        "The NIC takes idempotent requests whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::RUDI_REQ))],
    ),
    fault(
        "believes-altered-datagrams",
        "The NIC takes datagrams whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| believing(right, packet, |inner| inner.kind() == PdsType::UUD_REQ))],
    ),
    fault(
        "believes-altered-openings",
        "The NIC takes opening requests whose ICV is wrong",
        TSS_ICV_002,
        &[open(|right, packet| {
            believing(right, packet, |inner| inner.is_request() && inner.is("pds.flags.syn", 1))
        })],
    ),
    fault(
        "latches-early",
        "The NIC drops all packets of a domain after ten packets with a wrong ICV",
        TSS_ICV_002,
        &[Tap::Config(|config| config.secure.auth_fail_latch = Some(10))],
    ),
    fault(
        "accepts-unknown-domain",
        "The NIC takes a packet of an unknown domain for one of its own",
        TSS_SDI_001,
        &[open(as_known_domain)],
    ),
    fault(
        "answers-unknown-domain",
        "The NIC answers a packet of an unknown domain with a NACK",
        TSS_SDI_001,
        &[open(|right, packet| {
            let known = right.security.domains.iter().any(|domain| {
                Uet::parse_lax(&packet.head).0.tss.is_some_and(|tss| tss.head().sdi() == domain.sdi)
            });
            let opened = as_known_domain(right, packet)?;
            Ok(if known { opened } else { (misdirect(opened.0), opened.1) })
        })],
    ),
    fault(
        "retransmits-with-old-counter",
        "A retransmission has the counter of the lost packet",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let (context, psn) = name(&packet);
            if !packet.is_request() {
                return right.seal(packet);
            }
            if let Some(counter) = right.notes.numbers.get(&(context, psn)).copied() {
                return right.seal_at(packet, counter);
            }
            let sealed = right.seal(packet)?;
            let counter = sealed.1.map_or(0, |association| association.counter);
            right.notes.numbers.insert((context, psn), counter);
            Ok(sealed)
        })],
    ),
    fault(
        "resends-old-ciphertext",
        "The NIC keeps sealed requests and sends them again as they are",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let place = name(&packet);
            if !packet.is_request() {
                return right.seal(packet);
            }
            if let Some(old) = right.notes.packets.get(&place) {
                return Ok((old.clone(), None));
            }
            let sealed = right.seal(packet)?;
            if right.notes.packets.len() >= 1024 {
                right.notes.packets.pop_first();
            }
            right.notes.packets.insert(place, sealed.0.clone());
            Ok(sealed)
        })],
    ),
    fault(
        "counts-per-context",
        "The packets of each context have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let (context, _) = name(&packet);
            let counter = next(right, context, 1 << 40);
            right.seal_at(packet, counter)
        })],
    ),
    fault(
        "counts-acks-apart",
        "ACKs have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| match packet.is_ack() {
            true => {
                let counter = next(right, domain_of(&packet), 2 << 40);
                right.seal_at(packet, counter)
            }
            false => right.seal(packet),
        })],
    ),
    fault(
        "counts-control-apart",
        "NACKs and control packets have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| match packet.is_nack() || packet.kind() == PdsType::CP {
            true => {
                let counter = next(right, domain_of(&packet), 3 << 40);
                right.seal_at(packet, counter)
            }
            false => right.seal(packet),
        })],
    ),
    fault(
        "counts-anew-after-install",
        "Each installation of keys starts the counter anew",
        TSS_CTR_001,
        &[install(|domain| domain.counter = domain.counter.or(Some(0)))],
    ),
    fault(
        "counter-wraps",
        "The counter starts anew at its limit",
        TSS_CTR_002,
        &[seal(|right, packet| match right.seal(packet.clone()) {
            Err(SealError::CounterExhausted) => {
                let counter = next(right, domain_of(&packet), 4 << 40);
                right.seal_at(packet, counter)
            }
            other => other,
        })],
    ),
    fault(
        "falls-back-to-the-clear",
        "The NIC sends a packet that it cannot protect in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| right.seal(packet.clone()).or(Ok((packet, None))))],
    ),
    fault(
        "sends-datagrams-in-the-clear",
        "The NIC sends datagrams in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| match packet.kind() == PdsType::UUD_REQ {
            true => Ok((packet, None)),
            false => right.seal(packet),
        })],
    ),
    fault(
        "retransmits-in-the-clear",
        "The NIC sends retransmissions in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| match packet.is_request() && packet.is("pds.flags.retx", 1) {
            true => Ok((packet, None)),
            false => right.seal(packet),
        })],
    ),
    fault(
        "answers-idempotents-in-the-clear",
        "The NIC sends the responses of idempotent requests in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| match packet.kind() == PdsType::RUDI_RESP {
            true => Ok((packet, None)),
            false => right.seal(packet),
        })],
    ),
    fault(
        "accepts-the-clear",
        "The NIC accepts packets in the clear, though it requires protection",
        TSS_CLEAR_001,
        &[Tap::Config(|config| config.secure.require_protection = false)],
    ),
    fault(
        "contexts-accept-the-clear",
        "Secured contexts accept packets in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match is_secured(&packet) {
            true => right.open(packet),
            false => as_secured(right, packet),
        })],
    ),
    fault(
        "believes-clear-nacks",
        "Secured contexts accept NACKs in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match !is_secured(&packet) && packet.is_nack() {
            true => as_secured(right, packet),
            false => right.open(packet),
        })],
    ),
    fault(
        "believes-clear-acks",
        "Secured contexts accept ACKs in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match !is_secured(&packet) && packet.is_ack() {
            true => as_secured(right, packet),
            false => right.open(packet),
        })],
    ),
    fault(
        "compares-epochs-as-numbers",
        "The NIC takes an epoch with a higher number for a newer one, over the wrap too",
        TSS_EPOCH_001,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::Late) => {
                let recipe = right.recipe(&packet);
                let recipe = recipe.filter(|recipe| epoch(&packet) > Some(recipe.domain.epoch));
                let opened = recipe.and_then(|recipe| right.open_as(&packet, &recipe));
                opened.ok_or(OpenError::Late)
            }
            other => other,
        })],
    ),
    fault(
        "drops-recent-epochs",
        "The NIC drops packets of every epoch but the current one",
        TSS_EPOCH_001,
        &[open(|right, packet| {
            let current = right.domain(&packet).map(|domain| domain.epoch);
            match is_secured(&packet) && current != epoch(&packet) {
                true => Err(OpenError::Late),
                false => right.open(packet),
            }
        })],
    ),
    fault(
        "sends-under-epoch-zero",
        "The NIC sends every packet under epoch 0",
        TSS_EPOCH_002,
        &[install(|domain| domain.epoch = 0)],
    ),
    fault(
        "sends-under-first-key",
        "The NIC sends every packet under the key of association number 0",
        TSS_AN_002,
        &[install(|domain| {
            if domain.keys.contains_key("0") {
                domain.an = 0;
            }
        })],
    ),
    fault(
        "retransmits-under-old-key",
        "Retransmissions use the key under which the packet was sent first",
        TSS_AN_002,
        &[seal(|right, packet| {
            if !packet.is_request() {
                return right.seal(packet);
            }
            let (place, an) = (name(&packet), right.current_an(&packet));
            let first = *right.notes.numbers.entry(place).or_insert(an.into()) != 0;
            right.member(&packet, |member| member.current_an = first);
            let sealed = right.seal(packet.clone());
            right.member(&packet, |member| member.current_an = an);
            sealed
        })],
    ),
    fault(
        "opens-only-current-key",
        "The NIC opens only packets under the key with which it sends",
        TSS_AN_001,
        &[open(|right, packet| {
            let current = right.domain(&packet).map(|domain| domain.an == 1);
            match is_secured(&packet) && current != Some(an(&packet)) {
                true => Err(OpenError::NoKey),
                false => right.open(packet),
            }
        })],
    ),
    fault(
        "keeps-removed-keys",
        "The NIC opens packets under keys that were removed or replaced",
        TSS_AN_003,
        &[open(under_old_key)],
    ),
    fault(
        "drops-late-counters",
        "The NIC drops packets whose counter is below the highest that has come",
        TSS_KEY_003,
        &[open(|right, packet| {
            let opened = right.open(packet)?;
            let Some(association) = opened.1 else { return Ok(opened) };
            let source = u64::from(association.context.sdi) << 1 | u64::from(association.an);
            let place = (HIGHEST | source, association.epoch.into());
            let highest = right.notes.numbers.entry(place).or_default();
            if association.counter < *highest {
                return Err(OpenError::Late);
            }
            *highest = association.counter;
            Ok(opened)
        })],
    ),
    fault(
        "binds-no-source",
        "Contexts accept authentic packets of every source identifier",
        TSS_BIND_001,
        &[open(|right, packet| {
            let (inner, association) = right.open(packet)?;
            let first = association.map(|association| {
                let key = (u64::from(association.context.sdi), 5 << 40);
                let own = u64::from(association.context.ssi.unwrap_or(0));
                let first = *right.notes.numbers.entry(key).or_insert(own) as u32;
                let ssi = association.context.ssi.map(|_| first);
                let context = SecureContext { ssi, ..association.context };
                Association { context, ..association }
            });
            Ok((inner, first))
        })],
    ),
    fault(
        "binds-no-domain",
        "Contexts accept authentic packets of every domain",
        TSS_BIND_001,
        &[open(|right, packet| {
            let (inner, association) = right.open(packet)?;
            let sdi = right.security.domains.first().map(|domain| domain.sdi);
            let first = association.map(|association| {
                let sdi = sdi.unwrap_or(association.context.sdi);
                let context = SecureContext { sdi, ..association.context };
                Association { context, ..association }
            });
            Ok((inner, first))
        })],
    ),
    fault(
        "accepts-any-start",
        "A target accepts each Start_PSN in a secure domain",
        TSS_START_001,
        &[Tap::Guard(Hooks { accept: Some(|_, _, _, _| Ok(())), ..Hooks::NONE })],
    ),
    fault(
        "compares-starts-as-numbers",
        "A target that demands a Start_PSN names the one of the request",
        TSS_START_002,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                let psn = packet.get("pds.nack_psn").unwrap_or_default();
                packet.set("pds.payload", psn);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "names-context-in-new-start",
        "NACK NEW_START_PSN names a context of the target",
        TSS_START_002,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                packet.set("pds.spdcid", 0x77);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "executes-pending",
        "A target executes a request although it demands another Start_PSN",
        TSS_START_004,
        &[Tap::Guard(Hooks {
            accept: Some(|right, context, peer, start| {
                if let Err(required) = right.accept(context, peer, start) {
                    accept_all(right, peer, required);
                }
                Ok(())
            }),
            seal: Some(|right, packet| match accepted(right, packet.dst) {
                Some(start) if packet.is_ack() => {
                    let instead = answer_instead(&packet, start);
                    right.seal(instead)
                }
                _ => right.seal(packet),
            }),
            ..Hooks::NONE
        })],
    ),
    fault(
        "demands-another-start-each-time",
        "A target demands another Start_PSN each time it refuses a request of a pending context",
        TSS_START_006,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                let count = next(right, domain_of(&packet), 6 << 40);
                packet.change("pds.payload", |start| start.wrapping_add(count << 8));
            }
            right.seal(packet)
        })],
    ),
    fault(
        "renumbers-offsets",
        "An initiator that gets NACK NEW_START_PSN counts psn_offset from 1",
        TSS_START_003,
        &[seal(|right, mut packet| {
            if renumbered(right, &packet) {
                packet.change("pds.psn_offset", |offset| offset + 1);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "renumbers-as-retransmission",
        "An initiator that gets NACK NEW_START_PSN sets retx in the packets with new PSNs",
        TSS_START_008,
        &[seal(|right, mut packet| {
            if renumbered(right, &packet) {
                packet.set("pds.flags.retx", 1);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "ignores-new-start",
        "An initiator ignores NACK NEW_START_PSN",
        TSS_START_003,
        &[open(|right, packet| match right.open(packet)? {
            (inner, _) if is_new_start(&inner) => Err(OpenError::Malformed),
            opened => Ok(opened),
        })],
    ),
    fault(
        "renumbers-after-ack",
        "An initiator that gets NACK NEW_START_PSN after the first ACK moves its PSNs",
        TSS_START_005,
        &[open(watching_starts), seal(moved)],
    ),
    fault(
        "drops-full-packets",
        "The NIC counts security header and ICV in the MTU, and drops secured packets that fill it",
        TSS_LEN_001,
        &[open(below_mtu)],
    ),
    fault(
        "acknowledges-trimmed-packets",
        "The NIC takes what is left of a trimmed secured request as its receipt",
        TSS_TRIM_001,
        &[open(as_receipt)],
    ),
    fault(
        "tells-start-below-floor",
        "The ACK of CLOSE_COMMAND tells a Start_PSN that the target does not accept",
        TSS_START_007,
        &[seal(|right, mut packet| {
            const TELLS: u8 = 0x40;
            let tells = packet.is_ack() && packet.head.get(1).is_some_and(|flags| flags & TELLS != 0);
            if let Some(told) = packet.payload.first_chunk().filter(|_| tells) {
                let start = u32::from_be_bytes(*told).wrapping_sub(64);
                packet.payload = start.to_be_bytes().to_vec().into();
            }
            right.seal(packet)
        })],
    ),
];
