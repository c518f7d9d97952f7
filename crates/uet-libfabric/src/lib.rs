#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod atomic;
mod av;
mod call;
pub mod caller;
mod cntr;
mod cq;
mod domain;
mod ep;
mod eq;
mod fabric;
mod info;
mod log;
mod memory;
mod mr;
mod msg;
mod rma;
mod sys;
mod tagged;

use core::ptr;
use sys::Provider;

/// The description of the provider. libfabric keeps its own data in `context`, so it is mutable.
static mut PROVIDER: Provider = Provider {
    version: 1,
    fi_version: sys::API,
    context: [ptr::null_mut(); 4],
    name: c"uet".as_ptr(),
    getinfo: info::getinfo,
    fabric: fabric::open,
    cleanup,
};

unsafe extern "C" fn cleanup() {}

/// The entry point: libfabric calls it once after loading the library, and gets the description of the provider.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut core::ffi::c_void {
    let _ = call::guard_int(|| {
        if let Some(version) = log::version() {
            // SAFETY: libfabric calls this function once, before any other.
            unsafe { PROVIDER.fi_version = version.clamp(sys::API, sys::LAST_API) };
        }
        log::define_settings();
        Ok(())
    });
    (&raw mut PROVIDER).cast()
}
