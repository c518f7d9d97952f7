//! A provider's description of an endpoint: `fi_info`.

use super::Libfabric;
use crate::info::{duplicated, text};
use crate::sys::*;
use core::ffi::c_int;
use core::net::SocketAddr;
use core::ptr;
use std::ffi::CString;
use uet_fabric::{Code, Error, Result, flags};

/// The modes that [`Device`](super::Device) serves: `FI_CONTEXT` and `FI_CONTEXT2`.
const MODES: u64 = 1 << 59 | 1 << 52;

/// The demands on memory registration that it serves: `FI_MR_ALLOCATED`, `FI_MR_PROV_KEY` and `FI_MR_ENDPOINT`.
const MR_MODES: c_int = 1 << 5 | 1 << 6 | MR_ENDPOINT;
pub(super) const MR_ENDPOINT: c_int = 1 << 9;

/// The orders of an endpoint that sends in order.
const IN_ORDER: u64 = flags::ORDER_SAS | flags::ORDER_WAW | flags::ORDER_WAS | flags::ORDER_SAW;

/// Groups of capabilities, the largest first.
const CAPABILITIES: [u64; 5] = [
    flags::MSG | flags::TAGGED | flags::RMA | flags::ATOMIC,
    flags::MSG | flags::TAGGED | flags::RMA,
    flags::MSG | flags::RMA,
    flags::RMA,
    flags::MSG | flags::TAGGED,
];

/// The endpoint that a caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The name of the provider.
    pub provider: String,
    /// The name of the domain; any if absent.
    pub domain: Option<String>,
    /// True for an endpoint that sends in order.
    pub ordered: bool,
    /// The own address and port; the provider's choice if absent.
    pub source: Option<SocketAddr>,
}

/// The format of a provider's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFormat {
    /// `FI_SOCKADDR`, `FI_SOCKADDR_IN` or `FI_SOCKADDR_IN6`.
    Socket,
    /// [`Name`](uet_fabric::Name), the format of this project's provider.
    Uet,
    /// Another format, by its number.
    Other(u32),
}

/// A provider's description of an endpoint.
#[derive(Debug)]
pub struct Offer {
    pub(super) library: &'static Libfabric,
    /// From `fi_dupinfo`, with all its parts.
    pub(super) info: *mut Info,
}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: libfabric allocated it, and nothing refers to it.
        unsafe { (self.library.freeinfo)(self.info) };
    }
}

impl Libfabric {
    /// Asks a provider for an endpoint of type RDM. Returns its first offer with the most capabilities.
    pub fn find(&'static self, wishes: &Wishes) -> Result<Offer> {
        let mut last = Error::from(Code::ENODATA);
        for capabilities in CAPABILITIES {
            match self.find_with(wishes, capabilities) {
                Ok(offer) => return Ok(offer),
                Err(error) => last = error,
            }
        }
        let Wishes { provider, domain, .. } = wishes;
        let domain =
            domain.as_ref().map_or_else(String::new, |domain| format!(" with the domain '{domain}'"));
        let advice = format!("see `fi_info -p {provider}`, FI_PROVIDER_PATH and FI_LOG_LEVEL=warn");
        let message =
            format!("libfabric has no provider '{provider}'{domain} for RDM endpoints; {advice}: {last}");
        Err(Error::new(last.code, message))
    }

    fn find_with(&'static self, wishes: &Wishes, capabilities: u64) -> Result<Offer> {
        let hints = Offer { library: self, info: self.empty()? };
        // SAFETY: libfabric allocates the structure with all its parts, and frees the texts with it.
        unsafe {
            let info = &mut *hints.info;
            (info.caps, info.mode) = (capabilities, MODES);
            (*info.ep_attr).kind = EP_RDM;
            (*info.domain_attr).mr_mode = MR_MODES;
            (*info.domain_attr).name = wishes.domain.as_deref().map_or(ptr::null_mut(), duplicated);
            (*info.fabric_attr).prov_name = duplicated(&wishes.provider);
            let order = if wishes.ordered { IN_ORDER } else { 0 };
            ((*info.tx_attr).msg_order, (*info.rx_attr).msg_order) = (order, order);
        }
        let mut first = ptr::null_mut();
        let source = wishes.source.map(|source| {
            let text = |text: String| CString::new(text).unwrap_or_default();
            (text(source.ip().to_string()), text(source.port().to_string()))
        });
        let (node, service, bits) = match &source {
            Some((node, service)) => (node.as_ptr(), service.as_ptr(), SOURCE),
            None => (ptr::null(), ptr::null(), 0),
        };
        // SAFETY: the texts are null or C strings, the hints are valid, and so is the place of the result.
        let result = unsafe { (self.getinfo)(API, node, service, bits, hints.info, &mut first) };
        self.checked("fi_getinfo", result as isize)?;
        // SAFETY: libfabric returned a list, of which this copies the first entry before it frees the list.
        let info = unsafe {
            let info = (self.dupinfo)(first);
            (self.freeinfo)(first);
            info
        };
        if info.is_null() { Err(Code::ENOMEM.into()) } else { Ok(Offer { library: self, info }) }
    }

    fn empty(&self) -> Result<*mut Info> {
        // SAFETY: null asks for an empty structure.
        let info = unsafe { (self.dupinfo)(ptr::null()) };
        if info.is_null() { Err(Code::ENOMEM.into()) } else { Ok(info) }
    }
}

impl Offer {
    fn info(&self) -> &Info {
        // SAFETY: libfabric allocated it, and it lives as long as this.
        unsafe { &*self.info }
    }

    fn ep(&self) -> &EpAttr {
        // SAFETY: libfabric allocates an `fi_info` with all its parts.
        unsafe { &*self.info().ep_attr }
    }

    pub(super) fn domain_attr(&self) -> &DomainAttr {
        // SAFETY: as above.
        unsafe { &*self.info().domain_attr }
    }

    fn fabric_attr(&self) -> &FabricAttr {
        // SAFETY: as above.
        unsafe { &*self.info().fabric_attr }
    }

    /// Returns the capabilities: [`flags`].
    pub fn capabilities(&self) -> u64 {
        self.info().caps
    }

    /// Returns the orders that the endpoint keeps among its operations: [`flags`].
    pub fn order(&self) -> u64 {
        // SAFETY: libfabric allocates an `fi_info` with all its parts.
        unsafe { (*self.info().tx_attr).msg_order }
    }

    /// Returns the length of the longest message.
    pub fn longest_message(&self) -> usize {
        self.ep().max_msg_size
    }

    /// Returns the number of bytes of remote CQ data.
    pub fn data_size(&self) -> usize {
        self.domain_attr().cq_data_size
    }

    /// Returns the number of tag bits, from the highest bit of the tag format.
    pub fn tag_bits(&self) -> u32 {
        u64::BITS - self.ep().mem_tag_format.leading_zeros()
    }

    /// Returns the format of addresses.
    pub fn address_format(&self) -> AddressFormat {
        match self.info().addr_format {
            1..=3 => AddressFormat::Socket,
            FORMAT_UET => AddressFormat::Uet,
            other => AddressFormat::Other(other),
        }
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> String {
        // SAFETY: the name is null or a C string.
        unsafe { text(self.fabric_attr().prov_name) }.unwrap_or_default()
    }

    /// Returns the version of the provider: major and minor number.
    pub fn version(&self) -> (u32, u32) {
        let version = self.fabric_attr().prov_version;
        (version >> 16, version & 0xffff)
    }

    /// Returns the name of the domain.
    pub fn domain(&self) -> String {
        // SAFETY: the name is null or a C string.
        unsafe { text(self.domain_attr().name) }.unwrap_or_default()
    }
}
