//! Being told to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Becomes true with SIGINT or SIGTERM: a command that has it ends well, and tells what it has so far. The second signal ends
/// the program at once, whatever it waits for.
#[cfg(target_os = "linux")]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&stopped))?;
    }
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// Elsewhere a signal ends the program.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}
