//! The other side of the interface: loads libfabric at run time and drives one of its providers, as an application does.
//!
//! The functions here are safe. A [`Device`] owns the objects of libfabric and the memory that the provider uses.

mod buffer;
mod device;
mod offer;
mod post;

pub use device::{Device, Failed, Finished};
pub use offer::{AddressFormat, Offer, Wishes};
pub use post::{Posting, Work};

use crate::sys::{Fid, Info};
use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use uet_fabric::{Code, Error, Result};

/// The library of libfabric 1.x and 2.x.
const FILE: &str = "libfabric.so.1";

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
type OpenFabric = unsafe extern "C" fn(*mut c_void, *mut *mut Fid, *mut c_void) -> c_int;

/// The functions of libfabric, which stays loaded.
#[derive(Debug)]
pub struct Libfabric {
    version: unsafe extern "C" fn() -> u32,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    getinfo: GetInfo,
    freeinfo: unsafe extern "C" fn(*mut Info),
    dupinfo: unsafe extern "C" fn(*const Info) -> *mut Info,
    fabric: OpenFabric,
    #[cfg(not(target_feature = "crt-static"))]
    _library: libloading::Library,
}

impl Libfabric {
    /// Loads libfabric once. Fails with ENOSYS, and a sentence that names the package, if it is not installed.
    pub fn load() -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Libfabric>> = OnceLock::new();
        LOADED.get_or_init(|| Self::open(FILE)).as_ref().map_err(Clone::clone)
    }

    #[cfg(target_feature = "crt-static")]
    fn open(file: &str) -> Result<Self> {
        let advice = "a static program cannot load libraries; use the Debian package, or build uet for a target that can";
        Err(Error::new(Code::ENOSYS, format!("cannot load {file}: {advice}")))
    }

    #[cfg(not(target_feature = "crt-static"))]
    fn open(file: &str) -> Result<Self> {
        let missing = |error: libloading::Error| {
            let advice = "install libfabric (Debian: apt install libfabric1)";
            Error::new(Code::ENOSYS, format!("cannot load {file}: {advice}: {error}"))
        };
        // SAFETY: the initializers of libfabric have no requirements.
        let library = unsafe { libloading::Library::new(file) }.map_err(missing)?;
        // SAFETY: libfabric declares functions of these names with these signatures.
        let functions = unsafe {
            (|| {
                Ok((
                    *library.get(b"fi_version\0")?,
                    *library.get(b"fi_strerror\0")?,
                    *library.get(b"fi_getinfo\0")?,
                    *library.get(b"fi_freeinfo\0")?,
                    *library.get(b"fi_dupinfo\0")?,
                    *library.get(b"fi_fabric\0")?,
                ))
            })()
        };
        let (version, strerror, getinfo, freeinfo, dupinfo, fabric) = functions.map_err(missing)?;
        Ok(Libfabric { version, strerror, getinfo, freeinfo, dupinfo, fabric, _library: library })
    }

    /// Returns the version: major and minor number.
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: the function has no requirements.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// Returns an error for a negative result of a call, with its name.
    fn checked(&self, call: &str, result: isize) -> Result<usize> {
        usize::try_from(result).map_err(|_| {
            let code = c_int::try_from(result.unsigned_abs()).unwrap_or(Code::EOTHER.0);
            Error::new(Code(code), format!("{call}: {}", self.text(code)))
        })
    }

    /// Returns libfabric's text for an error code.
    fn text(&self, code: c_int) -> String {
        // SAFETY: the function takes any number and returns a C string that lives forever.
        unsafe { CStr::from_ptr((self.strerror)(code)) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_is_an_error_that_names_the_package() {
        let error = Libfabric::open("libfabric-that-nobody-has.so.1").unwrap_err();
        assert_eq!(error.code, Code::ENOSYS);
        assert!(error.to_string().contains("apt install libfabric1"), "{error}");
    }
}
