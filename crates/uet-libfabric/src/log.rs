//! The functions of the libfabric that loaded this provider: its log, its parameters, and memory for `fi_info`.

use crate::PROVIDER;
use crate::sys::{Info, Provider};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr;
use std::ffi::CString;
use std::sync::OnceLock;
use uet_fabric::{Code, Error, Result, Settings};

type Version = unsafe extern "C" fn() -> u32;
type Enabled = unsafe extern "C" fn(*const Provider, c_int, c_int) -> c_int;
type Log = unsafe extern "C" fn(*const Provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);
type Define = unsafe extern "C" fn(*const Provider, *const c_char, c_int, *const c_char, ...) -> c_int;
type Get = unsafe extern "C" fn(*const Provider, *const c_char, *mut c_void) -> c_int;
type Duplicate = unsafe extern "C" fn(*const Info) -> *mut Info;

struct Library {
    version: Version,
    enabled: Enabled,
    log: Log,
    define: Define,
    get: Get,
    duplicate: Duplicate,
}

/// `FI_LOG_WARN`, `FI_LOG_INFO` and `FI_LOG_CORE`.
const WARN: c_int = 0;
const INFO: c_int = 2;
const CORE: c_int = 0;
/// `FI_PARAM_STRING`.
const STRING: c_int = 0;

/// Returns the functions of libfabric; `None` if this library was not loaded by libfabric.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(find).as_ref()
}

fn find() -> Option<Library> {
    // The application may have loaded libfabric for itself alone, so its symbols are not visible without a handle.
    // SAFETY: the name is a C string; RTLD_NOLOAD only looks for a library that is there.
    let handle = unsafe { libc::dlopen(c"libfabric.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    let handle = if handle.is_null() { libc::RTLD_DEFAULT } else { handle };
    let symbol = |name: &CStr| -> Option<*mut c_void> {
        // SAFETY: the handle is valid or RTLD_DEFAULT, and the name is a C string.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    // SAFETY: libfabric declares functions of these names with these signatures.
    unsafe {
        Some(Library {
            version: mem::transmute::<*mut c_void, Version>(symbol(c"fi_version")?),
            enabled: mem::transmute::<*mut c_void, Enabled>(symbol(c"fi_log_enabled")?),
            log: mem::transmute::<*mut c_void, Log>(symbol(c"fi_log")?),
            define: mem::transmute::<*mut c_void, Define>(symbol(c"fi_param_define")?),
            get: mem::transmute::<*mut c_void, Get>(symbol(c"fi_param_get")?),
            duplicate: mem::transmute::<*mut c_void, Duplicate>(symbol(c"fi_dupinfo")?),
        })
    }
}

/// Returns the version of the libfabric that loaded this provider: major version << 16, and minor version.
pub(crate) fn version() -> Option<u32> {
    // SAFETY: the function takes nothing and only returns a number.
    library().map(|library| unsafe { (library.version)() })
}

/// Writes one line to libfabric's log, at the level of warnings.
pub(crate) fn warn(message: &str) {
    write(WARN, message);
}

/// Writes one line to libfabric's log, for those who ask for information.
pub(crate) fn info(message: &str) {
    write(INFO, message);
}

fn write(level: c_int, message: &str) {
    let Some(library) = library() else { return };
    let text = CString::new(message).unwrap_or_default();
    // SAFETY: the strings are C strings, and the format takes one string.
    unsafe {
        if (library.enabled)(&raw const PROVIDER, level, CORE) != 0 {
            let (of, at, format) = (&raw const PROVIDER, c"uet".as_ptr(), c"%s\n".as_ptr());
            (library.log)(of, level, CORE, at, 0, format, text.as_ptr());
        }
    }
}

/// Registers the variables `FI_UET_*`, so that `fi_info -e` lists them.
pub(crate) fn define_settings() {
    let Some(library) = library() else { return };
    for setting in Settings::ALL {
        let (Ok(name), Ok(help)) = (CString::new(setting.name), CString::new(setting.help)) else { continue };
        // SAFETY: the strings are C strings, and the format takes one string. libfabric copies them.
        unsafe {
            (library.define)(&raw const PROVIDER, name.as_ptr(), STRING, c"%s".as_ptr(), help.as_ptr())
        };
    }
}

/// Reads the variables `FI_UET_*` once.
pub(crate) fn settings() -> Result<&'static Settings> {
    static SETTINGS: OnceLock<Result<Settings>> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings::read(setting)).as_ref().map_err(Clone::clone)
}

fn setting(name: &'static str) -> Option<String> {
    let library = library()?;
    let name = CString::new(name).ok()?;
    let mut value: *const c_char = ptr::null();
    // SAFETY: the name is a C string. For a string parameter, libfabric writes a pointer.
    let result = unsafe { (library.get)(&raw const PROVIDER, name.as_ptr(), (&raw mut value).cast()) };
    if result != 0 || value.is_null() {
        return None;
    }
    // SAFETY: libfabric returned a C string, which lives as long as the environment.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Returns a new `fi_info` with all its parts. libfabric allocates it, because libfabric frees it, and because its
/// version knows the size.
pub(crate) fn new_info() -> Result<*mut Info> {
    let missing = || Error::new(Code::ENOSYS, "the functions of libfabric are not there");
    let library = library().ok_or_else(missing)?;
    // SAFETY: null asks for an empty structure.
    let info = unsafe { (library.duplicate)(ptr::null()) };
    if info.is_null() { Err(Code::ENOMEM.into()) } else { Ok(info) }
}
