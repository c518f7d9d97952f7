//! A program without a runtime, which links only if nothing in it can panic. See the README.
//!
//! `--cfg bare` makes it one; without that it is an ordinary program, so that the workspace builds.
#![cfg_attr(bare, no_std, no_main)]

#[cfg(not(bare))]
fn main() {
    println!("build with RUSTFLAGS=\"--cfg bare\" --profile proof, or run: cargo test -p uet-proofs");
}

#[cfg(bare)]
#[allow(unsafe_code)]
mod bare {
    use core::hint::black_box;

    // The C library has the entry point and memcpy.
    #[link(name = "c")]
    unsafe extern "C" {}

    #[unsafe(no_mangle)]
    extern "C" fn main() -> i32 {
        let mut buffer = [0; 512];
        for (_, run) in uet_proofs::all() {
            // Nothing is known of what is received.
            run(black_box(&[0; 512][..]), black_box(&mut buffer[..]));
        }
        0
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        unsafe extern "C" {
            safe fn a_panic_branch_is_left() -> !;
        }
        a_panic_branch_is_left()
    }

    /// `bytes` and `alloc` want one; nothing that runs here may use it.
    #[cfg(any(feature = "alloc", feature = "bytes"))]
    mod allocator {
        use core::alloc::{GlobalAlloc, Layout};

        struct None;

        // SAFETY: an allocator may always fail.
        unsafe impl GlobalAlloc for None {
            unsafe fn alloc(&self, _: Layout) -> *mut u8 {
                core::ptr::null_mut()
            }

            unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
        }

        #[global_allocator]
        static NONE: None = None;
    }
}
