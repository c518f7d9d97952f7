//! The congestion state that a destination sends.

use core::time::Duration;
use uet_model::Time;
use uet_model::cc::{AckCcState, Answered, CcParams, Destination, NetworkParams, Penalty, RcvdBytes};
use uet_wire::Units24;
use uet_wire::pds::AckCc;
use uet_wire::registry::CcType;

fn rcvd_bytes(sizes: &[u32]) -> u32 {
    let mut destination = Destination::new(&CcParams::default());
    sizes.iter().for_each(|size| destination.received(*size));
    match destination.state_for_ack(Time(0), Answered::default(), Penalty::default()) {
        AckCcState::Nscc { rcvd_bytes, .. } => rcvd_bytes.get(),
        AckCcState::Credit { .. } => panic!("NSCC's state"),
    }
}

#[test]
fn rcvd_bytes_rounds_up_the_sum() {
    assert_eq!(rcvd_bytes(&[]), 0);
    assert_eq!(rcvd_bytes(&[1]), 1);
    assert_eq!(rcvd_bytes(&[256]), 1);
    assert_eq!(rcvd_bytes(&[257]), 2);
    assert_eq!(rcvd_bytes(&[128, 128]), 1, "not each by itself");
    assert_eq!(rcvd_bytes(&[u32::MAX, 1]), 0, "4 GiB are 2^24 units");
    assert_eq!(rcvd_bytes(&[u32::MAX, 2]), 1);
}

#[test]
fn rcvd_bytes_wraps() {
    let mut source = RcvdBytes::default();
    let mut counted = 0;
    let mut destination = Destination::new(&CcParams::default());
    for size in [1 << 30, 1 << 30, 1 << 30, 1 << 30, 100, 4208, 60] {
        destination.received(size);
        let state = destination.state_for_ack(Time(0), Answered::default(), Penalty::default());
        let AckCcState::Nscc { rcvd_bytes, .. } = state else { panic!("NSCC's state") };
        counted += source.newly(Some(rcvd_bytes), 0);
    }
    assert_eq!(counted, (1 << 32) + 4368_u64.next_multiple_of(256));
}

#[test]
fn stale_count_is_ignored() {
    let mut source = RcvdBytes::default();
    let units = |units| Some(Units24::new(units).unwrap());
    assert_eq!(source.newly(units(100), 0), 25_600);
    assert_eq!(source.newly(units(99), 0), 0);
    assert_eq!(source.newly(units(100), 0), 0);
    assert_eq!(source.newly(units((1 << 23) + 100), 0), 0, "half the circle is behind");
    assert_eq!(source.newly(units((1 << 23) + 99), 0), (1 << 31) - 256);
}

#[test]
fn count_excludes_bytes_already_reported() {
    let mut source = RcvdBytes::default();
    let units = |units| Some(Units24::new(units).unwrap());
    assert_eq!(source.newly(None, 1000), 1000);
    assert_eq!(source.newly(None, 200), 200);
    assert_eq!(source.newly(units(4), 0), 0, "1,024 of the 1,200");
    assert_eq!(source.newly(units(6), 0), 512 - 176);
    assert_eq!(source.newly(units(7), 0), 256);
}

fn service_time(span: Option<u64>) -> u16 {
    let answered = Answered { arrived: Some(Time(1_000)), ..Answered::default() };
    let answered = if span.is_some() { answered } else { Answered::default() };
    let now = Time(1_000) + Duration::from_nanos(span.unwrap_or(0));
    match Destination::new(&CcParams::default()).state_for_ack(now, answered, Penalty::default()) {
        AckCcState::Nscc { service_time, .. } => service_time,
        AckCcState::Credit { .. } => panic!("NSCC's state"),
    }
}

#[test]
fn service_time_is_in_128_ns() {
    assert_eq!(service_time(None), 0, "not valid");
    assert_eq!(service_time(Some(0)), 1, "0 would say that it is not");
    assert_eq!(service_time(Some(191)), 1);
    assert_eq!(service_time(Some(192)), 2, "to the nearest");
    assert_eq!(service_time(Some(1024)), 8);
    assert_eq!(service_time(Some(65_534 * 128)), 0xfffe);
    assert_eq!(service_time(Some(8_388_480)), 0xffff);
    assert_eq!(service_time(Some(u64::MAX / 2)), 0xffff, "or more");
}

#[test]
fn penalty_and_its_end_are_sent() {
    let state = |penalty: Penalty| match Destination::new(&CcParams::default()).state_for_ack(
        Time(0),
        Answered::default(),
        penalty,
    ) {
        AckCcState::Nscc { restore, penalty, .. } => (penalty, restore),
        AckCcState::Credit { .. } => panic!("NSCC's state"),
    };
    let mut penalty = Penalty::default();
    assert_eq!(state(penalty), (0, false));
    penalty.set(0);
    assert_eq!(state(penalty), (0, false), "there was none");
    penalty.set(200);
    assert_eq!(state(penalty), (127, false));
    penalty.set(0);
    assert_eq!(state(penalty), (0, true));
    penalty.set(1);
    assert_eq!(state(penalty), (1, false));
}

#[test]
fn state_is_written_to_the_ack() {
    let network = NetworkParams::default();
    let answered =
        Answered { arrived: Some(Time(0)), out_of_order: Some(70_000), granted: Units24::new(77).unwrap() };
    let mut penalty = Penalty::default();
    penalty.set(9);
    for params in [CcParams::nscc(&network), CcParams::both(&network), CcParams::none(&network)] {
        let mut destination = Destination::new(&params.unwrap());
        destination.received(512);
        let state = destination.state_for_ack(Time(1280), answered, penalty);
        let ack = state.onto(AckCc::build()).done().unwrap();
        assert_eq!((ack.cc_type(), ack.credit()), (CcType::NSCC, None));
        assert_eq!((ack.service_time(), ack.rc(), ack.rcv_cwnd_pend()), (Some(10), Some(false), Some(9)));
        assert_eq!(
            (ack.rcvd_bytes(), ack.ooo_count()),
            (Units24::new(2), Some(0xfffe)),
            "0xffff says no count"
        );
    }
    let destination = Destination::new(&CcParams::rccc(&network).unwrap());
    let ack = destination.state_for_ack(Time(1280), answered, penalty).onto(AckCc::build()).done().unwrap();
    assert_eq!((ack.cc_type(), ack.rcvd_bytes()), (CcType::CREDIT, None));
    assert_eq!((ack.credit(), ack.ooo_count()), (Units24::new(77), Some(0xfffe)));
    penalty.set(0);
    let state = Destination::new(&CcParams::default()).state_for_ack(Time(0), Answered::default(), penalty);
    let ack = state.onto(AckCc::build()).done().unwrap();
    assert_eq!((ack.rc(), ack.ooo_count()), (Some(true), Some(0xffff)));
}
