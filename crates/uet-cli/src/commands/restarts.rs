//! Restarts that a capture states in comments. All contexts are forgotten there, and their numbers are used again.

use uet_conformance::passive::Origin;
use uet_emulator::capture::Capture;

/// Finds restarts in the comments of a capture.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// True in a section that the suite captured.
    is_of_suite: bool,
}

impl Restarts {
    /// Begins a section of the capture, with its comment.
    pub(super) fn section(&mut self, comment: &str) {
        self.is_of_suite = Origin::parse(comment).is_some();
    }

    /// Returns whether both ends have forgotten their contexts before the packet with this comment: a NIC has
    /// restarted, or the suite has reset its device for the next instance.
    pub(super) fn is_restart(&self, comment: &str) -> bool {
        Capture::is_restart(comment) || self.is_of_suite && Origin::begun(comment).is_some()
    }
}
