//! Arbitrary bytes as the requests of a suite, in pieces of any length.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::BufReader;
use uet_control::{Answer, Lines, Link, Request};
use uet_emulator::control::Control;
use uet_emulator::{Config, Nic};
use uet_model::Time;

/// The time between two requests.
const STEP: Duration = Duration::from_millis(1);

/// Requests beyond these are not played: they add time and no coverage.
const MOST: usize = 64;

pub(super) fn run(data: &[u8]) {
    let Some((piece, stream)) = data.split_first() else { return };
    let address = [10, 0, 0, 1].into();
    let Ok(mut nic) = Nic::new(address, Config::default()) else { return };
    let mut control = Control::new(&nic, Link::Inside { addr: address }, &[]);
    let mut lines = Lines::new(BufReader::with_capacity(usize::from(*piece).max(1), stream));
    // How many answers each identifier still has to get.
    let mut open: BTreeMap<u64, usize> = BTreeMap::new();
    let mut now = Time::ZERO;
    // An error ends the connection: a line that is not UTF-8.
    for line in std::iter::from_fn(|| lines.read().ok().flatten()).take(MOST) {
        *open.entry(identifier(&line)).or_default() += 1;
        if let Some(answer) = control.handle_line(now, &mut nic, &line) {
            close(&mut open, &answer);
        }
        drain(&mut control, &mut nic, now, &mut open);
        now += STEP;
    }
    // Each `wait_completion` is answered at the latest when its time is over.
    while let Some(until) = control.poll_timeout() {
        now = now.max(until);
        drain(&mut control, &mut nic, now, &mut open);
    }
    assert!(open.is_empty(), "without an answer: {open:?}");
}

/// Returns the identifier that the answer to a line repeats.
fn identifier(line: &str) -> u64 {
    match Request::parse(line) {
        Ok(request) => request.id,
        Err(error) => {
            let refusal = Request::refuse(line, &error);
            assert!(refusal.error.is_some_and(|refusal| !refusal.message.is_empty()));
            refusal.id
        }
    }
}

fn close(open: &mut BTreeMap<u64, usize>, answer: &Answer) {
    let line = answer.to_line();
    assert!(!line.contains('\n') && line.len() <= uet_control::MAX_LINE);
    assert_eq!(serde_json::from_str::<Answer>(&line).ok().as_ref(), Some(answer));
    assert_ne!(answer.ok.is_some(), answer.error.is_some(), "{line}");
    let left = open.get_mut(&answer.id).unwrap_or_else(|| panic!("nobody asked for {line}"));
    *left -= 1;
    if *left == 0 {
        open.remove(&answer.id);
    }
}

/// Takes all that the NIC has to say. Its packets are lost, so its operations end by their timeouts.
fn drain(control: &mut Control, nic: &mut Nic, now: Time, open: &mut BTreeMap<u64, usize>) {
    nic.handle_timeout(now);
    while nic.poll_transmit(now).is_some() {}
    while let Some(answer) = control.poll_answer(now, nic) {
        close(open, &answer);
    }
    while control.poll_event(nic).is_some() {}
}
