//! The operations in which uet-wire promises neither to panic nor to allocate, in a form that proofs can run.
//! See the README.
#![no_std]

pub mod headers;
pub mod packets;
#[cfg(feature = "tss")]
pub mod security;

/// An operation: its name, and a function of the received bytes and a buffer to write to.
pub type Operation = (&'static str, fn(&[u8], &mut [u8]));

/// A table of operations. With `UET_PROOF_ONLY` in the environment of the build, all but the one of that name
/// do nothing.
macro_rules! operations {
    ($($name:expr => $run:expr;)*) => {
        /// The operations.
        pub const OPERATIONS: &[$crate::Operation] =
            &[$(($name, if $crate::chosen($name) { $run } else { |_, _| {} }),)*];
    };
}
pub(crate) use operations;

const fn chosen(name: &str) -> bool {
    let Some(only) = option_env!("UET_PROOF_ONLY") else { return true };
    let (only, name) = (only.as_bytes(), name.as_bytes());
    let mut i = 0;
    while i < name.len() && i < only.len() {
        if only[i] != name[i] {
            return false;
        }
        i += 1;
    }
    only.len() == name.len()
}

/// All operations.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    #[cfg(feature = "tss")]
    let security = security::OPERATIONS;
    #[cfg(not(feature = "tss"))]
    let security: &[Operation] = &[];
    headers::OPERATIONS.iter().chain(packets::OPERATIONS).chain(security)
}
