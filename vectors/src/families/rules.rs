//! Packets that break one requirement each, absent from the other families, and packets that just keep it.

use super::parts::{JOB, built, data, request, std, whole};
use crate::case::{Case, Family};
use uet_wire::FrameBuilder;
use uet_wire::pds::{Rudi, Uud};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode};
use uet_wire::ses::{Atomic, Small};

pub(super) fn family() -> Family {
    let mut family = Family::new("rules", "the catalogue of requirements");
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let pds = || built(request(333, 332).done());
    let sum = || built(Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done());
    for (word, som, eom) in [("first", true, false), ("middle", false, false), ("last", false, true)] {
        let atomic =
            std(Opcode::UET_ATOMIC, 1).head(|h| h.som(som).eom(eom)).memory_key(0xacce5).request_length(8);
        let atomic = if word == "first" { atomic } else { atomic.payload_length(8) };
        let frame = FrameBuilder::new(pds()).ses(built(atomic.done())).ext(sum()).payload(data(0, 8));
        add(&format!("atomic-{word}-of-several"), "an atomic is a message of one packet", frame);
        let datagram = std(Opcode::UET_DATAGRAM_SEND, 0).head(|h| h.som(som).eom(eom)).request_length(32);
        let datagram = if word == "first" { datagram } else { datagram.payload_length(8) };
        let frame = FrameBuilder::new(Uud::new()).ses(built(datagram.done())).payload(data(0, 8));
        add(&format!("datagram-{word}-of-several"), "a datagram is a message of one packet", frame);
    }
    let datagram = built(std(Opcode::UET_DATAGRAM_SEND, 1).head(whole).request_length(8).done());
    add(
        "datagram-with-id",
        "a datagram has message id 0",
        FrameBuilder::new(Uud::new()).ses(datagram).payload(data(0, 8)),
    );
    let atomic =
        Small::build(Opcode::UET_ATOMIC).request_length(8).address(|a| a.job_id(JOB).resource_index(5));
    let idempotent = built(Rudi::request(7).done());
    let frame = FrameBuilder::new(idempotent).ses(built(atomic.done())).ext(sum()).payload(data(0, 8));
    add("atomic-by-rudi", "an atomic is not idempotent", frame);
    let read = built(std(Opcode::UET_READ, 1).head(whole).memory_key(0xacce5).request_length(8).done());
    add(
        "read-with-payload",
        "a read request carries nothing",
        FrameBuilder::new(pds()).ses(read).payload(data(0, 8)),
    );
    for (name, length) in [("payload-8192", 8192), ("payload-8193", 8193)] {
        let what = format!("{length} bytes of payload; 8,192 is the most");
        let frame =
            FrameBuilder::new(pds()).ses(super::parts::write(1, length as u32)).payload(data(0, length));
        add(name, &what, frame);
    }
    family
}
