//! The structures of libfabric that a provider needs, in the layout of API 1.17. Later versions append fields.

mod ops;

pub(crate) use ops::*;

use core::ffi::{c_char, c_int, c_void};
use libc::iovec;

/// The first version of libfabric that this provider supports, and the last.
pub(crate) const API: u32 = 1 << 16 | 17;
pub(crate) const LAST_API: u32 = 2 << 16 | 0xffff;

pub(crate) const CLASS_FABRIC: usize = 1;
pub(crate) const CLASS_DOMAIN: usize = 2;
pub(crate) const CLASS_EP: usize = 3;
pub(crate) const CLASS_AV: usize = 11;
pub(crate) const CLASS_MR: usize = 12;
pub(crate) const CLASS_EQ: usize = 13;
pub(crate) const CLASS_CQ: usize = 14;
pub(crate) const CLASS_CNTR: usize = 15;

pub(crate) const EP_RDM: u32 = 3;
pub(crate) const PROVIDER_SPECIFIC: u32 = 1 << 31;
/// The format of [`Name`](uet_fabric::Name), and the protocol, in the number space of providers.
pub(crate) const FORMAT_UET: u32 = PROVIDER_SPECIFIC | 0x0055_4554;
pub(crate) const AV_MAP: u32 = 1;
pub(crate) const MR_BASIC: c_int = 1;
pub(crate) const MR_SCALABLE: c_int = 2;
pub(crate) const PROGRESS_AUTO: u32 = 1;
pub(crate) const THREAD_SAFE: u32 = 1;
pub(crate) const RM_ENABLED: u32 = 2;

pub(crate) const GETOPSFLAG: c_int = 2;
pub(crate) const SETOPSFLAG: c_int = 3;
pub(crate) const GETWAIT: c_int = 5;
pub(crate) const ENABLE: c_int = 6;

pub(crate) const OPT_MIN_MULTI_RECV: c_int = 0;
pub(crate) const WAIT_NONE: u32 = 0;
pub(crate) const WAIT_UNSPEC: u32 = 1;
pub(crate) const WAIT_FD: u32 = 3;
pub(crate) const WAIT_YIELD: u32 = 5;

/// `FI_SOURCE` in the flags of `fi_getinfo`.
pub(crate) const SOURCE: u64 = 1 << 57;
/// `FI_EVENT` in the flags of `fi_av_open`.
pub(crate) const EVENT: u64 = 1 << 24;
pub(crate) const AV_COMPLETE: u32 = 5;

#[repr(C)]
pub(crate) struct Fid {
    pub(crate) class: usize,
    pub(crate) context: *mut c_void,
    pub(crate) ops: *const Ops,
}

// SAFETY: nothing writes the fields after the object is published, `ops` is a constant table, and the provider
// only hands `context` back.
unsafe impl Send for Fid {}
// SAFETY: as above.
unsafe impl Sync for Fid {}

#[repr(C)]
pub(crate) struct Ops {
    pub(crate) size: usize,
    pub(crate) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(crate) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(crate) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub(crate) ops_open:
        unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
}

#[repr(C)]
pub(crate) struct Provider {
    pub(crate) version: u32,
    pub(crate) fi_version: u32,
    pub(crate) context: [*mut c_void; 4],
    pub(crate) name: *const c_char,
    pub(crate) getinfo:
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    pub(crate) fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fid, *mut c_void) -> c_int,
    pub(crate) cleanup: unsafe extern "C" fn(),
}

#[repr(C)]
pub(crate) struct Info {
    pub(crate) next: *mut Info,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) addr_format: u32,
    pub(crate) src_addrlen: usize,
    pub(crate) dest_addrlen: usize,
    pub(crate) src_addr: *mut c_void,
    pub(crate) dest_addr: *mut c_void,
    pub(crate) handle: *mut Fid,
    pub(crate) tx_attr: *mut TxAttr,
    pub(crate) rx_attr: *mut RxAttr,
    pub(crate) ep_attr: *mut EpAttr,
    pub(crate) domain_attr: *mut DomainAttr,
    pub(crate) fabric_attr: *mut FabricAttr,
    pub(crate) nic: *mut c_void,
}

#[repr(C)]
pub(crate) struct TxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct RxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) total_buffered_recv: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

#[repr(C)]
pub(crate) struct EpAttr {
    pub(crate) kind: u32,
    pub(crate) protocol: u32,
    pub(crate) protocol_version: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) msg_prefix_size: usize,
    pub(crate) max_order_raw_size: usize,
    pub(crate) max_order_war_size: usize,
    pub(crate) max_order_waw_size: usize,
    pub(crate) mem_tag_format: u64,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) auth_key: *mut u8,
}

#[repr(C)]
pub(crate) struct DomainAttr {
    pub(crate) domain: *mut Fid,
    pub(crate) name: *mut c_char,
    pub(crate) threading: u32,
    pub(crate) control_progress: u32,
    pub(crate) data_progress: u32,
    pub(crate) resource_mgmt: u32,
    pub(crate) av_type: u32,
    pub(crate) mr_mode: c_int,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) cq_cnt: usize,
    pub(crate) ep_cnt: usize,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) max_ep_tx_ctx: usize,
    pub(crate) max_ep_rx_ctx: usize,
    pub(crate) max_ep_stx_ctx: usize,
    pub(crate) max_ep_srx_ctx: usize,
    pub(crate) cntr_cnt: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) auth_key: *mut u8,
    pub(crate) auth_key_size: usize,
    pub(crate) max_err_data: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct FabricAttr {
    pub(crate) fabric: *mut Fid,
    pub(crate) name: *mut c_char,
    pub(crate) prov_name: *mut c_char,
    pub(crate) prov_version: u32,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct CqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) format: u32,
    pub(crate) wait_obj: u32,
    pub(crate) signaling_vector: c_int,
    pub(crate) wait_cond: u32,
    pub(crate) wait_set: *mut Fid,
}

#[repr(C)]
pub(crate) struct EqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) wait_obj: u32,
    pub(crate) signaling_vector: c_int,
    pub(crate) wait_set: *mut Fid,
}

#[repr(C)]
pub(crate) struct AvAttr {
    pub(crate) kind: u32,
    pub(crate) rx_ctx_bits: c_int,
    pub(crate) count: usize,
    pub(crate) ep_per_node: usize,
    pub(crate) name: *const c_char,
    pub(crate) map_addr: *mut c_void,
    pub(crate) flags: u64,
}

#[repr(C)]
pub(crate) struct MrAttr {
    pub(crate) mr_iov: *const iovec,
    pub(crate) iov_count: usize,
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) requested_key: u64,
    pub(crate) context: *mut c_void,
}

#[repr(C)]
pub(crate) struct CqEntry {
    pub(crate) op_context: usize,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
}

#[repr(C)]
pub(crate) struct CqErrEntry {
    pub(crate) entry: CqEntry,
    pub(crate) olen: usize,
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) err_data: *mut c_void,
    /// Since version 1.5 of the interface.
    pub(crate) err_data_size: usize,
}

#[repr(C)]
pub(crate) struct EqEntry {
    pub(crate) fid: *mut Fid,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

/// A message of `sendmsg` and `recvmsg`.
#[repr(C)]
pub(crate) struct Msg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct TaggedMsg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct RmaIov {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct RmaMsg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) rma_iov: *const RmaIov,
    pub(crate) rma_iov_count: usize,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

/// Elements of an atomic: address and count.
#[repr(C)]
pub(crate) struct Ioc {
    pub(crate) addr: *mut c_void,
    pub(crate) count: usize,
}

#[repr(C)]
pub(crate) struct AtomicMsg {
    pub(crate) iov: *const Ioc,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) rma_iov: *const RmaIov,
    pub(crate) rma_iov_count: usize,
    pub(crate) datatype: u32,
    pub(crate) op: u32,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct AtomicAttr {
    pub(crate) count: usize,
    pub(crate) size: usize,
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    /// The sizes that a C compiler reports for the headers of libfabric 1.17.
    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Provider>(), 72);
        assert_eq!(size_of::<Info>(), 120);
        assert_eq!((size_of::<TxAttr>(), size_of::<RxAttr>()), (80, 64));
        assert_eq!((size_of::<EpAttr>(), size_of::<DomainAttr>(), size_of::<FabricAttr>()), (96, 192, 32));
        assert_eq!((size_of::<CqAttr>(), size_of::<EqAttr>(), size_of::<AvAttr>()), (40, 32, 48));
        assert_eq!((size_of::<CqEntry>(), size_of::<CqErrEntry>(), size_of::<EqEntry>()), (48, 80, 24));
        assert_eq!((size_of::<Msg>(), size_of::<TaggedMsg>(), size_of::<RmaMsg>()), (48, 64, 64));
        assert_eq!((size_of::<AtomicMsg>(), size_of::<RmaIov>(), size_of::<Ioc>()), (72, 24, 16));
        assert_eq!((size_of::<MsgOps>(), size_of::<TaggedOps>(), size_of::<RmaOps>()), (80, 80, 80));
        assert_eq!((size_of::<AtomicOps>(), size_of::<CqOps>(), size_of::<CntrOps>()), (112, 64, 64));
        assert_eq!((size_of::<EqOps>(), size_of::<EpOps>(), size_of::<CmOps>()), (48, 64, 80));
        // Without `av_set`, its last function.
        assert_eq!((size_of::<AvOps>(), size_of::<MrOps>(), size_of::<Fid>()), (64 - 8, 32, 24));
        assert_eq!((size_of::<AtomicAttr>(), offset_of!(MrAttr, context)), (16, 40));
    }
}
