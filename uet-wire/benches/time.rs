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

/// Two minutes for all: what is measured takes nanoseconds.
fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = brief(); targets = packets, crc }
criterion_main!(benches);
