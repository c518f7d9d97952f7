//! Time by operation: `cargo bench -p uet-wire --bench time`. `cases` describes the operations and implementations.

mod cases;

use cases::{PACKETS, WHO};
use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;

fn packets(criterion: &mut Criterion) {
    for mut case in PACKETS.into_iter().flat_map(cases::of) {
        let mut group = criterion.benchmark_group(format!("{}/{}", case.packet, case.operation));
        for (who, name) in WHO.into_iter().enumerate() {
            group.bench_function(name, |bencher| bencher.iter(|| (case.run)(who)));
        }
        group.finish();
    }
}

/// The CRC of a payload of 4 KiB: by this crate, whose way is chosen by its features, and by the crate that it
/// uses with `crc-hardware`.
#[cfg(feature = "crc")]
fn crc(criterion: &mut Criterion) {
    use criterion::Throughput;
    use std::hint::black_box;

    let payload = [0xda; 4096];
    let mut group = criterion.benchmark_group("CRC-32C of 4 KiB");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    let feature = if cfg!(feature = "crc-hardware") { "crc-hardware" } else { "crc" };
    group.bench_function(format!("uet-wire, {feature}"), |bencher| {
        bencher.iter(|| uet_wire::crc::crc32c(black_box(&payload)));
    });
    group.bench_function("crc32c", |bencher| bencher.iter(|| crc32c::crc32c(black_box(&payload))));
    group.finish();
}

#[cfg(not(feature = "crc"))]
fn crc(_: &mut Criterion) {}

/// Sealing and opening 4 KiB in place, by this crate and by the crate that it uses. Deriving a key is not included: a
/// sender and a receiver keep it.
#[cfg(feature = "tss")]
fn security(criterion: &mut Criterion) {
    use aes_gcm::aead::{AeadInOut, KeyInit};
    use aes_gcm::{Aes256Gcm, Nonce, Tag};
    use criterion::Throughput;
    use std::hint::black_box;
    use uet_wire::tss::{Direction, Domain, DomainKey, ICV, Mode, Outer, Tss, TssShort};

    const HEADER: usize = 12;
    let domain = Domain::new(7, Mode::Direct);
    let outer = Outer::native([10, 0, 0, 1], [10, 0, 1, 12], 7);
    let header = TssShort::build().head(|head| head.sdi(7)).tsc(|tsc| tsc.counter(1)).done();
    let header = header.expect("the values fit");
    let mut packet = vec![0xda; HEADER + 4096 + ICV];
    packet[..HEADER].copy_from_slice(header.bytes());
    let (tss, _) = Tss::parse(header.bytes()).expect("it is whole");
    let secret = DomainKey::new(&[7; 32]).expect("the length is right");
    let id = domain.key_id(&outer, &tss, Direction::Outgoing).expect("the addresses fit");
    let key = id.derive(&secret).expect("it is the key of the domain");

    let raw = Aes256Gcm::new(&[7; 32].into());
    let nonce = Nonce::from([1; 12]);
    let aad = [2; 8 + 4 + HEADER];
    let mut payload = vec![0xda; 4096];
    let sealed = |payload: &mut [u8]| -> Tag {
        raw.encrypt_inout_detached(black_box(&nonce), black_box(&aad), payload.into()).expect("it is short")
    };

    let mut group = criterion.benchmark_group("AES-256-GCM of 4 KiB");
    group.throughput(Throughput::Bytes(4096));
    group.bench_function("seal, aes-gcm", |bencher| bencher.iter(|| sealed(black_box(&mut payload))));
    group.bench_function("seal, uet-wire", |bencher| {
        bencher.iter(|| domain.seal(&key, black_box(&outer), black_box(&mut packet)));
    });
    // An opened packet has another plaintext each time, so its copy is opened. The copy takes part in both.
    let tag = sealed(&mut payload);
    let mut copy = payload.clone();
    group.bench_function("open, aes-gcm", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(&payload);
            let body = black_box(&mut copy[..]);
            raw.decrypt_inout_detached(black_box(&nonce), black_box(&aad), body.into(), &tag)
                .expect("it is authentic");
        });
    });
    domain.seal(&key, &outer, &mut packet).expect("it is short");
    let mut copy = packet.clone();
    group.bench_function("open, uet-wire", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(&packet);
            domain.open(&key, black_box(&outer), black_box(&mut copy)).expect("it is authentic");
        });
    });
    group.finish();
}

#[cfg(not(feature = "tss"))]
fn security(_: &mut Criterion) {}

/// Two minutes for all: what is measured takes nanoseconds.
fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = brief(); targets = packets, crc, security }
criterion_main!(benches);
