//! Fields of requests to the device at their full width: values with many bits, and pairs that differ in one
//! bit (sections 3.4.1, 3.4.2).

use super::steps::{PATTERN, read_bytes};
use crate::prelude::*;
use crate::{Data, Part, RequestSession};
use uet_control::PostReceive;

/// The position of a bit in its field, in percent of the width.
const BIT: Axis<u32> = axis("bit").values(&[
    ("lowest", 0),
    ("second", 13),
    ("lower-half", 40),
    ("upper-half", 60),
    ("next-to-highest", 90),
    ("highest", 100),
]);

/// The operation by which a request of the suite reaches its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueOperation {
    Write,
    Read,
    Send,
    Tagged,
}

const OPERATION: Axis<ValueOperation> = axis("operation").needing(&[
    ("write", ValueOperation::Write, &[WRITE]),
    ("read", ValueOperation::Read, &[READ]),
    ("send", ValueOperation::Send, &[RECEIVE, SEND]),
    ("tagged", ValueOperation::Tagged, &[RECEIVE, TSEND]),
]);

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderForm {
    Std,
    Medium,
    /// The small header if the operation needs neither a key nor match bits, otherwise the medium one.
    Shortest,
}

const HEADER_FORM: Axis<HeaderForm> = axis("header").values(&[
    ("std", HeaderForm::Std),
    ("medium", HeaderForm::Medium),
    ("shortest", HeaderForm::Shortest),
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

const FIELD: Axis<(AddressField, ValueOperation)> = axis("field").needing(&[
    ("write-job", (AddressField::Job, ValueOperation::Write), &[WRITE]),
    ("write-process", (AddressField::Process, ValueOperation::Write), &[WRITE]),
    ("write-index", (AddressField::Index, ValueOperation::Write), &[WRITE]),
    ("write-key", (AddressField::Selector, ValueOperation::Write), &[WRITE]),
    ("read-job", (AddressField::Job, ValueOperation::Read), &[READ]),
    ("read-process", (AddressField::Process, ValueOperation::Read), &[READ]),
    ("read-index", (AddressField::Index, ValueOperation::Read), &[READ]),
    ("read-key", (AddressField::Selector, ValueOperation::Read), &[READ]),
    ("send-job", (AddressField::Job, ValueOperation::Send), &[RECEIVE, SEND]),
    ("send-process", (AddressField::Process, ValueOperation::Send), &[RECEIVE, SEND]),
    ("send-index", (AddressField::Index, ValueOperation::Send), &[RECEIVE, SEND]),
    ("tagged-job", (AddressField::Job, ValueOperation::Tagged), &[RECEIVE, TSEND]),
    ("tagged-process", (AddressField::Process, ValueOperation::Tagged), &[RECEIVE, TSEND]),
    ("tagged-index", (AddressField::Index, ValueOperation::Tagged), &[RECEIVE, TSEND]),
    ("tagged-bits", (AddressField::Selector, ValueOperation::Tagged), &[RECEIVE, TSEND]),
    ("tagged-initiator", (AddressField::Initiator, ValueOperation::Tagged), &[RECEIVE, TSEND]),
]);

/// True if the read data is too long for an ACK.
const DATA: Axis<bool> = axis("data").values(&[("in-ack", false), ("return", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("field-values/target-address", "A target uses all bits of an address and replies with equal ids")
        .checks(&[
            SES_ADDR_001,
            SES_RESP_003,
            SES_PLACE_001,
            SES_READ_001,
            SES_READ_005,
            SES_READ_006,
            SES_MATCH_006,
        ])
        .over(&[&PATTERN, &OPERATION, &HEADER_FORM, &MODE])
        .run(|t| {
            let (bits, operation) = (t.value(&PATTERN), t.value(&OPERATION));
            let (address, id) = (AddressValues::of(bits), bits as u16);
            let message = address.message(operation).named(id);
            let part = in_form(t, operation, &message)?;
            match operation {
                ValueOperation::Write | ValueOperation::Read => {
                    let (region, mut held) = address.exposed(t)?;
                    let mut session = t.session();
                    let psn = session.ask(t, &part)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    if operation == ValueOperation::Write {
                        held[..40].copy_from_slice(&bytes());
                        t.expect_memory(SES_PLACE_001, &region, 0, &held)?;
                    } else {
                        let pieces = session.data(t, SES_READ_001, 40)?;
                        let piece = pieces.first();
                        if t.value(&HEADER_FORM) == HeaderForm::Std {
                            let header = piece.and_then(Data::long);
                            let named = header.map(|header| header.read_request_message_id());
                            t.check(SES_READ_005, "read_request_message_id", Some(id), named);
                        } else {
                            let header = piece.and_then(Data::short);
                            let named = header.map(|header| header.original_request_psn());
                            t.check(SES_READ_006, "original_request_psn", Some(psn), named);
                        }
                    }
                    check_error_ids(t, &mut session, Message { selector: message.selector ^ 1, ..message })
                }
                ValueOperation::Send | ValueOperation::Tagged => {
                    let posted = t.posted(address.receive(operation == ValueOperation::Tagged))?;
                    let mut session = t.session();
                    let psn = session.ask(t, &part)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    t.expect_received(SES_MATCH_006, &posted, &bytes())?;
                    check_error_ids(t, &mut session, Message { process: message.process ^ 1, ..message })
                }
            }
        }),
    rule("field-values/one-bit", "An address that differs in one bit does not reach the region or receive")
        .checks(&[SES_ADDR_007])
        .over(&[&FIELD, &BIT, &HEADER_FORM])
        .run(|t| {
            let ((field, operation), percent) = (t.value(&FIELD), t.value(&BIT));
            let width = match field {
                AddressField::Job => 24,
                AddressField::Process | AddressField::Index => 12,
                AddressField::Selector if matches!(operation, ValueOperation::Tagged) => 64,
                AddressField::Selector => 48,
                AddressField::Initiator => 32,
            };
            let bit = 1u64 << (percent * (width - 1) / 100);
            let address =
                AddressValues { initiator: 0x7000_0001, ..AddressValues::of(0x0123_4567_89ab_c5a5) };
            let other = match field {
                AddressField::Job => AddressValues { job: address.job ^ bit as u32, ..address },
                AddressField::Process => AddressValues { process: address.process ^ bit as u16, ..address },
                AddressField::Index => AddressValues { index: address.index ^ bit as u16, ..address },
                AddressField::Selector => AddressValues { selector: address.selector ^ bit, ..address },
                AddressField::Initiator => {
                    AddressValues { initiator: address.initiator ^ bit as u32, ..address }
                }
            };
            let part = in_form(t, operation, &other.message(operation))?;
            let mut session = t.session();
            match operation {
                ValueOperation::Write | ValueOperation::Read => {
                    let (region, held) = address.exposed(t)?;
                    let psn = session.ask(t, &part)?;
                    session.refused(t, SES_ADDR_007, psn)?;
                    t.still_holds(SES_ADDR_007, &region, &held)
                }
                ValueOperation::Send | ValueOperation::Tagged => {
                    let posted = t.posted(address.receive(operation == ValueOperation::Tagged))?;
                    let psn = session.ask(t, &part)?;
                    session.answer(t, psn)?;
                    t.expect_waiting(SES_ADDR_007, &posted)?;
                    t.check_memory(SES_ADDR_007, &posted.buffer, 0, &posted.before)
                }
            }
        }),
    rule("field-values/addressing", "The flag rel selects between equal addresses with and without a job")
        .checks(&[SES_ADDR_001, SES_MATCH_006, SES_PLACE_001])
        .over(&[&RELATIVE, &OPERATION, &HEADER_FORM, &MODE])
        .run(|t| {
            // Two objects with equal process, index and selector, one with a job and one without. An absolute
            // address selects its process whatever the job of the request.
            let (relative, operation) = (t.value(&RELATIVE), t.value(&OPERATION));
            let address = AddressValues::of(0x0123_4567_89ab_c5a5);
            let job = if relative { address.job } else { address.job ^ 0x5a_5a5a };
            let message = Message { relative, job, ..address.message(operation) };
            let part = in_form(t, operation, &message)?;
            let mut session = t.session();
            match operation {
                ValueOperation::Write | ValueOperation::Read => {
                    let AddressValues { process, index, selector, .. } = address;
                    let key = Hex64(selector);
                    let expose = |job, fill: u32| {
                        let fill = Some(uet_control::Fill::Seed(fill));
                        move |region| ExposeRegion { key, job, process, index, fill, ..region }
                    };
                    let (with_job, _) = t.exposed(64, expose(Some(address.job), 1))?;
                    let (without_job, _) = t.exposed(64, expose(None, 2))?;
                    let (region, other) =
                        if relative { (with_job, without_job) } else { (without_job, with_job) };
                    let (held, others) = (t.memory(&region, 0, 40)?, t.memory(&other, 0, 64)?);
                    let psn = session.ask(t, &part)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    if operation == ValueOperation::Write {
                        t.expect_memory(SES_PLACE_001, &region, 0, &bytes())?;
                        return t.check_memory(SES_ADDR_001, &other, 0, &others);
                    }
                    let pieces = session.data(t, SES_ADDR_001, 40)?;
                    t.same_bytes(SES_ADDR_001, "the data of the region", &held, &read_bytes(&pieces));
                    Ok(())
                }
                ValueOperation::Send | ValueOperation::Tagged => {
                    let receive = address.receive(operation == ValueOperation::Tagged);
                    let with_job = t.posted(receive.clone())?;
                    let without_job = t.posted(PostReceive { job: None, ..receive })?;
                    let (expected, other) =
                        if relative { (with_job, without_job) } else { (without_job, with_job) };
                    let psn = session.ask(t, &part)?;
                    session.accepted(t, SES_ADDR_001, psn)?;
                    t.expect_received(SES_MATCH_006, &expected, &bytes())?;
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
        .over(&[&PATTERN, &DATA, &MODE])
        .run(|t| {
            let (bits, on_return) = (t.value(&PATTERN), t.value(&DATA));
            let length = if on_return { t.beyond_ack()?.max(40) } else { 8 };
            let (id, job) = (bits as u16, bits as u32 & 0xff_ffff);
            // Responses carry no generation: these bits are reserved.
            let generation = if t.claims("receive") { bits as u8 } else { 0 };
            let (region, held) =
                t.exposed(u64::from(length), |region| ExposeRegion { job: Some(job), generation, ..region })?;
            let mut session = t.session();
            session.ask(t, &Message::read(&region, 0, length).named(id).whole()?)?;
            let pieces = session.data(t, SES_READ_001, length as usize)?;
            t.same_bytes(SES_READ_001, "the data of the region", &held, &read_bytes(&pieces));
            let header = pieces.first().and_then(Data::long);
            let named = header.map(|header| header.read_request_message_id());
            t.check(SES_READ_005, "read_request_message_id", Some(id), named);
            t.check(SES_RESP_003, "job_id", Some(job), header.map(|header| header.job_id()));
            Ok(())
        }),
];

fn bytes() -> Vec<u8> {
    pattern(77).take(40).collect()
}

/// The values in the address of a region or receive.
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
        // The highest bits of a key have a meaning or are reserved.
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

    fn message(self, operation: ValueOperation) -> Message {
        let message = match operation {
            ValueOperation::Write => Message::new(Opcode::UET_WRITE).data(&bytes()),
            ValueOperation::Read => Message { length: 40, ..Message::new(Opcode::UET_READ) },
            ValueOperation::Send => Message::send(&bytes()),
            ValueOperation::Tagged => Message::tagged(0, &bytes()),
        };
        let AddressValues { job, process, index, selector, initiator } = self;
        let selector = if operation == ValueOperation::Send { 0 } else { selector };
        Message { job, process, index, selector, initiator, ..message }
    }
}

/// Returns the only packet of a message with the header of this instance.
fn in_form(t: &Test<'_>, operation: ValueOperation, message: &Message) -> Result<Part, Stop> {
    Ok(match t.value(&HEADER_FORM) {
        HeaderForm::Std => message.whole()?,
        HeaderForm::Shortest if operation == ValueOperation::Send => message.small()?,
        HeaderForm::Medium | HeaderForm::Shortest => message.medium()?,
    })
}

/// Sends a request to an unknown object, and checks the ids of the error.
fn check_error_ids(t: &mut Test<'_>, session: &mut RequestSession, message: Message) -> Outcome {
    let (id, job) = (message.id ^ 0x0ff0, AddressValues::of(t.value(&PATTERN)).job);
    let psn = session.ask(t, &message.named(id).whole()?)?;
    let answer = session.answer(t, psn)?;
    if answer.is_ok() {
        return Err(Stop::Inconclusive("no error answers the request to an unknown object".into()));
    }
    let ids = answer.response.map(|response| (response.message_id(), response.job_id()));
    t.check(SES_RESP_003, "message_id and job_id", Some((id, job)), ids);
    Ok(())
}
