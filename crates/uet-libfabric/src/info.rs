//! `fi_getinfo`: one description for each interface.

use crate::call::guard_int;
use crate::log::{self, new_info, settings, warn};
use crate::sys::*;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::net::{IpAddr, SocketAddr};
use core::ptr;
use std::ffi::CString;
use std::net::ToSocketAddrs;
use uet_fabric::{Code, Error, Interface, NAME_LENGTH, Name, Result, Settings, flags};

/// Capabilities that the application asks for.
const PRIMARY: u64 = flags::MSG
    | flags::TAGGED
    | flags::RMA
    | flags::ATOMIC
    | flags::READ
    | flags::WRITE
    | flags::SEND
    | flags::RECV
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE
    | flags::DIRECTED_RECV;
/// Capabilities that come without asking.
const SECONDARY: u64 = flags::MULTI_RECV | flags::SOURCE | flags::LOCAL_COMM | flags::REMOTE_COMM;
/// The capabilities of the sending and of the receiving side.
const TX_CAPS: u64 = COMMON_CAPS | flags::SEND | flags::READ | flags::WRITE;
const RX_CAPS: u64 = COMMON_CAPS
    | flags::RECV
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE
    | flags::DIRECTED_RECV
    | flags::MULTI_RECV
    | flags::SOURCE;
const COMMON_CAPS: u64 = flags::MSG | flags::TAGGED | flags::RMA | flags::ATOMIC;
const DOMAIN_CAPS: u64 = flags::LOCAL_COMM | flags::REMOTE_COMM;
const RMA_CAPS: u64 = flags::READ | flags::WRITE | flags::REMOTE_READ | flags::REMOTE_WRITE;
const ORDER: u64 = flags::ORDER_SAS | crate::ep::MEMORY_ORDER;
const OP_FLAGS: u64 = flags::COMPLETION
    | flags::INJECT
    | flags::INJECT_COMPLETE
    | flags::TRANSMIT_COMPLETE
    | flags::DELIVERY_COMPLETE
    | flags::MULTI_RECV;
/// The most bytes that a message has.
pub(crate) const LONGEST: usize = u32::MAX as usize;
/// The most bytes that an inject operation has.
pub(crate) const INJECT: usize = 4096;
const QUEUE: usize = 4096;
const MANY: usize = 1 << 12;

pub(crate) unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flag_bits: u64,
    hints: *const Info,
    info: *mut *mut Info,
) -> c_int {
    guard_int(|| {
        // SAFETY: libfabric passes null or a valid structure.
        let hints = unsafe { hints.as_ref() };
        // SAFETY: `hints` holds pointers that are null or valid.
        let hints = unsafe { Hints::read(hints) };
        let hints = hints.map_err(|unfit| {
            log::info(&format!("the hint {unfit} asks for more than this provider has"));
            Code::ENODATA
        })?;
        check_version(log::version())?;
        let interfaces = Interface::list(settings()?)?;
        // SAFETY: the caller passes C strings or null.
        let (node, service) = unsafe { (text(node), text(service)) };
        let is_source = flag_bits & SOURCE != 0;
        let peer = match &node {
            Some(node) => Some(resolve(node, service.as_deref())?),
            None => None,
        };
        let source = if is_source { peer } else { hints.source }.map(|name| name.address.ip());
        let target = if is_source { None } else { peer };
        let target = target.or(hints.target);
        let mut first: *mut Info = ptr::null_mut();
        let mut last = &mut first;
        for interface in &interfaces {
            if !hints.accepts(interface) || source.is_some_and(|source| !is_at(interface, source)) {
                continue;
            }
            let reaches = |target: &Name| {
                let to = target.address.ip();
                to.is_ipv4() == interface.address.is_ipv4() && to.is_loopback() == interface.is_loopback
            };
            // A machine reaches its own addresses by any of its interfaces.
            if target.as_ref().is_some_and(|target| !reaches(target)) {
                continue;
            }
            let made = new_info()?;
            // SAFETY: libfabric allocated the structure with all its parts.
            unsafe { hints.fill(&mut *made, version, interface, source, target) };
            *last = made;
            // SAFETY: as above.
            last = unsafe { &mut (*made).next };
        }
        if first.is_null() {
            return Err(Code::ENODATA.into());
        }
        // SAFETY: the caller passes a valid place.
        unsafe { info.write(first) };
        Ok(())
    })
}

/// Returns the number of payload bytes of a packet. Without settings the caller fails later, with their reason.
fn packet() -> usize {
    settings().map_or(LONGEST, Settings::mtu)
}

/// Fails with ENOSYS if the structures of this libfabric may differ from ours.
fn check_version(version: Option<u32>) -> Result<()> {
    match version {
        Some(version) if !(API..=LAST_API).contains(&version) => {
            let (major, minor) = (version >> 16, version & 0xffff);
            let message = format!("libfabric {major}.{minor} is not supported: use 1.17 or later, or 2.x");
            Err(Error::new(Code::ENOSYS, message))
        }
        _ => Ok(()),
    }
}

fn is_at(interface: &Interface, address: IpAddr) -> bool {
    interface.address == address
        || interface.is_loopback && address.is_loopback() && address.is_ipv4() == interface.address.is_ipv4()
}

fn name(address: SocketAddr) -> Name {
    Name { address, job: 1, pid: 0, index: 0, generation: 0 }
}

/// Returns the name of the first endpoint of process 0 at a host, and at the UDP port of the service if that is one of
/// UET.
pub(crate) fn resolve(node: &str, service: Option<&str>) -> Result<Name> {
    let found = (node, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    let found =
        found.ok_or_else(|| Error::new(Code::ENODATA, format!("no address is known for '{node}'")))?;
    Ok(settings()?.name_at(found.ip(), service))
}

/// # Safety
///
/// The pointer must be null or a C string.
pub(crate) unsafe fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the caller promises a C string.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Reads a name from an address of the application.
///
/// # Safety
///
/// The pointer must be null or valid for `length` bytes.
pub(crate) unsafe fn read_name(address: *const c_void, length: usize) -> Option<Name> {
    if address.is_null() || length < NAME_LENGTH {
        return None;
    }
    // SAFETY: the caller promises `length` bytes.
    Name::from_bytes(unsafe { core::slice::from_raw_parts(address.cast(), NAME_LENGTH) })
}

/// The wishes of an application.
#[derive(Default)]
struct Hints {
    given: bool,
    caps: u64,
    domain: Option<String>,
    fabric: Option<String>,
    source: Option<Name>,
    target: Option<Name>,
    tx_order: u64,
    rx_order: u64,
    tx_flags: u64,
    rx_flags: u64,
    threading: u32,
    control_progress: u32,
    data_progress: u32,
    av_type: u32,
    mr_mode: c_int,
    traffic_class: u32,
}

impl Hints {
    /// Reads the hints. Fails with the name of the first one that asks for more than this provider has.
    ///
    /// # Safety
    ///
    /// The pointers in `hints` must be null or valid.
    unsafe fn read(hints: Option<&Info>) -> core::result::Result<Hints, &'static str> {
        let Some(hints) = hints else { return Ok(Hints::default()) };
        let mut wishes = Hints { given: true, caps: hints.caps, ..Hints::default() };
        let mut unfit = None;
        let mut ask = |hint, fits: bool| unfit = unfit.or((!fits).then_some(hint));
        ask("caps", hints.caps & !(PRIMARY | SECONDARY) == 0);
        ask("addr_format", hints.addr_format == 0 || hints.addr_format == FORMAT_UET);
        // SAFETY: the caller promises that the pointers are null or valid.
        unsafe {
            wishes.source = read_name(hints.src_addr, hints.src_addrlen);
            wishes.target = read_name(hints.dest_addr, hints.dest_addrlen);
            if let Some(tx) = hints.tx_attr.as_ref() {
                ask("tx_attr->caps", tx.caps & !(PRIMARY | SECONDARY) == 0);
                ask("tx_attr->msg_order", tx.msg_order & !ORDER == 0);
                ask("tx_attr->comp_order", tx.comp_order == 0);
                ask("tx_attr->op_flags", tx.op_flags & !OP_FLAGS == 0);
                ask("tx_attr->inject_size", tx.inject_size <= INJECT);
                ask("tx_attr->size", tx.size <= QUEUE);
                ask("tx_attr->iov_limit", tx.iov_limit <= crate::memory::PARTS);
                ask("tx_attr->rma_iov_limit", tx.rma_iov_limit <= 1);
                (wishes.tx_order, wishes.tx_flags, wishes.traffic_class) =
                    (tx.msg_order, tx.op_flags, tx.tclass);
            }
            if let Some(rx) = hints.rx_attr.as_ref() {
                ask("rx_attr->caps", rx.caps & !(PRIMARY | SECONDARY) == 0);
                ask("rx_attr->msg_order", rx.msg_order & !ORDER == 0);
                ask("rx_attr->comp_order", rx.comp_order == 0);
                ask("rx_attr->op_flags", rx.op_flags & !OP_FLAGS == 0);
                ask("rx_attr->size", rx.size <= QUEUE);
                ask("rx_attr->iov_limit", rx.iov_limit <= crate::memory::PARTS);
                (wishes.rx_order, wishes.rx_flags) = (rx.msg_order, rx.op_flags);
            }
            if let Some(ep) = hints.ep_attr.as_ref() {
                ask("ep_attr->type", ep.kind == 0 || ep.kind == EP_RDM);
                ask("ep_attr->protocol", ep.protocol == 0 || ep.protocol == FORMAT_UET);
                ask("ep_attr->max_msg_size", ep.max_msg_size <= LONGEST);
                ask("ep_attr->tx_ctx_cnt", ep.tx_ctx_cnt <= 1);
                ask("ep_attr->rx_ctx_cnt", ep.rx_ctx_cnt <= 1);
                ask("ep_attr->auth_key_size", ep.auth_key_size == 0);
                let packet = packet();
                ask("ep_attr->max_order_raw_size", ep.max_order_raw_size <= packet);
                ask("ep_attr->max_order_war_size", ep.max_order_war_size <= packet);
                ask("ep_attr->max_order_waw_size", ep.max_order_waw_size <= LONGEST);
            }
            if let Some(domain) = hints.domain_attr.as_ref() {
                ask("domain_attr->mr_mode", domain.mr_mode != MR_BASIC);
                ask("domain_attr->cq_data_size", domain.cq_data_size <= 8);
                ask("domain_attr->mr_key_size", domain.mr_key_size <= 8);
                ask("domain_attr->caps", domain.caps & !DOMAIN_CAPS == 0);
                wishes.domain = text(domain.name);
                (wishes.threading, wishes.control_progress) = (domain.threading, domain.control_progress);
                (wishes.data_progress, wishes.av_type) = (domain.data_progress, domain.av_type);
                wishes.mr_mode = domain.mr_mode;
            }
            if let Some(fabric) = hints.fabric_attr.as_ref() {
                wishes.fabric = text(fabric.name);
            }
        }
        unfit.map_or(Ok(wishes), Err)
    }

    fn accepts(&self, interface: &Interface) -> bool {
        self.domain.as_ref().is_none_or(|domain| *domain == domain_name(interface))
            && self.fabric.as_ref().is_none_or(|fabric| *fabric == interface.network())
    }

    /// Returns the capabilities of the endpoint: what was asked, with what that implies.
    fn granted(&self) -> u64 {
        if self.caps == 0 {
            return PRIMARY | SECONDARY;
        }
        let mut caps = self.caps;
        if caps & (flags::MSG | flags::TAGGED) != 0 && caps & (flags::SEND | flags::RECV) == 0 {
            caps |= flags::SEND | flags::RECV;
        }
        if caps & (flags::RMA | flags::ATOMIC) != 0 && caps & RMA_CAPS == 0 {
            caps |= RMA_CAPS;
        }
        caps | DOMAIN_CAPS
    }

    /// Fills a description.
    ///
    /// # Safety
    ///
    /// `info` must come from libfabric, with all its parts.
    unsafe fn fill(
        &self,
        info: &mut Info,
        version: u32,
        interface: &Interface,
        source: Option<IpAddr>,
        target: Option<Name>,
    ) {
        let caps = self.granted();
        let or = |wish: u32, default: u32| if wish == 0 { default } else { wish };
        let order = |wish: u64| if self.given { wish } else { ORDER };
        info.caps = caps;
        info.addr_format = FORMAT_UET;
        let own =
            name(SocketAddr::new(source.filter(|ip| is_at(interface, *ip)).unwrap_or(interface.address), 0));
        (info.src_addr, info.src_addrlen) = (allocated(&own), NAME_LENGTH);
        if let Some(target) = target {
            (info.dest_addr, info.dest_addrlen) = (allocated(&target), NAME_LENGTH);
        }
        // SAFETY: the caller promises that all parts are there.
        unsafe {
            let tx = &mut *info.tx_attr;
            (tx.caps, tx.op_flags, tx.msg_order) = (caps & TX_CAPS, self.tx_flags, order(self.tx_order));
            (tx.inject_size, tx.size) = (INJECT, QUEUE);
            (tx.iov_limit, tx.rma_iov_limit, tx.tclass) = (crate::memory::PARTS, 1, self.traffic_class);
            let rx = &mut *info.rx_attr;
            (rx.caps, rx.op_flags, rx.msg_order) = (caps & RX_CAPS, self.rx_flags, order(self.rx_order));
            (rx.total_buffered_recv, rx.size, rx.iov_limit) = (1 << 30, QUEUE, crate::memory::PARTS);
            let ep = &mut *info.ep_attr;
            (ep.kind, ep.protocol, ep.protocol_version) = (EP_RDM, FORMAT_UET, 1);
            (ep.max_msg_size, ep.mem_tag_format) = (LONGEST, u64::MAX);
            ep.max_order_waw_size = if caps & (flags::RMA | flags::ATOMIC) != 0 { LONGEST } else { 0 };
            // Only atomic operations are ordered in these ways, and each has one packet.
            let atomics = if caps & flags::ATOMIC != 0 { packet() } else { 0 };
            (ep.max_order_raw_size, ep.max_order_war_size) = (atomics, atomics);
            (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (1, 1);
            let domain = &mut *info.domain_attr;
            domain.name = duplicated(&domain_name(interface));
            domain.threading = or(self.threading, THREAD_SAFE);
            domain.control_progress = or(self.control_progress, PROGRESS_AUTO);
            domain.data_progress = or(self.data_progress, PROGRESS_AUTO);
            (domain.resource_mgmt, domain.av_type) = (RM_ENABLED, or(self.av_type, AV_MAP));
            let scalable = self.mr_mode == MR_SCALABLE || version < (1 << 16 | 5);
            domain.mr_mode = if scalable { MR_SCALABLE } else { 0 };
            (domain.mr_key_size, domain.cq_data_size) = (6, 8);
            (domain.cq_cnt, domain.ep_cnt, domain.tx_ctx_cnt, domain.rx_ctx_cnt) = (MANY, MANY, MANY, MANY);
            (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
            (domain.cntr_cnt, domain.mr_iov_limit, domain.mr_cnt) = (MANY, crate::memory::PARTS, 1 << 16);
            domain.caps = DOMAIN_CAPS;
            let fabric = &mut *info.fabric_attr;
            fabric.name = duplicated(&interface.network());
            (fabric.prov_version, fabric.api_version) = (1, version);
        }
    }
}

/// Returns the name of the domain on an interface: that of the interface, with `-v6` for its IPv6 address.
pub(crate) fn domain_name(interface: &Interface) -> String {
    match interface.address {
        IpAddr::V4(_) => interface.name.clone(),
        IpAddr::V6(_) => format!("{}-v6", interface.name),
    }
}

/// Copies a text to memory that libfabric frees.
pub(crate) fn duplicated(text: &str) -> *mut c_char {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: it is a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// Copies a name to memory that libfabric frees.
fn allocated(name: &Name) -> *mut c_void {
    let bytes = name.to_bytes();
    // SAFETY: the new memory has room for the name.
    unsafe {
        let memory = libc::malloc(bytes.len());
        if memory.is_null() {
            warn("no memory for an address");
        } else {
            ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len());
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libfabric_before_1_17_is_refused() {
        let version = |major: u32, minor: u32| check_version(Some(major << 16 | minor));
        let error = version(1, 11).unwrap_err();
        assert_eq!(error.code, Code::ENOSYS);
        assert_eq!(error.to_string(), "libfabric 1.11 is not supported: use 1.17 or later, or 2.x");
        assert!(version(3, 0).is_err());
        assert!(version(1, 17).is_ok() && version(1, 22).is_ok() && version(2, 6).is_ok());
    }

    /// Intel MPI asks for these orders, and does not start without them.
    #[test]
    fn atomics_are_ordered_and_an_unfit_hint_is_named() {
        let atomics = flags::ORDER_ATOMIC_RAR | flags::ORDER_ATOMIC_RAW | flags::ORDER_ATOMIC_WAR;
        let read = |msg_order| {
            // SAFETY: zero is a value of every field: they are numbers and pointers.
            let (mut info, mut tx): (Info, TxAttr) = unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
            tx.msg_order = msg_order;
            info.tx_attr = &raw mut tx;
            // SAFETY: the pointers are null, or point to what lives as long as `info`.
            unsafe { Hints::read(Some(&info)) }.map(|hints| hints.tx_order)
        };
        let wanted = flags::ORDER_SAS | flags::ORDER_ATOMIC_WAW | atomics;
        assert_eq!(read(wanted), Ok(wanted));
        assert_eq!(read(wanted | 1), Err("tx_attr->msg_order"), "reads after reads may have many packets");
    }
}
