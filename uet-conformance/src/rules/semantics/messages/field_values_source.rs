//! Fields of requests of the device at their full width, and message ids that are in use at the same time
//! (section 3.4.2).

use super::steps::PATTERN;
use crate::prelude::*;
use crate::rules::steps::{FORM, next_fields};
use crate::serve::SesFields;
use std::collections::BTreeMap;
use uet_control::{AddPeer, Remote};

/// The requirements on the values in a request of the device.
const CARRIED: &[&Requirement] = &[
    SES_ADDR_001,
    SES_ADDR_002,
    SES_GEN_001,
    SES_MEM_001,
    SES_PLACE_001,
    SES_MATCH_001,
    SES_MATCH_002,
    SES_CUT_005,
];

const KIND: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("rendezvous", PostKind::RendezvousSend, &[RENDEZVOUS_SEND]),
    ("deferrable", PostKind::DeferrableTsend, &[DEFERRABLE_TSEND]),
]);

/// The optional fields that the device is asked to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionalFields {
    All,
    /// No header data.
    Rank,
    /// No header data, and rank 0.
    None,
}

const OPTIONAL_FIELDS: Axis<OptionalFields> = axis("optional-fields").values(&[
    ("header-data-and-rank", OptionalFields::All),
    ("rank", OptionalFields::Rank),
    ("none", OptionalFields::None),
]);

/// The meaning of resource_index in a small header to memory.
const SMALL_INDEX: Axis<Option<&str>> =
    axis("small-index").values(&[("default", None), ("index", Some("index"))]);

const MANY: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

/// The kinds of two operations in a row.
const KINDS: Axis<(PostKind, PostKind)> = axis("kinds").needing(&[
    ("write-write", (PostKind::Write, PostKind::Write), &[WRITE]),
    ("write-tagged", (PostKind::Write, PostKind::Tsend), &[WRITE, TSEND]),
    ("read-write", (PostKind::Read, PostKind::Write), &[READ, WRITE]),
    ("send-send", (PostKind::Send, PostKind::Send), &[SEND]),
    ("tagged-send", (PostKind::Tsend, PostKind::Send), &[TSEND, SEND]),
    ("tagged-tagged", (PostKind::Tsend, PostKind::Tsend), &[TSEND]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("field-values/device-request", "A request of the device carries every bit of the posted values")
        .checks(CARRIED)
        .over(&[&PATTERN, &KIND, &FORM])
        .run(|t| check_request(t, Some(t.value(&FORM)))),
    rule("field-values/chosen-header", "The header that the device chooses carries all posted values")
        .checks(CARRIED)
        .over(&[&KIND, &PATTERN, &OPTIONAL_FIELDS, &SMALL_INDEX])
        .run(|t| {
            // A device that can choose a shorter header is configured to do so.
            t.try_configure("form", "shortest")?;
            if let Some(meaning) = t.value(&SMALL_INDEX) {
                t.try_configure("small_index", meaning)?;
            }
            check_request(t, None)
        }),
    rule(
        "field-values/successive",
        "Each request carries the values of its own operation, not of one before",
    )
    .checks(CARRIED)
    .over(&[&KINDS, &PATTERN, &MODE])
    .run(|t| {
        let (bits, (first, second)) = (t.value(&PATTERN), t.value(&KINDS));
        let full = PostedValues::new(first, bits, OptionalFields::All, Some(Form::Std));
        let bare = PostedValues::new(second, !bits, OptionalFields::None, Some(Form::Std));
        // With absolute addressing, a request need not name the job.
        let relative = second != PostKind::Write;
        let bare = PostedValues { job: full.job, initiator: full.initiator, relative, ..bare };
        let peer = full.peer(t)?;
        // Nothing is sent to this peer, which is the newest one.
        PostedValues { job: full.job ^ 1, initiator: !full.initiator, ..bare }.peer(t)?;
        let mut target: Option<Target> = None;
        for values in [&full, &bare, &full] {
            values.post(t, peer, Some(Form::Std))?;
            let fields = match &mut target {
                Some(target) => next_fields(t, target)?,
                None => target.insert(Target::accept(t)?).said(0)?,
            };
            values.check(t, Some(Form::Std), &fields);
            if let Some(target) = &target {
                target.ack(t, target.highest())?;
            }
        }
        Ok(())
    }),
    rule("field-values/many-messages", "Hundreds of unanswered messages of the device have different ids")
        .checks(&[SES_CUT_003])
        .over(&[&MANY, &MODE])
        .run(|t| {
            const COUNT: usize = 300;
            let (kind, mode) = (t.value(&MANY), t.value(&MODE));
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for _ in 0..COUNT {
                t.post(Post { mode, form: Some(Form::Std), ..post(kind, peer, 8) })?;
            }
            target.watch(t, t.grace())?;
            let mut ids = BTreeMap::new();
            for packet in target.got.iter().filter(|packet| !packet.request.retx()) {
                ids.entry(packet.said()?.message_id).or_insert(packet.request.psn());
            }
            let messages = target.order().len();
            require(
                messages > 257,
                format!("only {messages} messages of the device wait for their responses"),
            )?;
            t.check(SES_CUT_003, "ids of the unanswered messages", messages, ids.len());
            Ok(())
        }),
];

/// The values that the device is asked to send.
#[derive(Clone, Copy)]
struct PostedValues {
    kind: PostKind,
    relative: bool,
    job: u32,
    /// The rank of the initiator, 0 for none.
    initiator: u32,
    process: u16,
    index: u16,
    generation: u8,
    offset: Option<u64>,
    key: Option<u64>,
    tag: Option<u64>,
    header_data: Option<u64>,
}

impl PostedValues {
    /// Sets these bits in each field that this header has.
    fn new(kind: PostKind, bits: u64, optional: OptionalFields, form: Option<Form>) -> PostedValues {
        let (small, short) = (form == Some(Form::Small), form.is_some_and(|form| form != Form::Std));
        let tagged = matches!(kind, PostKind::Tsend | PostKind::DeferrableTsend);
        let keyed = matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic);
        let tells = !matches!(kind, PostKind::Read | PostKind::Atomic);
        PostedValues {
            kind,
            relative: true,
            job: bits as u32 & 0xff_ffff,
            initiator: if optional == OptionalFields::None { 0 } else { bits as u32 },
            process: bits as u16 & 0xfff,
            index: bits as u16 & 0xfff,
            generation: bits as u8,
            // The access ends below 2^64.
            offset: keyed.then_some(bits & !0xfff),
            // The other bits of the highest 16 are reserved, the vendor's, or make the key an optimized one.
            key: (keyed && !small).then_some(bits & 0x8000_ffff_ffff_ffff),
            tag: tagged.then_some(bits),
            header_data: (tells && !short && optional == OptionalFields::All).then_some(bits),
        }
    }

    /// Adds a peer with this job and rank.
    fn peer(&self, t: &mut Test<'_>) -> Result<u64, Stop> {
        let address = t.address(0)?;
        let peer = AddPeer { address, port: None, job: self.job, process: 1, initiator: self.initiator };
        Ok(t.call(peer)?.peer)
    }

    /// Has the device post an operation with these values.
    fn post(&self, t: &mut Test<'_>, peer: u64, form: Option<Form>) -> Outcome {
        let kind = self.kind;
        let remote = Remote {
            key: Hex64(self.key.unwrap_or(0)),
            offset: Hex64(self.offset.unwrap_or(0)),
            process: Some(self.process),
            index: self.index,
            generation: self.generation,
            absolute: !self.relative,
        };
        let atomic = kind == PostKind::Atomic;
        let operation = Post {
            remote,
            header_data: self.header_data.map(Hex64),
            tag: self.tag.map(Hex64),
            form,
            eager: (kind == PostKind::RendezvousSend).then_some(8),
            atomic_opcode: atomic.then(|| "SUM".to_owned()),
            atomic_datatype: atomic.then(|| "UINT64".to_owned()),
            ..post(kind, peer, if atomic { 8 } else { 100 })
        };
        t.post(operation).map(drop)
    }

    /// Checks that a request carries these values.
    fn check(&self, t: &mut Test<'_>, form: Option<Form>, fields: &SesFields) {
        let address = fields.address;
        t.check(SES_ADDR_001, "rel", self.relative, fields.head.rel());
        t.check(SES_ADDR_001, "pid_on_fep", self.process, address.pid_on_fep());
        if self.relative {
            t.check(SES_ADDR_001, "job_id", self.job, address.job_id());
        }
        t.check(SES_ADDR_002, "resource_index", self.index, address.resource_index());
        t.check(SES_GEN_001, "ri_generation", self.generation, address.ri_generation());
        if self.key.is_some() {
            t.check(SES_MEM_001, "memory_key", self.key, fields.memory_key);
        }
        if self.offset.is_some() {
            t.check(SES_PLACE_001, "buffer_offset", self.offset, fields.buffer_offset);
        }
        if form != Some(Form::Small) {
            // A small header has no initiator, and only a tagged send needs one. For rank 0, a device may
            // choose one.
            if self.initiator != 0 && (self.tag.is_some() || fields.initiator.is_some()) {
                t.check(SES_MATCH_002, "initiator", Some(self.initiator), fields.initiator);
            }
            if self.tag.is_some() {
                t.check(SES_MATCH_001, "match_bits", self.tag, fields.match_bits);
            }
        }
        t.check(SES_CUT_005, "hd", self.header_data.is_some(), fields.head.hd());
        if self.header_data.is_some() {
            t.check(SES_CUT_005, "header_data", self.header_data, fields.header_data);
        }
    }
}

/// Posts an operation, with this header unless the device chooses it, and checks the values of its request.
fn check_request(t: &mut Test<'_>, form: Option<Form>) -> Outcome {
    let long = [PostKind::RendezvousSend, PostKind::DeferrableTsend, PostKind::Atomic];
    if long.contains(&t.value(&KIND)) && form.is_some_and(|form| form != Form::Std) {
        return skip("the operation needs a standard header");
    }
    let values = PostedValues::new(t.value(&KIND), t.value(&PATTERN), t.value(&OPTIONAL_FIELDS), form);
    let peer = values.peer(t)?;
    values.post(t, peer, form)?;
    let fields = Target::accept(t)?.said(0)?;
    require(form.is_none_or(|form| fields.form == form), "the device chose another header")?;
    values.check(t, form, &fields);
    Ok(())
}
