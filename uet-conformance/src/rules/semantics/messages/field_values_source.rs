//! Fields of requests of the device at their full width, and message ids that are in use at the same time
//! (section 3.4.2).

use super::steps::{FORM, PATTERN};
use crate::prelude::*;
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

/// The values that a request has beside its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    All,
    /// No header data.
    Rank,
    /// No header data, and rank 0.
    Nothing,
}

const BESIDE: Axis<Beside> = axis("beside").values(&[
    ("header-data-and-rank", Beside::All),
    ("rank", Beside::Rank),
    ("nothing", Beside::Nothing),
]);

/// The meaning of resource_index in a small header to memory.
const SMALL_INDEX: Axis<Option<&str>> =
    axis("small-index").values(&[("own", None), ("index", Some("index"))]);

const MANY: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("field-values/device-request", "A request of the device carries every bit of the posted values")
        .checks(CARRIED)
        .over(&[&PATTERN, &KIND, &FORM])
        .run(|t| by_device(t, Some(t.value(&FORM)))),
    rule("field-values/chosen-header", "The header that the device chooses carries all posted values")
        .checks(CARRIED)
        .over(&[&KIND, &PATTERN, &BESIDE, &SMALL_INDEX])
        .run(|t| {
            // A device that can choose a shorter header does.
            t.try_configure("form", "shortest")?;
            if let Some(meaning) = t.value(&SMALL_INDEX) {
                t.try_configure("small_index", meaning)?;
            }
            by_device(t, None)
        }),
    rule("field-values/many-messages", "Hundreds of unanswered messages of the device have different ids")
        .checks(&[SES_CUT_003])
        .over(&[&MANY, &MODE])
        .run(|t| {
            const COUNT: usize = 300;
            let (kind, mode) = (t.value(&MANY), t.value(&MODE));
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, uet_control::Mode::Rud)?;
            for _ in 0..COUNT {
                t.post(Post { mode, form: Some(Form::Std), ..post(kind, peer, 8) })?;
            }
            target.watch(t, t.grace())?;
            let mut ids = std::collections::BTreeMap::new();
            for got in target.got.iter().filter(|got| !got.request.retx()) {
                ids.entry(got.said()?.message_id).or_insert(got.request.psn());
            }
            let messages = target.order().len();
            require(
                messages > 257,
                format!("only {messages} messages of the device wait for their answers"),
            )?;
            t.check(SES_CUT_003, "ids of the messages that wait", messages, ids.len());
            Ok(())
        }),
];

/// Posts an operation, with this header unless the device chooses.
fn by_device(t: &mut Test<'_>, form: Option<Form>) -> Outcome {
    let (bits, kind) = (t.value(&PATTERN), t.value(&KIND));
    let (small, short) = (form == Some(Form::Small), form.is_some_and(|form| form != Form::Std));
    let long = matches!(kind, PostKind::RendezvousSend | PostKind::DeferrableTsend | PostKind::Atomic);
    if long && short {
        return skip("the operation needs a standard header");
    }
    let tagged = matches!(kind, PostKind::Tsend | PostKind::DeferrableTsend);
    let keyed = matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic);
    let beside = t.value(&BESIDE);
    let (job, rank) = (bits as u32 & 0xff_ffff, bits as u32);
    let initiator = if beside == Beside::Nothing { 0 } else { rank };
    let address = t.address(0)?;
    let peer = t.call(AddPeer { address, port: None, job, process: 1, initiator })?.peer;
    // No access passes 2^64.
    let offset = if keyed { bits & !0xfff } else { 0 };
    // Of the highest 16 bits of a key, all but the first are reserved, the vendor's, or make it an optimized
    // one.
    let key = if keyed && !small { bits & 0x8000_ffff_ffff_ffff } else { 0 };
    let (process, index, generation) = (bits as u16 & 0xfff, bits as u16 & 0xfff, bits as u8);
    let remote = Remote {
        key: Hex64(key),
        offset: Hex64(offset),
        process: Some(process),
        index,
        generation,
        ..Remote::default()
    };
    let sends = matches!(kind, PostKind::Send | PostKind::Tsend);
    let header_data = (sends && !short && beside == Beside::All).then_some(Hex64(bits));
    let tag = tagged.then_some(Hex64(bits));
    let amo = kind == PostKind::Atomic;
    let posted = Post {
        remote,
        header_data,
        tag,
        form,
        eager: (kind == PostKind::RendezvousSend).then_some(8),
        atomic_opcode: amo.then(|| "SUM".to_owned()),
        atomic_datatype: amo.then(|| "UINT64".to_owned()),
        ..post(kind, peer, if amo { 8 } else { 100 })
    };
    t.post(posted)?;
    let target = Target::accept(t)?;
    let said = target.said(0)?;
    require(form.is_some_and(|form| said.form == form), "the device chose another header")?;
    let told = said.address;
    t.check(SES_ADDR_001, "job_id and pid_on_fep", (job, process), (told.job_id(), told.pid_on_fep()));
    t.check(SES_ADDR_002, "resource_index", index, told.resource_index());
    t.check(SES_GEN_001, "ri_generation", generation, told.ri_generation());
    if keyed && !small {
        t.check(SES_MEM_001, "memory_key", Some(key), said.memory_key);
    }
    if keyed {
        t.check(SES_PLACE_001, "buffer_offset", Some(offset), said.buffer_offset);
    }
    if !small {
        // Only a tagged send needs its rank: a small header has none. A peer with rank 0 names none, and a
        // device may then choose one.
        if initiator != 0 && (tagged || said.initiator.is_some()) {
            t.check(SES_MATCH_002, "initiator", Some(initiator), said.initiator);
        }
        if tagged {
            t.check(SES_MATCH_001, "match_bits", Some(bits), said.match_bits);
        }
    }
    t.check(SES_CUT_005, "hd", header_data.is_some(), said.head.hd());
    if header_data.is_some() {
        t.check(SES_CUT_005, "header_data", Some(bits), said.header_data);
    }
    Ok(())
}
