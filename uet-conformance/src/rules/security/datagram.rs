//! Secured datagrams (UUD), which have no context (sections 3.5.6 and 3.7).

use super::steps::{FLAW, Flaw, send_flawed};
use crate::prelude::*;
use crate::rules::steps::{datagram_bytes, datagram_of, post_datagram, uud_header};
use crate::{SECURED, Wire};

const SOURCE: &[Need] = &[UUD, DATAGRAM, TSS];

const TARGET: &[Need] = &[UUD, DATAGRAM, RECEIVE, TSS];

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&SECURED])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-datagram/sent", "A device protects each datagram that it sends under its domain")
        .checks(&[TSS_ICV_001, TSS_CLEAR_002])
        .needs(SOURCE)
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            for _ in 0..2 {
                let sent = t.post(post_datagram(peer, 100))?;
                let within = t.later();
                let (seen, _) = t.expect(TSS_ICV_001, "a datagram", within, uud_header)?;
                t.check(TSS_ICV_001, "bytes", 100, seen.payload().len());
                t.ends(TSS_ICV_001, sent, Status::Ok)?;
            }
            let shield = t.shield()?;
            let (clear, secured) = (shield.clear, shield.seen.len());
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            t.at_least(TSS_ICV_001, "secured packets:", 2, secured);
            Ok(())
        }),
    rule("tss-datagram/received", "A secured datagram is delivered and gets no answer")
        .checks(&[TSS_ICV_001, PDS_UUD_001])
        .needs(TARGET)
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let posted = t.posted(room(128))?;
            let packet = datagram_wire(t, &datagram_bytes(100))?;
            t.send_wire(&packet)?;
            t.expect_silence(PDS_UUD_001, "any packet", |_| Some(()))?;
            t.expect_received(TSS_ICV_001, &posted, &datagram_bytes(100))?;
            Ok(())
        }),
    rule("tss-datagram/wrong-icv", "A datagram that does not open is not delivered and gets no answer")
        .checks(&[TSS_ICV_002, TSS_ICV_003, TSS_CLEAR_001, TSS_SDI_001])
        .needs(TARGET)
        .over(&[&SECURED, &FLAW])
        .run(|t| {
            let flaw = t.value(&FLAW);
            let [effect, answer] = match flaw {
                Flaw::WrongIcv => [TSS_ICV_002, TSS_ICV_003],
                Flaw::Plaintext => [TSS_CLEAR_001; 2],
                Flaw::UnknownDomain => [TSS_SDI_001; 2],
            };
            if flaw == Flaw::Plaintext {
                t.configure("require_protection", true)?;
            }
            t.secure(t.value(&SECURED))?;
            let posted = t.posted(room(128))?;
            let packet = datagram_wire(t, &datagram_bytes(100))?;
            send_flawed(t, &packet, flaw)?;
            t.expect_silence(answer, "any packet", |_| Some(()))?;
            t.expect_waiting(effect, &posted)?;
            let packet = datagram_wire(t, &datagram_bytes(60))?;
            t.send_wire(&packet)?;
            t.expect_received(effect, &posted, &datagram_bytes(60))?;
            Ok(())
        }),
];

/// Returns a datagram without protection.
fn datagram_wire(t: &mut Test<'_>, data: &[u8]) -> Result<Wire, Stop> {
    let part = datagram_of(data).whole()?;
    let pdc = t.initiate();
    let request = pdc.request(0).ses(part.ses, &part.payload);
    Ok(pdc.wire(&t.datagram(&request)?))
}
