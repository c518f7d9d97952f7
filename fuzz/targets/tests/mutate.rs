//! The protocol-aware mutator produces useful inputs.

use uet_fuzz::{Input, Noise, TARGETS, mutate};
use uet_wire::{Options, Start};

const FRAME: &str = "02000000000202000000000108004500002c0000400040110f62\
    0a0000010a00010cbeef12b90018000008000000000001";

#[test]
fn mutants_fit_reach_everything_and_break_nothing() {
    let seed = uet_packet_io::hex::decode(FRAME).unwrap();
    let options = Options::DEFAULT;
    let seed = Input { start: Start::Eth, options, wire: seed.len(), bytes: &seed }.join();
    let mut noise = Noise::new(1);
    let mut seen = std::collections::BTreeSet::new();
    let mut data = seed.clone();
    let mut size = seed.len();
    for round in 0..50_000 {
        if round % 16 == 0 {
            data.clone_from(&seed);
            size = seed.len();
        }
        let max = 20 + noise.below(200);
        data.resize(max.max(size), 0);
        size = mutate::mutate(&mut data, size, max, round, |data, size, max| {
            mutate::plain(data, size.min(max), max, &mut noise)
        });
        assert!(size <= max);
        let input = Input::split(&data[..size]);
        seen.extend(input.iter().flat_map(|input| input.packet().headers().map(|(layout, _)| layout.name)));
        if round % 64 == 0 {
            TARGETS.iter().for_each(|target| (target.run)(&data[..size]));
        }
    }
    assert!(seen.len() > 25, "{seen:?}");
}
