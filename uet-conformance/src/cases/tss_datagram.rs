//! Secured datagrams, which have no context (sections 3.5.6 and 3.7).

use super::datagram::{bytes, datagram};
use super::source_uud;
use super::tss::forged;
use crate::receives::room;
use crate::{Need, Outcome, Rule, SECURED, Test, Wire};
use uet_control::Status;
use uet_wire::catalogue::*;

const SOURCE: &[Need] = &[Need::Capability("uud"), Need::Capability("datagram"), Need::Capability("tss")];
const TARGET: &[Need] = &[
    Need::Capability("uud"),
    Need::Capability("datagram"),
    Need::Capability("receive"),
    Need::Capability("tss"),
];

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-datagram/sent",
        title: "A datagram leaves protected under its domain, each with a counter of its own",
        requirements: &[TSS_ICV_001, TSS_CLEAR_002],
        needs: SOURCE,
        axes: &[&SECURED],
        run: sent,
    },
    Rule {
        id: "tss-datagram/received",
        title: "A secured datagram fills a buffer, and gets no answer",
        requirements: &[TSS_ICV_001, PDS_UUD_001],
        needs: TARGET,
        axes: &[&SECURED],
        run: received,
    },
    Rule {
        id: "tss-datagram/altered",
        title: "A datagram with a wrong ICV fills no buffer, and gets no answer",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: TARGET,
        axes: &[&SECURED],
        run: altered,
    },
];

/// Returns a datagram in the clear.
fn wire(t: &mut Test<'_>, data: &[u8]) -> Result<Wire, crate::Stop> {
    let part = datagram(data).whole()?;
    let pdc = t.initiate();
    let request = pdc.request(0).ses(part.ses, &part.payload);
    Ok(pdc.wire(&t.datagram(&request)?))
}

fn sent(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let peer = t.peer(0)?;
    for _ in 0..2 {
        let sent = t.post(source_uud::datagram(peer, 100))?;
        let within = t.later();
        let (seen, _) = t.expect(TSS_ICV_001, "a datagram", within, source_uud::uud)?;
        t.check(TSS_ICV_001, "bytes", 100, seen.payload().len());
        t.ends(TSS_ICV_001, sent, Status::Ok)?;
    }
    let shield = t.shield()?;
    let (clear, secured) = (shield.clear, shield.seen.len());
    t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
    t.at_least(TSS_ICV_001, "secured packets:", 2, secured);
    Ok(())
}

fn received(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let posted = t.posted(room(128))?;
    let packet = wire(t, &bytes(100))?;
    t.send_wire(&packet)?;
    t.expect_silence(PDS_UUD_001, "nothing at all", |_| Some(()))?;
    t.expect_received(TSS_ICV_001, &posted, &bytes(100))?;
    Ok(())
}

fn altered(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let posted = t.posted(room(128))?;
    let packet = wire(t, &bytes(100))?;
    let packet = forged(t, &packet)?;
    t.send_as_it_is(&packet)?;
    t.expect_silence(TSS_ICV_003, "nothing at all", |_| Some(()))?;
    t.expect_waiting(TSS_ICV_002, &posted)?;
    let packet = wire(t, &bytes(60))?;
    t.send_wire(&packet)?;
    t.expect_received(TSS_ICV_002, &posted, &bytes(60))?;
    Ok(())
}
