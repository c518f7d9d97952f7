//! A short run of the soak of the benchmark `load`. It measures the memory of its process, so it has a process of its own.

#[path = "../benches/load/soak.rs"]
mod load;

const ROUNDS: u64 = 50;

#[test]
fn no_byte_is_wrong_and_nothing_grows() {
    let soaked = load::soak(|rounds, _| rounds as f64 / ROUNDS as f64, 5).unwrap();
    assert_eq!(soaked.rounds, ROUNDS, "{soaked:?}");
    let share = soaked.lost as f64 / soaked.packets as f64;
    assert!((0.03..0.08).contains(&share), "the network loses: {soaked:?}");
}
