//! An opened provider: a domain with its endpoints, memory and completions.

use super::buffer::CallerBuffer;
use super::offer::MR_ENDPOINT;
use super::{Libfabric, Offer};
use crate::sys::*;
use core::ffi::{CStr, c_int, c_void};
use core::mem::zeroed;
use core::ptr;
use std::collections::{HashMap, VecDeque};
use uet_fabric::{Code, Error, Result, flags};

/// The longest name of an endpoint, in bytes.
const NAME: usize = 1024;

/// The format `FI_CQ_FORMAT_TAGGED`.
const TAGGED: u32 = 4;

/// An object of libfabric, which closes with this value.
#[derive(Debug)]
pub(super) struct Object(pub(super) *mut Fid);

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: libfabric made the object, and it is closed once. An object in use stays open.
        unsafe { ((*(*self.0).ops).close)(self.0) };
    }
}

/// The first fields of objects, as libfabric defines them.
#[repr(C)]
struct With<Table> {
    fid: Fid,
    ops: *const Table,
}

#[repr(C)]
struct DomainView {
    fid: Fid,
    ops: *const DomainOps,
    mr: *const MrOps,
}

#[repr(C)]
struct RegionView {
    fid: Fid,
    descriptor: *mut c_void,
    key: u64,
}

#[repr(C)]
pub(super) struct EndpointView {
    fid: Fid,
    ops: *const EpOps,
    cm: *const CmOps,
    pub(super) msg: *const MsgOps,
    pub(super) rma: *const RmaOps,
    pub(super) tagged: *const TaggedOps,
    pub(super) atomic: *const AtomicOps,
}

/// Later versions append fields to the entry of an error.
#[repr(C)]
struct ErrorRoom {
    entry: CqErrEntry,
    later: [u64; 16],
}

/// An operation or a receive in flight, with the memory that the provider uses.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub(super) number: u64,
    /// The room that the provider may use until the completion (`FI_CONTEXT2`). Its address identifies the operation.
    pub(super) _context: Box<[usize; 8]>,
    pub(super) buffers: Vec<CallerBuffer>,
    /// True if the first buffer holds the result.
    pub(super) has_result: bool,
}

/// A completed operation or receive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// The number that the call returned.
    pub number: u64,
    /// The number of received bytes.
    pub length: usize,
    /// The data of the peer for the completion queue.
    pub cq_data: Option<u64>,
    /// The whole buffer of a receive, a read or a fetching atomic.
    pub bytes: Option<Vec<u8>>,
    /// The reason of a failure.
    pub failed: Option<Failed>,
}

/// The reason of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// libfabric's error code.
    pub code: Code,
    /// The provider's own error number.
    pub provider_code: i32,
    /// The number of bytes that did not fit.
    pub cut_off: usize,
    /// libfabric's text for the code.
    pub text: String,
    /// The provider's text for its own number.
    pub provider_text: String,
}

/// An opened provider: a domain with one or two endpoints, an address vector and a completion queue.
///
/// The fields close in their order: endpoints first, then what they use, and at last the memory.
#[derive(Debug)]
pub struct Device {
    /// The endpoint without order, and the one with order if it exists.
    pub(super) endpoints: Vec<Object>,
    regions: HashMap<u64, (Object, CallerBuffer)>,
    addresses: Object,
    queue: Object,
    domain: Object,
    _fabric: Object,
    pub(super) outstanding: HashMap<usize, Outstanding>,
    pub(super) library: &'static Libfabric,
    pub(super) numbers: u64,
    /// Completions read while an operation was being posted.
    pub(super) early: VecDeque<Finished>,
}

impl Device {
    /// Opens the domain of an offer, with an endpoint for it, and a second one for `ordered`.
    pub fn open(offer: &Offer, ordered: Option<&Offer>) -> Result<Self> {
        let library = offer.library;
        // SAFETY: libfabric allocated the `fi_info` with all its parts. Each call gets objects that an earlier one made.
        unsafe {
            let info = offer.info;
            let fabric = made("fi_fabric", library, |to| {
                (library.fabric)((*info).fabric_attr.cast(), to, ptr::null_mut())
            })?;
            let ops = (*fabric.0.cast::<With<FabricOps>>()).ops;
            let domain =
                made("fi_domain", library, |to| ((*ops).domain)(fabric.0, info, to, ptr::null_mut()))?;
            let ops = (*domain.0.cast::<DomainView>()).ops;
            let mut attr = CqAttr { format: TAGGED, ..zeroed() };
            let queue =
                made("fi_cq_open", library, |to| ((*ops).cq_open)(domain.0, &mut attr, to, ptr::null_mut()))?;
            let mut attr = AvAttr { kind: offer.domain_attr().av_type, ..zeroed() };
            let addresses =
                made("fi_av_open", library, |to| ((*ops).av_open)(domain.0, &mut attr, to, ptr::null_mut()))?;
            let mut endpoints = Vec::new();
            for offer in [Some(offer), ordered].into_iter().flatten() {
                let info = offer.info;
                let endpoint = made("fi_endpoint", library, |to| {
                    ((*ops).endpoint)(domain.0, info, to, ptr::null_mut())
                })?;
                let own = (*endpoint.0).ops;
                let bind = |other: &Object, bits| ((*own).bind)(endpoint.0, other.0, bits) as isize;
                library.checked("fi_ep_bind", bind(&queue, flags::SEND | flags::RECV))?;
                library.checked("fi_ep_bind", bind(&addresses, 0))?;
                let enabled = ((*own).control)(endpoint.0, ENABLE, ptr::null_mut());
                library.checked("fi_enable", enabled as isize)?;
                endpoints.push(endpoint);
            }
            let (outstanding, regions) = (HashMap::new(), HashMap::new());
            Ok(Device {
                endpoints,
                regions,
                addresses,
                queue,
                domain,
                _fabric: fabric,
                outstanding,
                library,
                numbers: 0,
                early: VecDeque::new(),
            })
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns whether there is an endpoint that sends in order.
    pub fn has_ordered(&self) -> bool {
        self.endpoints.len() > 1
    }

    pub(super) fn endpoint(&self, ordered: bool) -> Result<(*mut Fid, &EndpointView)> {
        let endpoint = self.endpoints.get(usize::from(ordered)).ok_or(Code::EOPNOTSUPP)?;
        // SAFETY: it is an endpoint, which starts with these fields.
        Ok((endpoint.0, unsafe { &*endpoint.0.cast::<EndpointView>() }))
    }

    /// Returns the name of the endpoint without order, as `fi_getname` reports it.
    pub fn name(&self) -> Result<Vec<u8>> {
        let (fid, view) = self.endpoint(false)?;
        let (mut name, mut length) = (vec![0; NAME], NAME);
        // SAFETY: the endpoint has connection management, and the buffer has `length` bytes.
        let result = unsafe {
            let cm = view.cm.as_ref().ok_or(Code::ENOSYS)?;
            (cm.getname)(fid, name.as_mut_ptr().cast(), &mut length)
        };
        self.library.checked("fi_getname", result as isize)?;
        name.truncate(length);
        Ok(name)
    }

    /// Adds a peer by its address in the provider's format. Returns its number.
    pub fn insert(&mut self, address: &[u8]) -> Result<u64> {
        let mut number = u64::MAX;
        // A provider may read more than a socket address of IPv4 has.
        let mut room = address.to_vec();
        room.resize(address.len().max(NAME), 0);
        // SAFETY: an address vector starts with these fields; the address and the place of its number are valid.
        let result = unsafe {
            let ops = (*self.addresses.0.cast::<With<AvOps>>()).ops;
            ((*ops).insert)(self.addresses.0, room.as_ptr().cast(), 1, &mut number, 0, ptr::null_mut())
        };
        match self.library.checked("fi_av_insert", result as isize)? {
            1 => Ok(number),
            _ => Err(Error::new(Code::EINVAL, "fi_av_insert: the provider rejects the address of the peer")),
        }
    }

    /// Registers memory with this content, these permissions ([`flags`]) and this key. Returns the number of the region, and
    /// its key.
    pub fn register(&mut self, content: Vec<u8>, access: u64, key: u64, offer: &Offer) -> Result<(u64, u64)> {
        let buffer = CallerBuffer::new(content);
        // SAFETY: a domain starts with these fields. The buffer lives as long as its registration.
        let (region, key) = unsafe {
            let ops = (*self.domain.0.cast::<DomainView>()).mr;
            let (address, length) = (buffer.address(), buffer.len());
            let region = made("fi_mr_reg", self.library, |to| {
                ((*ops).reg)(self.domain.0, address, length, access, 0, key, 0, to, ptr::null_mut())
            })?;
            if offer.domain_attr().mr_mode & MR_ENDPOINT != 0 {
                let (own, endpoint) = ((*region.0).ops, self.endpoint(false)?.0);
                self.library.checked("fi_mr_bind", ((*own).bind)(region.0, endpoint, 0) as isize)?;
                let enabled = ((*own).control)(region.0, ENABLE, ptr::null_mut());
                self.library.checked("fi_mr_enable", enabled as isize)?;
            }
            let key = (*region.0.cast::<RegionView>()).key;
            (region, key)
        };
        let number = self.number();
        self.regions.insert(number, (region, buffer));
        Ok((number, key))
    }

    /// Returns a copy of registered memory; `None` if there is no such region or range.
    pub fn memory(&self, region: u64, range: core::ops::Range<usize>) -> Option<Vec<u8>> {
        self.regions.get(&region)?.1.copy(range)
    }

    /// Lets the provider make progress, and returns the next completion if there is one.
    pub fn poll(&mut self) -> Result<Option<Finished>> {
        match self.early.pop_front() {
            Some(finished) => Ok(Some(finished)),
            None => self.read(),
        }
    }

    /// Lets the provider make progress, and reads the next completion if there is one.
    pub(super) fn read(&mut self) -> Result<Option<Finished>> {
        loop {
            // SAFETY: zeros are a valid entry.
            let mut entry: CqEntry = unsafe { zeroed() };
            // SAFETY: a completion queue starts with these fields; the queue has this format, and there is room for one.
            let read = unsafe { ((*self.queue_ops()).read)(self.queue.0, (&raw mut entry).cast(), 1) };
            if read == -(Code::EAGAIN.0 as isize) {
                return Ok(None);
            }
            let failed = read == -(Code::EAVAIL.0 as isize);
            let (entry, failed) = match failed {
                true => self.failure()?,
                false => {
                    self.library.checked("fi_cq_read", read)?;
                    (entry, None)
                }
            };
            // Other entries, such as writes with remote CQ data, belong to no operation.
            if let Some(outstanding) = self.outstanding.remove(&entry.op_context) {
                return Ok(Some(finished(&outstanding, &entry, failed)));
            }
        }
    }

    fn queue_ops(&self) -> *const CqOps {
        // SAFETY: a completion queue starts with these fields.
        unsafe { (*self.queue.0.cast::<With<CqOps>>()).ops }
    }

    fn failure(&self) -> Result<(CqEntry, Option<Failed>)> {
        // SAFETY: zeros are a valid entry, and ask for no further data of the error.
        let mut room: ErrorRoom = unsafe { zeroed() };
        let mut text = [0u8; 256];
        let ops = self.queue_ops();
        // SAFETY: the room is larger than the entry of every version.
        let read = unsafe { ((*ops).readerr)(self.queue.0, (&raw mut room).cast(), 0) };
        self.library.checked("fi_cq_readerr", read)?;
        let ErrorRoom { entry: CqErrEntry { entry, olen, err, prov_errno, err_data, .. }, .. } = room;
        // SAFETY: the buffer has this length. The provider writes a C string or returns one of its own.
        let provider_text = unsafe {
            let told = ((*ops).strerror)(
                self.queue.0,
                prov_errno,
                err_data,
                text.as_mut_ptr().cast(),
                text.len() - 1,
            );
            if told.is_null() { String::new() } else { CStr::from_ptr(told).to_string_lossy().into_owned() }
        };
        let (code, cut_off) = (Code(err), olen);
        let text = self.library.text(err);
        Ok((entry, Some(Failed { code, provider_code: prov_errno, cut_off, text, provider_text })))
    }
}

fn finished(outstanding: &Outstanding, entry: &CqEntry, failed: Option<Failed>) -> Finished {
    let result = outstanding.buffers.first().filter(|_| outstanding.has_result);
    Finished {
        number: outstanding.number,
        length: entry.len,
        cq_data: (entry.flags & flags::REMOTE_CQ_DATA != 0).then_some(entry.data),
        bytes: result.and_then(|buffer| buffer.copy(0..buffer.len())),
        failed,
    }
}

/// Calls a function that makes an object.
fn made(call: &str, library: &Libfabric, make: impl FnOnce(*mut *mut Fid) -> c_int) -> Result<Object> {
    let mut fid = ptr::null_mut();
    library.checked(call, make(&mut fid) as isize)?;
    Ok(Object(fid))
}
