//! The time between a packet and its ACK, as the destination states it to the window of a source (section
//! 3.6.13).

use crate::prelude::*;

/// The largest value of service_time, in nanoseconds.
const MAX_SERVICE_TIME: u64 = 0xffff * 128;

/// The time for which the device delays an ACK, if that is configurable.
const DELAY: Axis<Duration> = axis("ack-delay").values(&[
    ("2-ms", Duration::from_millis(2)),
    ("8-ms", Duration::from_millis(8)),
    ("30-ms", Duration::from_millis(30)),
]);

/// True for a retransmission of a packet that has arrived before.
const REPEATED: Axis<bool> = axis("packet").values(&[("first", false), ("retransmission", true)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/service-time", "service_time is at most the time between the packet and its ACK")
        .checks(&[CC_SERVICE_001])
        .over(&[&REPEATED, &MODE, &CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let (pdc, region) = t.open()?;
            for n in 1..=4 {
                let mut request = pdc.request(n).write(&region, 0, &[1; 64])?;
                if t.value(&REPEATED) {
                    timed_write(t, &pdc, &request)?;
                    t.pause(Duration::from_millis(2))?;
                    t.forget();
                    request = request.retx();
                }
                let (service, total) = timed_write(t, &pdc, &request)?;
                check_service_time(t, service, total);
            }
            Ok(())
        }),
    rule("nscc/service-time-delay", "The service_time of a delayed ACK includes the delay, up to its limit")
        .checks(&[CC_SERVICE_001])
        .over(&[&MODE, &CARRIER, &DELAY])
        .measure(|t| {
            t.congestion_or_both("nscc")?;
            t.try_configure("ack_delay", t.value(&DELAY).as_nanos() as u64)?;
            let (pdc, region) = t.open()?;
            let (_, round_trip) = timed_write(t, &pdc, &pdc.request(1).write(&region, 0, &[1; 64])?)?;
            let (service, total) =
                timed_write(t, &pdc, &pdc.request(2).quiet().write(&region, 0, &[1; 64])?)?;
            let Some(units) = service else { return skip("the ACK has no service_time") };
            // The time that is not service is the time in flight, which is about as long as before.
            let in_flight = round_trip * 4 + t.grace().as_nanos() as u64;
            if total.saturating_sub(in_flight) > MAX_SERVICE_TIME {
                t.one_of(
                    CC_SERVICE_001,
                    "service_time of a wait above 8.39 ms, in units",
                    &[0, 0xffff],
                    units,
                );
                return Ok(());
            }
            if matches!(units, 0 | 0xffff) {
                return skip("the service_time is 0 or 0xFFFF, which states no time");
            }
            check_service_time(t, service, total);
            let least =
                Bound::from(total.saturating_sub(in_flight)).tolerating("four round trips, and a pause");
            t.at_least(CC_SERVICE_001, "service_time in nanoseconds", least, u64::from(units) * 128);
            Ok(())
        }),
    rule(
        "nscc/service-time-read-data",
        "service_time in an ACK of read data is at most the time to that ACK",
    )
    .checks(&[CC_SERVICE_001])
    .needs(&[READ, NSCC])
    .over(&[&REPEATED, &MODE, &START])
    .run(|t| {
        t.make_patient()?;
        t.congestion_or_both("nscc")?;
        let (peer, mode, mtu) = (t.peer(0)?, t.value(&MODE), t.mtu());
        let mut target = Target::established(t, peer, mode)?;
        for n in 1..=4 {
            t.post(Post { mode, ..post(PostKind::Read, peer, mtu) })?;
            target.collect(t, n + 1)?;
            target.ack(t, n)?;
            let pdc = target.pdc.clone();
            let mut data = pdc.request(n - 1).ses(target.data_header(n, mtu, mtu, 0)?, &vec![7; mtu]);
            t.must_take_data(&pdc, data.psn);
            if t.value(&REPEATED) {
                timed_write(t, &pdc, &data)?;
                t.pause(Duration::from_millis(2))?;
                t.forget();
                data = data.retx();
            }
            let (service, total) = timed_write(t, &pdc, &data)?;
            check_service_time(t, service, total);
        }
        Ok(())
    }),
    rule(
        "nscc/service-time-coalesced",
        "service_time belongs to the packet that the ACK names, not to earlier ones",
    )
    .checks(&[CC_SERVICE_001])
    .needs(&[RUD, NSCC])
    .over(&[&CARRIER, &START])
    .measure(|t| {
        t.congestion_or_both("nscc")?;
        // One ACK then covers all four packets.
        t.try_configure("ack_delay", (t.grace() * 16).as_nanos() as u64)?;
        let (pdc, region) = t.open()?;
        for n in 1..4 {
            t.request(&pdc, pdc.request(n).quiet().write(&region, 0, &[1; 16])?)?;
            t.pause(t.grace())?;
        }
        let last = pdc.request(4).write(&region, 0, &[1; 16])?;
        let (service, total) = timed_write(t, &pdc, &last)?;
        check_service_time(t, service, total);
        Ok(())
    }),
];

/// Sends a packet. Returns the service_time of its ACK in units of 128 ns, and the time from the packet to
/// its ACK in nanoseconds.
fn timed_write(t: &mut Test<'_>, pdc: &Pdc, request: &Request) -> Result<(Option<u16>, u64), Stop> {
    let sent = t.now();
    t.request(pdc, request.clone())?;
    let within = t.soon() * 10;
    let (seen, _) = t.need("an ACK of it", within, |seen| seen.answers(pdc, request.psn))?;
    let service = seen.ack_cc().and_then(|ack| ack.service_time());
    Ok((service, (seen.at - sent).as_nanos() as u64))
}

/// Checks that a service_time is at most the total time. 0 states no time, and 0xFFFF has no upper end.
fn check_service_time(t: &mut Test<'_>, service: Option<u16>, total: u64) {
    let nanoseconds = match service {
        Some(units @ 1..=0xfffe) => u64::from(units) * 128,
        _ => 0,
    };
    let most = Bound::from(total + 128).tolerating("a unit of 128 ns");
    t.at_most(CC_SERVICE_001, "service_time in nanoseconds, compared with the total time", most, nanoseconds);
}
