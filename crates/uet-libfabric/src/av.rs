//! `fid_av`.

use crate::call::{guard_int, no_control, no_ops, object, publish, reclaim};
use crate::eq::QueueObject;
use crate::info::{read_name, resolve, text};
use crate::sys::*;
use core::ffi::{c_char, c_int, c_void};
use core::mem::size_of;
use core::ptr;
use std::sync::{Arc, OnceLock};
use uet_fabric::{AddressVector, Code, EventQueue, NAME_LENGTH, UNKNOWN_ADDRESS};

#[repr(C)]
pub(crate) struct Vector {
    fid: Fid,
    ops: &'static AvOps,
    pub(crate) addresses: Arc<AddressVector>,
    asynchronous: bool,
    events: OnceLock<Arc<EventQueue>>,
}

static FID: Ops = Ops { size: size_of::<Ops>(), close, bind, control: no_control, ops_open: no_ops };
static OPS: AvOps = AvOps { size: size_of::<AvOps>(), insert, insertsvc, insertsym, remove, lookup, straddr };

pub(crate) unsafe extern "C" fn open(
    _: *mut Fid,
    attr: *mut AvAttr,
    to: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: the caller passes null or a valid structure.
        let attr = unsafe { attr.as_ref() };
        if attr.is_some_and(|attr| !attr.name.is_null()) {
            return Err(Code::ENOSYS.into());
        }
        let vector = Vector {
            fid: Fid { class: CLASS_AV, context, ops: &FID },
            ops: &OPS,
            addresses: Arc::default(),
            asynchronous: attr.is_some_and(|attr| attr.flags & EVENT != 0),
            events: OnceLock::new(),
        };
        // SAFETY: the object starts with a `Fid`, and the caller passes a valid place.
        unsafe { publish(vector, to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        drop(unsafe { reclaim::<Vector>(fid) });
        Ok(())
    })
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    guard_int(|| {
        // SAFETY: both are objects of this provider.
        let (vector, is_queue) = unsafe { (object::<Vector>(fid), (*other).class == CLASS_EQ) };
        if !is_queue {
            return Err(Code::EINVAL.into());
        }
        // SAFETY: its class says that it is an event queue.
        let events = unsafe { object::<QueueObject>(other) }.events.clone();
        // The first queue stays.
        let _ = vector.events.set(events);
        Ok(())
    })
}

unsafe extern "C" fn insert(
    fid: *mut Fid,
    addresses: *const c_void,
    count: usize,
    numbers: *mut u64,
    _: u64,
    context: *mut c_void,
) -> c_int {
    let mut inserted = 0;
    let result = guard_int(|| {
        // SAFETY: `open` made it.
        let vector = unsafe { object::<Vector>(fid) };
        for place in 0..count {
            // SAFETY: the caller passes `count` names, and null or room for as many numbers.
            unsafe {
                let name = read_name(addresses.byte_add(place * NAME_LENGTH), NAME_LENGTH);
                let number = name.map_or(UNKNOWN_ADDRESS, |name| vector.addresses.insert(name));
                inserted += c_int::from(name.is_some());
                if !numbers.is_null() {
                    numbers.add(place).write(number);
                }
            }
        }
        if let (true, Some(events)) = (vector.asynchronous, vector.events.get()) {
            crate::eq::push(events, AV_COMPLETE, fid, context, inserted as u64);
        }
        Ok(())
    });
    // SAFETY: as above.
    let asynchronous = unsafe { object::<Vector>(fid) }.asynchronous;
    if result != 0 || asynchronous { result } else { inserted }
}

unsafe extern "C" fn insertsvc(
    fid: *mut Fid,
    node: *const c_char,
    service: *const c_char,
    number: *mut u64,
    flag_bits: u64,
    context: *mut c_void,
) -> c_int {
    let mut bytes = [0; NAME_LENGTH];
    let result = guard_int(|| {
        // SAFETY: the caller passes C strings or null.
        let (node, service) = unsafe { (text(node), text(service)) };
        bytes = resolve(&node.ok_or(Code::EINVAL)?, service.as_deref())?.to_bytes();
        Ok(())
    });
    if result != 0 {
        return result;
    }
    // SAFETY: the bytes are one name, and the caller passes null or room for one number.
    unsafe { insert(fid, bytes.as_ptr().cast(), 1, number, flag_bits, context) }
}

unsafe extern "C" fn insertsym(
    _: *mut Fid,
    _: *const c_char,
    _: usize,
    _: *const c_char,
    _: usize,
    _: *mut u64,
    _: u64,
    _: *mut c_void,
) -> c_int {
    -Code::ENOSYS.0
}

unsafe extern "C" fn remove(fid: *mut Fid, numbers: *mut u64, count: usize, _: u64) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let vector = unsafe { object::<Vector>(fid) };
        let mut all = true;
        for place in 0..count {
            // SAFETY: the caller passes `count` numbers.
            all &= vector.addresses.remove(unsafe { *numbers.add(place) });
        }
        if all { Ok(()) } else { Err(Code::EINVAL.into()) }
    })
}

unsafe extern "C" fn lookup(fid: *mut Fid, number: u64, address: *mut c_void, length: *mut usize) -> c_int {
    guard_int(|| {
        // SAFETY: `open` made it.
        let name = unsafe { object::<Vector>(fid) }.addresses.get(number).ok_or(Code::EINVAL)?;
        let bytes = name.to_bytes();
        // SAFETY: the caller passes `*length` bytes of room.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), bytes.len().min(*length));
            length.write(bytes.len());
        }
        Ok(())
    })
}

unsafe extern "C" fn straddr(
    _: *mut Fid,
    address: *const c_void,
    to: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    guard_int(|| {
        // SAFETY: the caller passes a name, and `*length` bytes of room.
        unsafe {
            let name = read_name(address, NAME_LENGTH).ok_or(Code::EINVAL)?;
            let text = name.to_string();
            write_text(&text, to, *length);
            length.write(text.len() + 1);
        }
        Ok(())
    });
    to
}

/// Writes a text with its final zero, cut to the room.
///
/// # Safety
///
/// `to` must be null or valid for `room` bytes.
pub(crate) unsafe fn write_text(text: &str, to: *mut c_char, room: usize) {
    if to.is_null() || room == 0 {
        return;
    }
    let length = text.len().min(room - 1);
    // SAFETY: the caller promises the room.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        to.add(length).write(0);
    }
}
