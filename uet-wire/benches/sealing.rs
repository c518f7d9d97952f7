//! Sealing and opening 4 KiB in place, beside the crate `aes-gcm` alone: `cargo bench -p uet-wire --features tss --bench sealing`.
//!
//! Deriving a key is not included: a sender and a receiver keep it. Both sides take turns and the fastest of many rounds
//! counts, so another load on the machine hardly changes the ratio.

#[cfg(not(feature = "tss"))]
fn main() {}

#[cfg(feature = "tss")]
fn main() {
    measure::both();
}

#[cfg(feature = "tss")]
mod measure {
    use aes_gcm::aead::{AeadInOut, KeyInit};
    use aes_gcm::{Aes256Gcm, Nonce, Tag};
    use std::hint::black_box;
    use std::time::{Duration, Instant};
    use uet_wire::tss::{Direction, Domain, DomainKey, ICV, Mode, Outer, Tss, TssShort};

    const HEADER: usize = 12;
    const BYTES: usize = 4096;
    const ROUNDS: usize = 2_000;
    const REPETITIONS: u32 = 10;

    /// Returns the time of one call of each, by the fastest round.
    fn fastest(mut raw: impl FnMut(), mut whole: impl FnMut()) -> [Duration; 2] {
        let round = |work: &mut dyn FnMut()| {
            let begun = Instant::now();
            (0..REPETITIONS).for_each(|_| work());
            begun.elapsed() / REPETITIONS
        };
        let mut best = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            best = [best[0].min(round(&mut raw)), best[1].min(round(&mut whole))];
        }
        best
    }

    fn print(operation: &str, [raw, whole]: [Duration; 2]) {
        let (ratio, [raw, whole]) = (
            whole.as_secs_f64() / raw.as_secs_f64(),
            [raw, whole].map(|time| format!("{} ns", time.as_nanos())),
        );
        println!("{operation} {BYTES} bytes: aes-gcm {raw}, uet-wire {whole}, ratio {ratio:.3}");
    }

    pub(super) fn both() {
        let domain = Domain::new(7, Mode::Direct);
        let outer = Outer::native([10, 0, 0, 1], [10, 0, 1, 12], 7);
        let header = TssShort::build().head(|head| head.sdi(7)).tsc(|tsc| tsc.counter(1)).done();
        let header = header.expect("the values fit");
        let mut packet = vec![0xda; HEADER + BYTES + ICV];
        packet[..HEADER].copy_from_slice(header.bytes());
        let (tss, _) = Tss::parse(header.bytes()).expect("it is whole");
        let secret = DomainKey::new(&[7; 32]).expect("the length is right");
        let id = domain.key_id(&outer, &tss, Direction::Outgoing).expect("the addresses fit");
        let key = id.derive(&secret).expect("it is the key of the domain");

        let raw = Aes256Gcm::new(&[7; 32].into());
        let nonce = Nonce::from([1; 12]);
        let aad = [2; 8 + 4 + HEADER];
        let mut payload = vec![0xda; BYTES];
        let sealed = |payload: &mut [u8]| -> Tag {
            raw.encrypt_inout_detached(black_box(&nonce), black_box(&aad), payload.into())
                .expect("it is short")
        };
        let seal = fastest(
            || _ = black_box(sealed(black_box(&mut payload))),
            || domain.seal(&key, black_box(&outer), black_box(&mut packet)).expect("it is short"),
        );
        print("seal", seal);

        // An opened packet has another plaintext each time, so its copy is opened. The copy takes part in both.
        let tag = sealed(&mut payload);
        domain.seal(&key, &outer, &mut packet).expect("it is short");
        let (mut body, mut copy) = (payload.clone(), packet.clone());
        let open = fastest(
            || {
                body.copy_from_slice(&payload);
                let body = black_box(&mut body[..]);
                raw.decrypt_inout_detached(black_box(&nonce), black_box(&aad), body.into(), &tag)
                    .expect("it is authentic");
            },
            || {
                copy.copy_from_slice(&packet);
                domain.open(&key, black_box(&outer), black_box(&mut copy)).expect("it is authentic");
            },
        );
        print("open", open);
    }
}
