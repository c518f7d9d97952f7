//! Converts `post` requests to operations.

use super::{Control, Operation, process, refusal, route};
use crate::nic::Nic;
use bytes::Bytes;
use uet_control::{ErrorCode, Form, Operated, Post, PostKind, Refusal};
use uet_model::ses::{
    self, Access, AtomicOn, Key, Operand, Peer, PostError, Region, RegionId, ResourceIndex, Work,
};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Longest message. The limit exists because the memory of this side is bounded too.
const MESSAGE: u64 = 16 << 20;

/// Index of the memory of rendezvous sends. It is unlikely to collide with indices of a suite.
const SOURCE_INDEX: u16 = 0xfff;
const SOURCE_PROCESS: u16 = 0xfff;
const SOURCE_KEY: u64 = 1 << 47;

impl Control {
    pub(super) fn post(&mut self, nic: &mut Nic, post: Post) -> Result<Operated, Refusal> {
        self.make_room()?;
        if post.length > MESSAGE {
            return Err(bad(format!("length: must be at most {MESSAGE} bytes")));
        }
        let known = self.peer(post.peer)?;
        let peer = Peer {
            route: route(known, post.mode, post.class),
            relative: !post.remote.absolute,
            pid: post.remote.process.unwrap_or(known.process),
            index: post.remote.index,
            generation: post.remote.generation,
            initiator: known.initiator,
        };
        let number = self.number();
        let bytes = self.take_memory(post.length)? as u64;
        let (work, source) = work(nic, &post, &peer, number).inspect_err(|_| self.memory -= bytes)?;
        let operation = ses::Operation {
            peer,
            work,
            header_data: post.header_data.map(|data| data.0),
            delivery_complete: post.delivery_complete,
            form: post.form.map(|form| match form {
                Form::Std => ses::Form::Std,
                Form::Medium => ses::Form::Medium,
                Form::Small => ses::Form::Small,
            }),
        };
        let id = nic.post(operation).map_err(|error| {
            source.and_then(|source| nic.withdraw(source));
            self.memory -= bytes;
            let code = match error {
                PostError::Full => ErrorCode::Exhausted,
                PostError::Form => ErrorCode::Unsupported,
                _ => ErrorCode::BadRequest,
            };
            refusal(code, error.to_string())
        })?;
        self.by_id.insert(id, number);
        let entry = Operation { want_data: post.want_data, region: None, source, bytes, ended: None };
        self.operations.insert(number, entry);
        Ok(Operated { operation: number })
    }
}

/// Returns the work of a request and the local region that it needs.
fn work(nic: &mut Nic, post: &Post, peer: &Peer, number: u64) -> Result<(Work, Option<RegionId>), Refusal> {
    let length = post.length as u32;
    let data = || Bytes::from(bytes(post));
    let tag = || post.tag.map_or(0, |tag| tag.0);
    let (key, offset) = (Key(post.remote.key.0), post.remote.offset.0);
    let work = match post.kind {
        PostKind::NoOp => Work::NoOp,
        PostKind::Write => Work::Write { key, offset, data: data() },
        PostKind::Read => Work::Read { key, offset, length },
        PostKind::Send => Work::Send { tag: None, data: data() },
        PostKind::Tsend => Work::Send { tag: Some(tag()), data: data() },
        PostKind::Datagram => Work::Datagram { data: data() },
        PostKind::DeferrableSend => Work::Deferrable { tag: None, data: data() },
        PostKind::DeferrableTsend => Work::Deferrable { tag: Some(tag()), data: data() },
        PostKind::Atomic => atomic(post, false)?,
        PostKind::FetchAtomic => atomic(post, true)?,
        PostKind::RendezvousSend | PostKind::RendezvousTsend => {
            let tag = (post.kind == PostKind::RendezvousTsend).then(tag);
            let eager =
                u32::try_from(post.eager.unwrap_or(0)).map_err(|_| bad("eager: must be below 2^32"))?;
            let source = source(nic, post, peer, number)?;
            let work = Work::Rendezvous { tag, source, offset: 0, length, eager: eager.min(length) };
            return Ok((work, Some(source)));
        }
    };
    Ok((work, None))
}

/// Exposes a message for the target to read.
fn source(nic: &mut Nic, post: &Post, peer: &Peer, number: u64) -> Result<RegionId, Refusal> {
    let job = peer.relative.then_some(peer.route.job);
    let index = ResourceIndex { process: process(job, SOURCE_PROCESS), index: SOURCE_INDEX };
    let region = Region { key: Key(SOURCE_KEY | number), base: 0, access: Access::READ, data: bytes(post) };
    nic.expose(index, region).map_err(|error| refusal(ErrorCode::Internal, error.to_string()))
}

fn bytes(post: &Post) -> Vec<u8> {
    let length = post.length as usize;
    post.fill.as_ref().map_or_else(|| vec![0; length], |fill| fill.bytes(length))
}

fn bad(message: impl Into<String>) -> Refusal {
    refusal(ErrorCode::BadRequest, message)
}

fn atomic(post: &Post, fetch: bool) -> Result<Work, Refusal> {
    let unknown = |what: &str, name: &Option<String>| match name {
        Some(name) => bad(format!("{what}: unknown name '{name}'")),
        None => bad(format!("{what} is missing")),
    };
    let (opcode, datatype) = (&post.atomic_opcode, &post.atomic_datatype);
    let opcode: AtomicOpcode =
        opcode.as_ref().and_then(|name| name.parse().ok()).ok_or_else(|| unknown("atomic_opcode", opcode))?;
    let datatype: AtomicDatatype = datatype
        .as_ref()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| unknown("atomic_datatype", datatype))?;
    let operand = match opcode {
        _ if opcode.is_compare_and_swap() => {
            let (compare, swap) = (value("compare", &post.compare)?, value("swap", &post.swap)?);
            Operand::Swap { compare, swap }
        }
        AtomicOpcode::READ | AtomicOpcode::INVAL => Operand::None(post.length as u32),
        _ => Operand::Elements(bytes(post).into()),
    };
    let offset = post.remote.offset.0;
    let on = match post.tag {
        Some(tag) => AtomicOn::Tagged { tag: tag.0, offset },
        None => AtomicOn::Memory { key: Key(post.remote.key.0), offset },
    };
    Ok(Work::Atomic { on, opcode, datatype, operand, fetch })
}

/// Parses a number of up to 16 bytes, most significant byte first.
fn value(name: &str, digits: &Option<uet_control::Hex>) -> Result<u128, Refusal> {
    let bytes = digits.as_ref().map_or(&[][..], |digits| &digits.0);
    if bytes.len() > 16 {
        return Err(bad(format!("{name}: must be at most 16 bytes")));
    }
    Ok(bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
}
