//! Deliberate faults, by name. Each is one mistake that an implementer could make; it proves that a suite detects the
//! mistake.
//!
//! The model contains no faults. A fault sits around the model at one or more taps. It changes packets that arrive or
//! leave, messages between packet delivery and semantics, or operations and completions of applications.
//!
//! ```
//! use uet_emulator::{Config, Nic, fault};
//!
//! let deaf = fault::find("forgets-ecn-echo").unwrap();
//! assert_eq!(deaf.area().name(), "ack");
//! let nic = Nic::new([10, 0, 0, 1], Config::default())?.with_faults(&[deaf])?;
//! assert_eq!(nic.faults().collect::<Vec<_>>(), ["forgets-ecn-echo"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Files
//!
//! Each area has a file, such as `ack`, and `tss` is a folder. The other files serve them all. `tap` has the taps, and
//! `running` the active faults of a NIC. `fields` reads headers by field names, `seen` is the packet history, and
//! `forge` builds packets that faults inject. `guard` and `recipe` change the protection of packets.
//!
//! # Adding one
//!
//! Each fault has an entry in the file of its area: a name, a description, the requirement that it breaks, and a `Tap`.
//! `CONTRIBUTING.md` lists the commands that show a fault and write its row.

mod fields;
mod forge;
mod guard;
mod recipe;
mod running;
mod seen;
mod tap;

mod ack;
mod atomic;
mod clear;
mod close;
mod codec;
mod crc;
mod ipv6;
mod matching;
mod nack;
mod nscc;
mod open;
mod path;
mod place;
mod rccc;
mod response;
mod retransmit;
mod tss;
mod window;

pub(crate) use running::{Handed, Running};
use tap::Tap;
use uet_wire::catalogue::Requirement;

/// A deliberate fault.
pub struct Fault {
    /// Name in kebab-rule.
    pub name: &'static str,
    /// Description of the mistake, in one sentence.
    pub sentence: &'static str,
    /// The requirement that the fault contradicts. Rules of other requirements may fail too.
    pub breaks: &'static Requirement,
    taps: &'static [Tap],
}

/// Creates an entry of an area.
const fn fault(
    name: &'static str,
    sentence: &'static str,
    breaks: &'static Requirement,
    taps: &'static [Tap],
) -> Fault {
    Fault { name, sentence, breaks, taps }
}

impl core::fmt::Debug for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Fault").field(&self.name).finish()
    }
}

macro_rules! areas {
    ($($(#[$doc:meta])* $Area:ident $name:literal $($($room:ident)::+)+,)*) => {
        /// The subject of a fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Area {
            $($(#[$doc])* $Area,)*
        }

        impl Area {
            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $(Area::$Area => $name,)* }
            }
        }

        impl Fault {
            /// Returns the area of the fault.
            pub fn area(&self) -> Area {
                let is_in = |room: &[Fault]| room.iter().any(|fault| fault.name == self.name);
                $($(if is_in($($room)::+::FAULTS) {
                    return Area::$Area;
                })+)*
                unreachable!("each fault is in a room")
            }
        }

        /// Returns all faults, by area.
        pub fn all() -> impl Iterator<Item = &'static Fault> + Clone {
            [$($($($room)::+::FAULTS,)+)*].into_iter().flatten()
        }
    };
}

areas! {
    /// Headers and their fields.
    Codec "codec" codec,
    /// The CRC at the end of a packet.
    Crc "crc" crc,
    /// Opening and finding a context.
    Open "open" open,
    /// Acknowledging, and handling acknowledgments.
    Ack "ack" ack,
    /// The windows of packet delivery.
    Window "window" window,
    /// Guaranteed delivery and CLEAR.
    Clear "clear" clear,
    /// Sending and handling NACKs.
    Nack "nack" nack,
    /// Retransmission.
    Retransmit "retransmit" retransmit,
    /// Closing a context.
    Close "close" close,
    /// Addressing, placement and segmentation of messages.
    Place "place" place,
    /// Sends and receives.
    Matching "matching" matching,
    /// Atomics.
    Atomic "atomic" atomic,
    /// Responses and completions.
    Response "response" response,
    /// The NSCC window.
    Nscc "nscc" nscc,
    /// Credit.
    Rccc "rccc" rccc,
    /// Entropy values and traffic classes.
    Path "path" path,
    /// Transport security.
    Tss "tss" tss::header tss::authentic tss::counter tss::clear tss::rotate tss::start,
    /// IPv6: its traffic classes and its addresses.
    Ipv6 "ipv6" ipv6,
}

/// Returns the fault of this name.
pub fn find(name: &str) -> Option<&'static Fault> {
    all().find(|fault| fault.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_has_a_name_of_its_own_and_a_sentence() {
        let mut names = BTreeSet::new();
        for fault in all() {
            assert!(names.insert(fault.name), "{} twice", fault.name);
            let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(fault.name.chars().all(kebab), "{}", fault.name);
            assert!(fault.sentence.len() > 20 && !fault.sentence.ends_with('.'), "{}", fault.name);
            assert!(!fault.taps.is_empty(), "{}", fault.name);
        }
    }
}
