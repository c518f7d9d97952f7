//! Endpoints with keys: the rules of senders, receivers and Start_PSNs (section 3.7).

use super::common::*;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};
use uet_model::pds::{Dropped, EventKind, Pds, Protect};
use uet_model::secure::{Counters, Encapsulation, Member, Secure, StartPsnFloor, StartPsnMethod, Statistic};
use uet_model::*;
use uet_observe::IvHistory;
use uet_packet_io::keys::{KeyRing, Opened};
use uet_wire::pds::Pds as Header;
use uet_wire::registry::{NackCode, PdsType};
use uet_wire::tss::{Domain, DomainKey, Mode as KeyMode, Outer};
use uet_wire::{Psn, Uet};

const SDI: u32 = 0x01_2345;

fn cluster() -> Domain {
    Domain::new(SDI, KeyMode::Cluster)
}

fn key(byte: u8) -> DomainKey {
    DomainKey::new(&[byte; 32]).unwrap()
}

fn member(domain: Domain) -> Member {
    let mut member = Member::new(domain, &Counters::default()).unwrap();
    member.install(false, key(1), 0).unwrap();
    member
}

/// Two endpoints with protection. At its end, no two packets that they have sent share key and IV.
struct Secured {
    pair: Pair,
    secure: [Arc<Mutex<Secure>>; 2],
    /// All keys of the test, for both association numbers.
    ring: KeyRing,
}

/// Returns the keys of a domain that a test may use, as its members but a client know them.
fn ring(domain: &Domain, secrets: &[Vec<u8>]) -> KeyRing {
    let mode = match domain.mode {
        KeyMode::Direct => "direct",
        KeyMode::Cluster => "cluster",
        KeyMode::Client | KeyMode::Server => "server",
    };
    let hex = |secret: &Vec<u8>| secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let keys: Vec<String> = secrets.iter().map(hex).collect();
    let (sdi, ssi) = (domain.sdi, domain.ssi);
    let file = format!(
        "[[domain]]\nsdi = {sdi}\nmode = \"{mode}\"\nssi = {ssi}\nkeys = {{ 0 = {keys:?}, 1 = {keys:?} }}"
    );
    KeyRing::from_toml(&file).unwrap()
}

impl Drop for Secured {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut history = IvHistory::default();
        for (number, packet) in (0..).zip(&self.pair.seen) {
            let sealed = packet.to_wire().to_vec();
            if Uet::parse_lax(&sealed).0.tss.is_none() {
                continue;
            }
            let outer = Outer::udp(packet.src, packet.dst, packet.entropy, sealed.len());
            let opened = self.ring.open(&outer, &mut sealed.clone());
            let Opened::Authentic { key_iv, .. } = opened else { panic!("packet {number}: {opened:?}") };
            assert_eq!(history.repeats(key_iv, sealed, number), None, "packet {number} repeats an IV");
        }
    }
}

impl Secured {
    fn of(members: [Member; 2]) -> Self {
        let mut pair = Pair::new(plain());
        let secure = [A, B].map(|side| {
            let mut secure = Secure::new(side as u64).with(members[side].clone()).unwrap();
            secure.encapsulation = Encapsulation::Udp;
            Arc::new(Mutex::new(secure))
        });
        for side in [A, B] {
            let first_pdcid = [0x4001, 0x8001][side];
            let params = PdsParams { first_pdcid, start_psn: None, ..plain() };
            pair.ends[side] =
                Pds::new(params, address(side), 3).unwrap().with_protection(secure[side].clone());
        }
        let ring = ring(members[B].domain(), &[1, 2, 3].map(|byte| vec![byte; 32]));
        Secured { pair, secure, ring }
    }

    fn new() -> Self {
        Self::of([member(cluster()), member(cluster())])
    }

    fn secure(&self, side: usize) -> MutexGuard<'_, Secure> {
        self.secure[side].lock().unwrap()
    }

    fn count(&self, side: usize, what: Statistic) -> u64 {
        let secure = self.secure(side);
        secure.statistics().iter().filter(|(_, name, _)| *name == what).map(|(.., count)| count).sum()
    }

    fn send(&mut self, message: u64) {
        self.pair.send(A, message);
        self.pair.run();
    }

    /// Closes the initiator's context and waits until both ends have forgotten it.
    fn close(&mut self) {
        let context = self.pair.context();
        let now = self.pair.now;
        self.pair.ends[A].close(now, context);
        self.pair.run_for(Duration::from_secs(10));
    }

    fn nacks(&self, code: NackCode) -> usize {
        let refused = |event: &&EventKind| matches!(event, EventKind::Refused(_, seen) if *seen == code);
        self.pair.events[A].iter().filter(refused).count()
    }
}

#[test]
fn nothing_leaves_in_the_clear() {
    let mut secured = Secured::new();
    secured.pair.impair(&["drop 1", "drop 4", "duplicate 6"]);
    for message in 0..20 {
        secured.send(message);
    }
    assert_eq!(secured.pair.kept[B].len(), 20);
    assert_eq!(secured.pair.given[B][3].payload, request(3).payload);
    let protected = |packet: &&Packet| Uet::parse(&packet.head).unwrap().tss.is_some();
    assert!(secured.pair.seen.iter().all(|packet| protected(&packet)));
    let by_a = secured.pair.seen.iter().filter(|packet| packet.src == address(A)).count() as u64;
    assert_eq!(by_a, secured.count(A, Statistic::OutAuth));
    assert_eq!(secured.count(B, Statistic::InAuthFail), 0);
    secured.close();
    assert_eq!([secured.pair.ends[A].contexts(), secured.pair.ends[B].contexts()], [0, 0]);
}

#[test]
fn a_changed_packet_changes_nothing() {
    let mut secured = Secured::new();
    secured.send(1);
    let packet = secured.pair.seen[0].clone();
    for at in 0..packet.payload.len() {
        let mut payload = packet.payload.to_vec();
        payload[at] ^= 0x20;
        let altered = Packet { payload: payload.into(), ..packet.clone() };
        secured.pair.inject(B, altered);
    }
    assert_eq!(secured.count(B, Statistic::InAuthFail), packet.payload.len() as u64);
    let short = Packet { payload: packet.payload.slice(..16), ..packet.clone() };
    secured.pair.inject(B, short);
    assert_eq!(secured.count(B, Statistic::InErrored), 1);
    assert_eq!(secured.pair.given[B].len(), 1);
    let sent = secured.count(B, Statistic::OutAuth);
    assert_eq!(sent, 1, "no answer to a packet that is not authentic");
    // The copy of the network is authentic, and answered as a duplicate.
    secured.pair.inject(B, packet);
    assert_eq!((secured.pair.given[B].len(), secured.count(B, Statistic::OutAuth)), (1, 2));
}

#[test]
fn a_packet_in_the_clear_is_dropped() {
    let mut secured = Secured::new();
    secured.send(1);
    let clear = wire::Rud::syn(48, 0).packet();
    secured.pair.inject(B, clear.clone());
    assert_eq!(secured.count(B, Statistic::InClear), 1);
    assert_eq!(secured.pair.given[B].len(), 1);
    // A policy may pass it. It still reaches no secured context.
    secured.secure(B).params.require_protection = false;
    secured.pair.inject(B, clear);
    assert_eq!((secured.count(B, Statistic::InClear), secured.pair.given[B].len()), (2, 1));
    assert_eq!(secured.pair.ends[B].dropped(Dropped::OtherSecureContext), 1);
}

#[test]
fn a_replayed_opening_packet_opens_nothing() {
    let mut secured = Secured::new();
    secured.secure(B).params.expected_psn_in_close_ack = false;
    secured.send(1);
    let opening = secured.pair.seen[0].clone();
    secured.close();
    secured.pair.inject(B, opening);
    secured.pair.run();
    assert_eq!(secured.pair.given[B].len(), 1, "the request is not executed again");
    let answers = secured.pair.ends[A].dropped(Dropped::NoContext);
    assert_eq!(answers, 1, "NACK NEW_START_PSN reaches no context");
}

#[test]
fn the_ack_of_the_close_tells_the_next_start_psn() {
    let mut secured = Secured::new();
    secured.send(1);
    secured.close();
    let floor = secured.secure(A).member(SDI).unwrap().ini_start_psn.expect("told");
    secured.send(2);
    assert_eq!(secured.pair.given[B].len(), 2);
    assert_eq!(secured.nacks(NackCode::NEW_START_PSN), 0, "no round trip is lost");
    let Ticket::Pdc(_, psn) = secured.pair.given[B][1].ticket else { panic!() };
    assert_eq!(psn, floor);
}

#[test]
fn without_being_told_the_initiator_renumbers() {
    for (method, expected) in [(StartPsnMethod::Expected, 1), (StartPsnMethod::Random, 2)] {
        let mut secured = Secured::new();
        secured.secure(A).member_mut(SDI).unwrap().ini_start_psn = Some(Psn(0x10_0000));
        {
            let mut target = secured.secure(B);
            target.params.expected_psn_in_close_ack = false;
            target.params.start_psn_method = method;
        }
        secured.send(1);
        secured.close();
        secured.send(2);
        assert_eq!(secured.pair.kept[B].len(), 2, "{method:?}");
        assert_eq!(secured.nacks(NackCode::NEW_START_PSN), expected, "{method:?}");
        assert_eq!(secured.pair.responses(A), [1, 2]);
    }
}

#[test]
fn a_renumbered_packet_is_no_retransmission() {
    let mut secured = Secured::new();
    secured.secure(B).params.start_psn_method = StartPsnMethod::Random;
    secured.send(1);
    assert_eq!(secured.pair.kept[B].len(), 1);
    // The peer opens the packets as a member does.
    let mut peer = Secure::new(9).with(member(cluster())).unwrap();
    peer.encapsulation = Encapsulation::Udp;
    let requests: Vec<bool> = secured
        .pair
        .seen
        .iter()
        .filter(|packet| packet.src == address(A))
        .filter_map(|packet| {
            let (inner, _) = peer.open(packet.clone()).unwrap();
            match Uet::parse(&inner.head).unwrap().pds {
                Some(Header::Request(request)) => Some(request.retx()),
                _ => None,
            }
        })
        .collect();
    assert_eq!(requests, [false, false], "the request and its renumbered copy");
}

#[test]
fn the_floor_is_above_all_that_was_used() {
    for (floor, used) in [(StartPsnFloor::Highest, 12), (StartPsnFloor::Start, 1)] {
        let mut secured = Secured::new();
        secured.secure(A).member_mut(SDI).unwrap().ini_start_psn = Some(Psn(1000));
        secured.secure(B).params.start_psn_floor = floor;
        for message in 0..10 {
            secured.send(message);
        }
        secured.close();
        // Ten requests, the clear of their responses and the close have a PSN each, at most.
        let next = secured.secure(A).member(SDI).unwrap().ini_start_psn.unwrap();
        match floor {
            StartPsnFloor::Start => assert_eq!(next, Psn(1001)),
            StartPsnFloor::Highest => assert!((1011..=1000 + used).contains(&next.0), "{next}"),
        }
    }
}

#[test]
fn keys_rotate_without_loss() {
    let mut secured = Secured::new();
    secured.send(1);
    for side in [A, B] {
        secured.secure(side).member_mut(SDI).unwrap().install(true, key(2), 0).unwrap();
    }
    secured.send(2);
    // The initiator switches first. Both keys are valid.
    secured.secure(A).member_mut(SDI).unwrap().current_an = true;
    secured.send(3);
    secured.secure(B).member_mut(SDI).unwrap().current_an = true;
    secured.send(4);
    for side in [A, B] {
        secured.secure(side).member_mut(SDI).unwrap().remove(false);
    }
    secured.send(5);
    assert_eq!(secured.pair.responses(A), [1, 2, 3, 4, 5]);
    let old = secured.pair.seen[0].clone();
    secured.pair.inject(B, old);
    assert_eq!(secured.count(B, Statistic::InInvalidSa), 1, "the old key is gone");
    // The slot is filled again: the old packet is not authentic.
    secured.secure(B).member_mut(SDI).unwrap().install(false, key(3), 0).unwrap();
    let old = secured.pair.seen[0].clone();
    secured.pair.inject(B, old);
    assert_eq!(secured.count(B, Statistic::InAuthFail), 1);
}

#[test]
fn old_epochs_are_late_and_new_ones_pass() {
    let mut secured = Secured::new();
    secured.send(1);
    let first = secured.pair.seen[0].clone();
    for (epoch, late) in [(16, 0), (17, 1), (0x7fff, 2), (0x8000, 2), (0xffff, 2)] {
        secured.secure(B).member_mut(SDI).unwrap().set_epoch(false, epoch).unwrap();
        secured.pair.inject(B, first.clone());
        assert_eq!(secured.count(B, Statistic::InLate), late, "at epoch {epoch:#x}");
    }
    assert_eq!(secured.count(B, Statistic::InAuthFail), 0);
}

#[test]
fn no_packet_leaves_at_the_last_counter() {
    let mut member_a = member(cluster()).with_fatal_threshold(3);
    member_a.set_counter(false, 1);
    let mut secured = Secured::of([member_a, member(cluster())]);
    secured.send(1);
    secured.send(2);
    secured.send(3);
    assert_eq!(secured.pair.responses(A), [1, 2]);
    assert!(secured.count(A, Statistic::OutInvokeFail) > 0);
    assert!(secured.pair.seen.iter().all(|packet| Uet::parse(&packet.head).unwrap().tss.is_some()));
}

#[test]
fn client_and_server_keep_their_counters_apart() {
    let server = Domain { ssi: true, ..Domain::new(SDI, KeyMode::Server) };
    let client = Domain { mode: KeyMode::Client, ..server };
    // The client holds the derived key of worked example 10; the server derives it.
    let secret: Vec<u8> = (0..32).map(|at| b"\x34\x44\x8a\x06\x42\x92\x60\x1b\x11\xa0\x97\x8f\x56\xa2\xd3\x4c\xf3\xfc\x35\xed\xe1\xa6\xbc\x04\xf8\xdb\x3e\x52\x43\xa2\xb0\xca"[at]).collect();
    let derived = b"\x91\xcc\xa6\x70\x13\x49\xf4\x08\x61\xa7\xab\x7b\x93\x10\x03\x15\x7a\x73\x4a\x63\x7a\xf3\x3a\x09\xb0\x6d\x60\xec\xe1\xda\x11\xe6\x50\x7e\xb1\x10\x67\xdb\xce\xab\x83\x9c\x4a\xf0";
    let mut at_server = Member::new(server, &Counters::default()).unwrap();
    at_server.install(false, DomainKey::new(&secret).unwrap(), 0).unwrap();
    let mut at_client = Member::new(client, &Counters::default()).unwrap().with_ssi(0x1122_3344).unwrap();
    at_client.install(false, DomainKey::new(derived).unwrap(), 0).unwrap();
    assert!(at_client.install(true, key(1), 0).is_err(), "a client holds no key of the domain");
    let mut secured = Secured::of([at_client, at_server]);
    secured.ring = ring(&server, &[secret]);
    secured.send(1);
    secured.send(2);
    assert_eq!(secured.pair.responses(A), [1, 2]);
    for packet in &secured.pair.seen {
        let tss = Uet::parse(&packet.head).unwrap().tss.unwrap();
        assert_eq!(tss.ssi(), Some(0x1122_3344), "both directions carry the client's identifier");
        assert_eq!(tss.tsc().counter() >> 47, u64::from(packet.src == address(B)));
    }
}

#[test]
fn a_cluster_with_identifiers_binds_the_context_to_the_peer() {
    let domain = Domain { ssi: true, ..cluster() };
    let mut secured =
        Secured::of([member(domain).with_ssi(0xa).unwrap(), member(domain).with_ssi(0xb).unwrap()]);
    secured.send(1);
    secured.send(2);
    assert_eq!(secured.pair.responses(A), [1, 2]);
    // Another member speaks from the peer's address, under a valid key of its own.
    let mut other =
        Secured::of([member(domain).with_ssi(0xc).unwrap(), member(domain).with_ssi(0xb).unwrap()]);
    other.secure(A).member_mut(SDI).unwrap().ini_start_psn = Some(Psn(0));
    other.send(9);
    let forged = other.pair.seen[0].clone();
    let given = secured.pair.given[B].len();
    secured.pair.inject(B, forged);
    assert_eq!(secured.pair.ends[B].dropped(Dropped::OtherSecureContext), 1);
    assert_eq!(secured.pair.given[B].len(), given);
}

#[test]
fn the_latch_is_off_unless_set() {
    for (latch, accepted) in [(None, 1), (Some(2), 0)] {
        let mut secured = Secured::new();
        secured.secure(B).params.auth_fail_latch = latch;
        secured.pair.impair(&["drop 1"]);
        secured.pair.send(A, 1);
        let honest = secured.pair.seen[0].clone();
        let forged = Packet { payload: vec![0; honest.payload.len()].into(), ..honest.clone() };
        for _ in 0..4 {
            secured.pair.inject(B, forged.clone());
        }
        secured.pair.inject(B, honest);
        assert_eq!(secured.pair.given[B].len(), accepted);
    }
}

#[test]
fn a_nack_without_a_context_is_protected_unless_set() {
    let mut secured = Secured::new();
    secured.secure(A).member_mut(SDI).unwrap().ini_start_psn = Some(Psn(7));
    secured.secure(B).params.start_psn_method = StartPsnMethod::Random;
    secured.secure(B).params.send_unprotected_nack = true;
    secured.pair.send(A, 1);
    secured.pair.run_for(Duration::from_micros(100));
    let clear = |packet: &&Packet| Uet::parse(&packet.head).unwrap().tss.is_none();
    assert_eq!(secured.pair.seen.iter().filter(clear).count(), 1);
    let nack = secured.pair.seen.iter().find(clear).unwrap();
    let Some(Header::Nack(header)) = Uet::parse(&nack.head).unwrap().pds else { panic!("no NACK") };
    assert_eq!(header.nack_code(), NackCode::NEW_START_PSN);
    assert_eq!(header.prologue().kind(), PdsType::NACK);
    assert_eq!(secured.pair.given[B].len(), 0, "the initiator ignores a NACK in the clear");
    secured.secure(A).params.accept_unprotected_nack = true;
    secured.pair.run();
    assert_eq!(secured.pair.given[B].len(), 1);
}

/// Sends a message under each of these keys. A step is the association number, the byte of the key, and the epoch.
fn sends_under(counters: &Counters, steps: &[(bool, u8, u16)]) -> Vec<u64> {
    let mut secured = Secured::of([0, 1].map(|_| Member::new(cluster(), counters).unwrap()));
    for (message, (an, byte, epoch)) in (0..).zip(steps) {
        for side in [A, B] {
            let mut secure = secured.secure(side);
            let member = secure.member_mut(SDI).unwrap();
            [false, true].into_iter().for_each(|an| member.remove(an));
            member.install(*an, key(*byte), *epoch).unwrap();
            member.current_an = *an;
        }
        secured.send(message);
    }
    assert_eq!(secured.pair.responses(A).len(), steps.len());
    let counter = |packet: &Packet| Uet::parse(&packet.head).unwrap().tss.unwrap().tsc().counter();
    secured.pair.seen.iter().map(counter).collect()
}

#[test]
fn key_that_comes_back_continues_its_counter() {
    sends_under(&Counters::default(), &[(false, 1, 0), (false, 2, 0), (false, 1, 0)]);
}

#[test]
fn key_in_the_other_slot_continues_its_counter() {
    sends_under(&Counters::default(), &[(false, 1, 0), (true, 1, 0)]);
}

#[test]
fn epoch_that_comes_back_continues_its_counter() {
    sends_under(&Counters::default(), &[(false, 1, 0), (false, 1, 1), (false, 1, 0)]);
}

#[test]
fn first_counter_keeps_room_in_its_half() {
    let first = sends_under(&Counters::starting_at(u64::MAX), &[(false, 1, 0)])[0];
    assert_eq!(first, (1 << 46) - 1);
}

#[test]
fn used_key_never_goes_back() {
    let mut member = member(cluster());
    // Nothing has been sent yet, so the management may choose.
    member.skip_to_counter(false, 9);
    member.skip_to_counter(false, 5);
    let mut secured = Secured::of([member.clone(), member]);
    secured.send(1);
    let next = secured.secure(A).member(SDI).unwrap().counter(false);
    secured.secure(A).member_mut(SDI).unwrap().skip_to_counter(false, 5);
    assert!(next > Some(5));
    assert_eq!(secured.secure(A).member(SDI).unwrap().counter(false), next);
}
