//! Deliberate faults, by name: each is one mistake that an implementer could make, to prove that a suite notices it.
//!
//! The model makes none of them. A fault sits around it, at one or more taps: it hands the model other packets than have
//! arrived, lets others leave than the model sends, changes what packet delivery and semantics say to each other, or what
//! applications ask for and are told.
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
//! # Adding one
//!
//! An entry in the file of its area: a name that says what is wrong, a sentence, the requirement that it breaks, and a `Tap` (in `tap`,
//! with the places where one can sit). What the tap does is short; what several need is in `tap` (what passes), `fields` (headers by
//! field names) or `seen` (what has passed). The commands that show it and write its row are in `CONTRIBUTING.md`.

mod fields;
mod forge;
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
mod window;

pub(crate) use running::{Handed, Running};
use tap::Tap;
use uet_wire::catalogue::Requirement;

/// A way to be wrong.
pub struct Fault {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What is wrong, in a sentence.
    pub sentence: &'static str,
    /// The requirement of which it is the opposite. Others may fail with it.
    pub breaks: &'static Requirement,
    taps: &'static [Tap],
}

/// An entry of a room.
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
    ($($(#[$doc:meta])* $Area:ident $name:literal $room:ident,)*) => {
        /// What a fault is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Area {
            $($(#[$doc])* $Area,)*
        }

        impl Area {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Area::$Area => $name,)* }
            }
        }

        impl Fault {
            /// What it is about: the room that it is in.
            pub fn area(&self) -> Area {
                let is_in = |room: &[Fault]| room.iter().any(|fault| fault.name == self.name);
                $(if is_in($room::FAULTS) {
                    return Area::$Area;
                })*
                unreachable!("each fault is in a room")
            }
        }

        /// All faults, by area.
        pub fn all() -> impl Iterator<Item = &'static Fault> + Clone {
            [$($room::FAULTS,)*].into_iter().flatten()
        }
    };
}

areas! {
    /// Headers and their fields.
    Codec "codec" codec,
    /// What ends a packet.
    Crc "crc" crc,
    /// Opening a context, and finding it.
    Open "open" open,
    /// Acknowledging, and what it means to the sender.
    Ack "ack" ack,
    /// The windows of packet delivery.
    Window "window" window,
    /// Guaranteed delivery, and CLEAR.
    Clear "clear" clear,
    /// Refusing, and being refused.
    Nack "nack" nack,
    /// Sending again.
    Retransmit "retransmit" retransmit,
    /// Closing a context.
    Close "close" close,
    /// Whom a message is for, where its bytes go, how it is cut.
    Place "place" place,
    /// Sends and receives.
    Matching "matching" matching,
    /// Atomics.
    Atomic "atomic" atomic,
    /// Responses and completions.
    Response "response" response,
    /// The window of congestion control.
    Nscc "nscc" nscc,
    /// Credit.
    Rccc "rccc" rccc,
    /// Entropy values and traffic classes.
    Path "path" path,
    /// IPv6: its traffic classes and its addresses.
    Ipv6 "ipv6" ipv6,
}

/// The fault of this name.
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
