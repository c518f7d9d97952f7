//! Restarts that the comments of a capture state.

use super::Origin;

/// A restart before a packet: both ends have forgotten their contexts, and use their numbers again.
///
/// ```
/// use uet_observe::passive::{Origin, Restart};
///
/// assert_eq!(Restart::read(Restart::OF_NIC, false), Some(Restart::OfNic));
/// let begin = Origin::begin("ack/retx[mode=rud]") + "\ndrop 5%";
/// assert_eq!(Restart::read(&begin, true), Some(Restart::OfSuite("ack/retx[mode=rud]")));
/// assert_eq!(Restart::read(&begin, false), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart<'c> {
    /// A NIC has restarted.
    OfNic,
    /// The suite has reset its device for this instance.
    OfSuite(&'c str),
}

impl<'c> Restart<'c> {
    /// The comment on the first packet after the restart of a NIC.
    pub const OF_NIC: &'static str = "the NIC has forgotten its contexts";

    /// Reads the comment of a packet. `is_of_suite` is true in a section that the suite captured: elsewhere, it begins
    /// no instance.
    pub fn read(comment: &'c str, is_of_suite: bool) -> Option<Self> {
        let begun = Origin::begun(comment).filter(|_| is_of_suite).map(Restart::OfSuite);
        begun.or_else(|| comment.lines().any(|line| line == Self::OF_NIC).then_some(Restart::OfNic))
    }
}
