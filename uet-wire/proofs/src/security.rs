//! Sealing and opening in each mode.

use crate::operations;
use core::hint::black_box;
use uet_wire::tss::{Direction, Domain, DomainKey, KeyCache, Mode, Outer, Tss};

operations! {
    "direct" => |received, buffer| both(Mode::Direct, received, buffer);
    "cluster" => |received, buffer| both(Mode::Cluster, received, buffer);
    "client" => |received, buffer| both(Mode::Client, received, buffer);
    "server" => |received, buffer| both(Mode::Server, received, buffer);
}

/// Seals and opens what is received, with and without source identifiers, over both versions of IP.
fn both(mode: Mode, received: &[u8], buffer: &mut [u8]) {
    let four = Outer::native([10, 0, 0, 1], [10, 0, 0, 2], 7);
    let six = Outer::udp([1; 16], [2; 16], 7, received.len());
    for (outer, ssi) in [(four, false), (four, true), (six, false), (six, true)] {
        seal_and_open(&Domain { ssi, ..Domain::new(7, mode) }, &outer, received, buffer);
    }
}

fn seal_and_open(domain: &Domain, outer: &Outer, received: &[u8], buffer: &mut [u8]) {
    // The key of a domain, or the longer one of a client.
    let bytes = if domain.mode == Mode::Client { &[7; 44][..] } else { &[7; 32] };
    let Ok(secret) = DomainKey::new(bytes) else { return };
    let Ok((tss, _)) = Tss::parse(received) else { return };
    let Some(packet) = buffer.get_mut(..received.len()) else { return };
    let mut cache = KeyCache::<2>::new();
    for direction in [Direction::Outgoing, Direction::Incoming] {
        let Ok(id) = domain.key_id(outer, &tss, direction) else { continue };
        let Ok(key) = id.derive(&secret) else { continue };
        cache.put(id, key);
        let Some(key) = cache.get(&id) else { continue };
        packet.copy_from_slice(received);
        let _ = black_box(domain.seal(key, outer, packet));
        let _ = black_box(domain.open(key, outer, packet));
        let _ = black_box(domain.open(key, outer, packet));
    }
}
