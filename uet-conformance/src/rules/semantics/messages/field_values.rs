//! Fields of requests to the device at their full width: values with all bits, with the highest and the lowest
//! bit, and pairs that differ in one bit (sections 3.4.1, 3.4.2).

use super::steps::{PATTERN, read_bytes};
use crate::prelude::*;
use crate::{Data, RequestSession};
use uet_control::PostReceive;

/// The place of a bit in its field, in percent of the width.
const BIT: Axis<u32> = axis("bit").values(&[
    ("lowest", 0),
    ("second", 13),
    ("lower-half", 40),
    ("upper-half", 60),
    ("next-to-highest", 90),
    ("highest", 100),
]);

/// The object that a request of the suite reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Write,
    Read,
    Send,
    Tagged,
}

const REACHED: Axis<Reached> = axis("by").needing(&[
    ("write", Reached::Write, &[WRITE]),
    ("read", Reached::Read, &[READ]),
    ("send", Reached::Send, &[RECEIVE, SEND]),
    ("tagged", Reached::Tagged, &[RECEIVE, TSEND]),
]);

const RELATIVE: Axis<bool> = axis("rel").values(&[("relative", true), ("absolute", false)]);

/// A field of the address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressField {
    Job,
    Process,
    Index,
    /// The memory key or the match bits.
    Selector,
    Initiator,
}

const FIELD: Axis<(AddressField, Reached)> = axis("field").needing(&[
    ("write-job", (AddressField::Job, Reached::Write), &[WRITE]),
    ("write-process", (AddressField::Process, Reached::Write), &[WRITE]),
    ("write-index", (AddressField::Index, Reached::Write), &[WRITE]),
    ("write-key", (AddressField::Selector, Reached::Write), &[WRITE]),
    ("read-job", (AddressField::Job, Reached::Read), &[READ]),
    ("read-process", (AddressField::Process, Reached::Read), &[READ]),
    ("read-index", (AddressField::Index, Reached::Read), &[READ]),
    ("read-key", (AddressField::Selector, Reached::Read), &[READ]),
    ("send-job", (AddressField::Job, Reached::Send), &[RECEIVE, SEND]),
    ("send-process", (AddressField::Process, Reached::Send), &[RECEIVE, SEND]),
    ("send-index", (AddressField::Index, Reached::Send), &[RECEIVE, SEND]),
    ("tagged-job", (AddressField::Job, Reached::Tagged), &[RECEIVE, TSEND]),
    ("tagged-process", (AddressField::Process, Reached::Tagged), &[RECEIVE, TSEND]),
    ("tagged-index", (AddressField::Index, Reached::Tagged), &[RECEIVE, TSEND]),
    ("tagged-bits", (AddressField::Selector, Reached::Tagged), &[RECEIVE, TSEND]),
    ("tagged-initiator", (AddressField::Initiator, Reached::Tagged), &[RECEIVE, TSEND]),
]);

/// True if the read data is too long for an ACK.
const WAY: Axis<bool> = axis("way").values(&[("in-ack", false), ("return", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("field-values/target-address", "A target uses all bits of an address and replies with equal ids")
        .checks(&[SES_ADDR_001, SES_RESP_003, SES_PLACE_001, SES_READ_001, SES_READ_005, SES_MATCH_006])
        .over(&[&PATTERN, &REACHED, &MODE])
        .run(|t| {
            let (bits, reached) = (t.value(&PATTERN), t.value(&REACHED));
            let (place, id) = (AddressValues::of(bits), bits as u16);
            let message = place.message(reached).named(id);
            match reached {
                Reached::Write | Reached::Read => {
                    let (region, mut held) = place.exposed(t)?;
                    let mut session = t.session();
                    let psn = session.ask(t, &message.whole()?)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    if reached == Reached::Write {
                        held[..40].copy_from_slice(&bytes());
                        t.expect_memory(SES_PLACE_001, &region, 0, &held)?;
                    } else {
                        let pieces = session.data(t, SES_READ_001, 40)?;
                        let named = pieces
                            .first()
                            .and_then(Data::long)
                            .map(|header| header.read_request_message_id());
                        t.check(SES_READ_005, "read_request_message_id", Some(id), named);
                    }
                    refused_with_ids(t, &mut session, Message { selector: message.selector ^ 1, ..message })
                }
                Reached::Send | Reached::Tagged => {
                    let posted = t.posted(place.receive(reached == Reached::Tagged))?;
                    let mut session = t.session();
                    let psn = session.ask(t, &message.whole()?)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    t.expect_received(SES_MATCH_006, &posted, &bytes())?;
                    refused_with_ids(t, &mut session, Message { process: message.process ^ 1, ..message })
                }
            }
        }),
    rule("field-values/one-bit", "An address that differs in one bit does not reach the region or receive")
        .checks(&[SES_ADDR_007])
        .over(&[&FIELD, &BIT])
        .run(|t| {
            let ((field, reached), percent) = (t.value(&FIELD), t.value(&BIT));
            let width = match field {
                AddressField::Job => 24,
                AddressField::Process | AddressField::Index => 12,
                AddressField::Selector if matches!(reached, Reached::Tagged) => 64,
                AddressField::Selector => 48,
                AddressField::Initiator => 32,
            };
            let bit = 1u64 << (percent * (width - 1) / 100);
            let place = AddressValues { initiator: 0x7000_0001, ..AddressValues::of(0x0123_4567_89ab_c5a5) };
            let other = match field {
                AddressField::Job => AddressValues { job: place.job ^ bit as u32, ..place },
                AddressField::Process => AddressValues { process: place.process ^ bit as u16, ..place },
                AddressField::Index => AddressValues { index: place.index ^ bit as u16, ..place },
                AddressField::Selector => AddressValues { selector: place.selector ^ bit, ..place },
                AddressField::Initiator => AddressValues { initiator: place.initiator ^ bit as u32, ..place },
            };
            let part = other.message(reached).whole()?;
            let mut session = t.session();
            match reached {
                Reached::Write | Reached::Read => {
                    let (region, held) = place.exposed(t)?;
                    let psn = session.ask(t, &part)?;
                    session.refused(t, SES_ADDR_007, psn)?;
                    t.still_holds(SES_ADDR_007, &region, &held)
                }
                Reached::Send | Reached::Tagged => {
                    let posted = t.posted(place.receive(reached == Reached::Tagged))?;
                    let psn = session.ask(t, &part)?;
                    session.answer(t, psn)?;
                    t.expect_waiting(SES_ADDR_007, &posted)?;
                    t.check_memory(SES_ADDR_007, &posted.buffer, 0, &posted.before)
                }
            }
        }),
    rule("field-values/addressing", "The flag rel selects between equal addresses with and without a job")
        .checks(&[SES_ADDR_001, SES_MATCH_006, SES_PLACE_001])
        .over(&[&RELATIVE, &REACHED, &MODE])
        .run(|t| {
            // An object of a job and one without a job, at the same process, index and selector.
            let (relative, reached) = (t.value(&RELATIVE), t.value(&REACHED));
            let place = AddressValues::of(0x0123_4567_89ab_c5a5);
            let message = Message { relative, ..place.message(reached) };
            let mut session = t.session();
            match reached {
                Reached::Write | Reached::Read => {
                    let AddressValues { process, index, selector, .. } = place;
                    let key = Hex64(selector);
                    let expose = |job, fill: u32| {
                        let fill = Some(uet_control::Fill::Seed(fill));
                        move |region| ExposeRegion { key, job, process, index, fill, ..region }
                    };
                    let (of_job, _) = t.exposed(64, expose(Some(place.job), 1))?;
                    let (of_all, _) = t.exposed(64, expose(None, 2))?;
                    let (region, other) = if relative { (of_job, of_all) } else { (of_all, of_job) };
                    let (held, others) = (t.memory(&region, 0, 40)?, t.memory(&other, 0, 64)?);
                    let psn = session.ask(t, &message.whole()?)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    if reached == Reached::Write {
                        t.expect_memory(SES_PLACE_001, &region, 0, &bytes())?;
                        return t.check_memory(SES_ADDR_001, &other, 0, &others);
                    }
                    let pieces = session.data(t, SES_ADDR_001, 40)?;
                    let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
                    t.same_bytes(SES_ADDR_001, "the data, beside memory", &held, &whole);
                    Ok(())
                }
                Reached::Send | Reached::Tagged => {
                    let receive = place.receive(reached == Reached::Tagged);
                    let of_job = t.posted(receive.clone())?;
                    let of_all = t.posted(PostReceive { job: None, ..receive })?;
                    let (mine, other) = if relative { (of_job, of_all) } else { (of_all, of_job) };
                    let psn = session.ask(t, &message.whole()?)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    t.expect_received(SES_MATCH_006, &mine, &bytes())?;
                    t.expect_waiting(SES_ADDR_001, &other)
                }
            }
        }),
    rule("field-values/pdcid", "PDCIDs that differ in one bit name different contexts")
        .checks(&[PDS_SYN_005, PDS_PDC_003])
        .needs(&[WRITE])
        .over(&[&BIT, &MODE])
        .run(|t| {
            let bit = 1u16 << (t.value(&BIT) * 15 / 100);
            let (first, region) = t.open()?;
            let local = PdcId(if first.local.0 ^ bit == 0 { first.local.0 } else { first.local.0 ^ bit });
            let mut second = Pdc { local, ..t.initiate() };
            t.request(&second, second.request(0).write(&region, region.length - 1, &[0])?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_005, &second, second.psn(0))?;
            second.remote = Some(ack.spdcid());
            for (pdc, n) in [(&first, 1u8), (&second, 2)] {
                t.request(pdc, pdc.request(1).write(&region, u64::from(n), &[n])?)?;
                t.expect_cack(PDS_PDC_003, pdc, pdc.psn(1))?;
            }
            t.expect_memory(PDS_PDC_003, &region, 1, &[1, 2])
        }),
    rule("field-values/read-ids", "Read data repeats every bit of the message_id and job_id of its request")
        .checks(&[SES_READ_005, SES_READ_001, SES_RESP_003])
        .needs(&[READ])
        .over(&[&PATTERN, &WAY, &MODE])
        .run(|t| {
            let (bits, on_return) = (t.value(&PATTERN), t.value(&WAY));
            let length = if on_return { t.beyond_ack()?.max(40) } else { 8 };
            let (id, job) = (bits as u16, bits as u32 & 0xff_ffff);
            // The responses name no generation: their bits in its place are reserved.
            let generation = if t.claims("receive") { bits as u8 } else { 0 };
            let (region, held) =
                t.exposed(u64::from(length), |region| ExposeRegion { job: Some(job), generation, ..region })?;
            let mut session = t.session();
            session.ask(t, &Message::read(&region, 0, length).named(id).whole()?)?;
            let pieces = session.data(t, SES_READ_001, length as usize)?;
            let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
            t.same_bytes(SES_READ_001, "the data, beside memory", &held, &whole);
            let told = pieces.first().and_then(Data::long);
            let named = told.map(|header| header.read_request_message_id());
            t.check(SES_READ_005, "read_request_message_id", Some(id), named);
            t.check(SES_RESP_003, "job_id", Some(job), told.map(|header| header.job_id()));
            Ok(())
        }),
];

fn bytes() -> Vec<u8> {
    pattern(77).take(40).collect()
}

/// The address of a region or receive.
#[derive(Clone, Copy, Debug)]
struct AddressValues {
    job: u32,
    process: u16,
    index: u16,
    selector: u64,
    initiator: u32,
}

impl AddressValues {
    fn of(bits: u64) -> Self {
        // The highest bits of a key have a meaning, and those below are reserved.
        let selector = bits & 0xffff_ffff_ffff;
        let (index, initiator) = (bits as u16 & 0xfff, bits as u32);
        AddressValues {
            job: bits as u32 & 0xff_ffff,
            process: bits as u16 & 0xfff,
            index,
            selector,
            initiator,
        }
    }

    fn receive(self, tagged: bool) -> PostReceive {
        let plain = if tagged { tagged_room(64, self.selector) } else { room(64) };
        let initiator = tagged.then_some(self.initiator);
        PostReceive { job: Some(self.job), process: self.process, index: self.index, initiator, ..plain }
    }

    fn exposed(self, t: &mut Test<'_>) -> Result<(Region, Vec<u8>), Stop> {
        let AddressValues { job, process, index, selector, .. } = self;
        let (job, key) = (Some(job), Hex64(selector));
        t.exposed(64, |region| ExposeRegion { key, job, process, index, ..region })
    }

    fn message(self, reached: Reached) -> Message {
        let message = match reached {
            Reached::Write => Message::new(uet_wire::registry::Opcode::UET_WRITE).data(&bytes()),
            Reached::Read => Message { length: 40, ..Message::new(uet_wire::registry::Opcode::UET_READ) },
            Reached::Send => Message::send(&bytes()),
            Reached::Tagged => Message::tagged(0, &bytes()),
        };
        let AddressValues { job, process, index, selector, initiator } = self;
        let selector = if reached == Reached::Send { 0 } else { selector };
        Message { job, process, index, selector, initiator, ..message }
    }
}

/// Sends a request that reaches nothing, and checks the ids of the error.
fn refused_with_ids(t: &mut Test<'_>, session: &mut RequestSession, message: Message) -> Outcome {
    let other = message.id ^ 0x0ff0;
    let psn = session.ask(t, &message.named(other).whole()?)?;
    let job = message_job(session, t, psn)?;
    t.check(SES_RESP_003, "message_id and job_id", Some((other, message_bits(t))), job);
    Ok(())
}

fn message_bits(t: &Test<'_>) -> u32 {
    AddressValues::of(t.value(&PATTERN)).job
}

fn message_job(
    session: &mut RequestSession,
    t: &mut Test<'_>,
    psn: uet_wire::Psn,
) -> Result<Option<(u16, u32)>, Stop> {
    let answer = session.answer(t, psn)?;
    if answer.is_ok() {
        return Err(Stop::Inconclusive("the request to nothing succeeded".into()));
    }
    Ok(answer.response.map(|response| (response.message_id(), response.job_id())))
}
