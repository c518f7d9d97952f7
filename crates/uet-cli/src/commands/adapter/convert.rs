//! Operations and completions, between the control channel and libfabric.

use uet_control::{Completion, ErrorCode, Hex, Hex64, Mode, Post, PostKind, Refusal, Status};
use uet_fabric::{Code, atomic_opcode, atomic_width, datatype};
use uet_fi::caller::{Failed, Finished, Posting, Work};
use uet_wire::registry::ReturnCode;

pub(super) fn refusal(code: ErrorCode, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

pub(super) fn unsupported(message: impl Into<String>) -> Refusal {
    refusal(ErrorCode::Unsupported, message)
}

/// An operation or a receive in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) length: u64,
    pub(super) want_data: bool,
    pub(super) is_receive: bool,
    /// True if the completion tells its length.
    pub(super) has_length: bool,
}

/// Returns whether an operation addresses memory instead of a queue.
pub(super) fn accesses_memory(kind: PostKind) -> bool {
    matches!(kind, PostKind::Write | PostKind::Read | PostKind::Atomic | PostKind::FetchAtomic)
}

/// Converts an operation, apart from its peer.
pub(super) fn posting(post: &Post) -> Result<Posting, Refusal> {
    let ordered = match post.mode {
        Mode::Rud => false,
        Mode::Rod => true,
        Mode::Rudi | Mode::Uud => return Err(unsupported("libfabric does not choose this mode")),
    };
    if post.form.is_some() || post.class != 0 || post.eager.is_some() {
        return Err(unsupported("libfabric does not choose the form of a header, nor the traffic class"));
    }
    let length = post.length as usize;
    let bytes = || post.fill.as_ref().map_or_else(|| vec![0; length], |fill| fill.bytes(length));
    let (key, offset) = (post.remote.key.0, post.remote.offset.0);
    let work = match post.kind {
        PostKind::Send => Work::Send { tag: None, data: bytes() },
        PostKind::Tsend => Work::Send { tag: Some(post.tag.unwrap_or_default().0), data: bytes() },
        PostKind::Write => Work::Write { key, offset, data: bytes() },
        PostKind::Read => Work::Read { key, offset, length },
        PostKind::Atomic => atomic(post, false, bytes())?,
        PostKind::FetchAtomic => atomic(post, true, bytes())?,
        _ => return Err(unsupported("libfabric has no such operation")),
    };
    let cq_data = post.header_data.map(|data| data.0);
    if cq_data.is_some() && !matches!(work, Work::Send { .. } | Work::Write { .. }) {
        return Err(unsupported("libfabric has remote data for sends and writes only"));
    }
    Ok(Posting { to: 0, ordered, work, cq_data, delivery_complete: post.delivery_complete })
}

/// Returns libfabric's number of a name.
fn number<T: ToString>(name: &Option<String>, known: impl Fn(u32) -> Option<T>) -> Result<u32, Refusal> {
    let name = name.as_deref().unwrap_or_default();
    let found = (0..64).find(|number| known(*number).is_some_and(|known| known.to_string() == name));
    found.ok_or_else(|| unsupported(format!("libfabric has no '{name}'")))
}

fn atomic(post: &Post, fetch: bool, operand: Vec<u8>) -> Result<Work, Refusal> {
    if post.tag.is_some() {
        return Err(unsupported("atomics of libfabric address memory"));
    }
    let (number_of, datatype_number) =
        (number(&post.atomic_opcode, atomic_opcode)?, number(&post.atomic_datatype, datatype)?);
    let width = datatype(datatype_number).and_then(atomic_width);
    let width = width.ok_or_else(|| unsupported("libfabric has no such element"))?;
    let compares = atomic_opcode(number_of).is_some_and(|opcode| opcode.is_compare_and_swap());
    if compares && !fetch {
        return Err(unsupported("a compare and swap of libfabric returns the old value"));
    }
    let (operand, compare) = match compares {
        true => (element(post.swap.as_ref(), width), Some(element(post.compare.as_ref(), width))),
        false => (operand, None),
    };
    if operand.is_empty() || operand.len() % width != 0 {
        return Err(refusal(ErrorCode::BadRequest, "length: not a whole number of elements"));
    }
    Ok(Work::Atomic {
        key: post.remote.key.0,
        offset: post.remote.offset.0,
        opcode: number_of,
        datatype: datatype_number,
        count: operand.len() / width,
        operand,
        compare,
        fetch,
    })
}

/// Returns an element in memory, whose digits have their most significant byte first.
fn element(digits: Option<&Hex>, width: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = digits.map_or_else(Vec::new, |digits| digits.0.iter().rev().copied().collect());
    bytes.resize(width, 0);
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Converts a completion.
pub(super) fn completion(finished: &Finished, running: &Running) -> Completion {
    let received = finished.length as u64;
    let done = Completion {
        operation: finished.number,
        status: Status::Ok,
        length: if running.has_length { received } else { running.length },
        return_code: Some(ReturnCode::OK.to_string()),
        header_data: finished.cq_data.map(Hex64),
        data: running.want_data.then(|| Hex(finished.bytes.clone().unwrap_or_default())),
        message: String::new(),
    };
    let Some(failed) = &finished.failed else { return done };
    let return_code = failed.provider_text.parse::<ReturnCode>().ok();
    // The buffer is full, and the provider has received the message otherwise.
    if failed.code == Code::ETRUNC && return_code == Some(ReturnCode::OK) {
        let message = format!("{} bytes did not fit the buffer", failed.cut_off);
        return Completion { message, ..done };
    }
    let message = match return_code {
        Some(_) => failed.text.clone(),
        None => format!("{}: {} ({})", failed.text, failed.provider_text, failed.provider_code),
    };
    Completion {
        status: status(failed, return_code, running.is_receive),
        length: if running.is_receive { received } else { 0 },
        return_code: return_code.map(|code| code.to_string()),
        header_data: None,
        data: None,
        message,
        ..done
    }
}

fn status(failed: &Failed, return_code: Option<ReturnCode>, is_receive: bool) -> Status {
    match (return_code, failed.code) {
        (Some(ReturnCode::CANCELLED), _) | (_, Code::ECANCELED) => Status::Cancelled,
        _ if is_receive => Status::Failed,
        (Some(ReturnCode::UNDELIVERABLE), _) => Status::Failed,
        (Some(_), _) => Status::Refused,
        (None, Code::ETIMEDOUT | Code::ECONNABORTED | Code::ENOMEM | Code::EIO | Code::EOTHER) => {
            Status::Failed
        }
        (None, _) => Status::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(code: Code, text: &str) -> Finished {
        let failed = Failed {
            code,
            provider_code: 3,
            cut_off: 5,
            text: "Input/output error".into(),
            provider_text: text.into(),
        };
        Finished { number: 4, length: 3, failed: Some(failed), ..Finished::default() }
    }

    #[test]
    fn return_codes_pass_as_they_arrive() {
        let running = Running { length: 8, want_data: false, is_receive: false, has_length: false };
        let refused = completion(&finished(Code::ENOKEY, "BAD_MKEY"), &running);
        assert_eq!((refused.status, refused.return_code.as_deref()), (Status::Refused, Some("BAD_MKEY")));
        let lost = completion(&finished(Code::ETIMEDOUT, "UNDELIVERABLE"), &running);
        assert_eq!((lost.status, lost.length), (Status::Failed, 0));
        let other = completion(&finished(Code::EIO, "cable unplugged"), &running);
        assert_eq!((other.status, other.return_code.as_deref()), (Status::Failed, None));
        assert!(other.message.contains("cable unplugged (3)"), "{}", other.message);
        let receive = Running { is_receive: true, has_length: true, ..running };
        let cut = completion(&finished(Code::ETRUNC, "OK"), &receive);
        assert_eq!((cut.status, cut.length), (Status::Ok, 3));
    }

    #[test]
    fn compare_and_swap_has_elements_in_memory_order() {
        let post = Post {
            atomic_opcode: Some("CSWAP".into()),
            atomic_datatype: Some("UINT32".into()),
            compare: Some(Hex(vec![1, 2])),
            swap: Some(Hex(vec![3])),
            ..Post::new(PostKind::FetchAtomic, 1, 4)
        };
        let Work::Atomic { operand, compare, count, .. } = posting(&post).unwrap().work else { panic!() };
        assert_eq!((operand, compare, count), (vec![3, 0, 0, 0], Some(vec![2, 1, 0, 0]), 1));
        let unknown = Post { atomic_opcode: Some("TWIST".into()), ..post };
        assert_eq!(posting(&unknown).unwrap_err().code, ErrorCode::Unsupported);
    }
}
