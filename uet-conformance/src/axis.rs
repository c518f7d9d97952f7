//! The dimensions along which a rule varies.

use crate::Need;
use crate::needs::*;
use core::fmt;
use uet_control::Mode;

/// A dimension along which rules vary, for example the delivery mode.
///
/// ```
/// use uet_conformance::{Axis, axis::axis};
///
/// const WIDTH: Axis<u32> = axis("width").values(&[("narrow", 8), ("wide", 64)]);
/// assert_eq!(WIDTH.value(1), 64);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Axis<T: 'static> {
    /// The name in the id of an instance.
    pub name: &'static str,
    points: Points<T>,
}

/// The values of an [`Axis`], each with its name in the id of an instance.
#[derive(Clone, Copy, Debug)]
enum Points<T: 'static> {
    /// Values that every device has.
    Plain(&'static [(&'static str, T)]),
    /// Values that need something of the device or the link.
    Needing(&'static [(&'static str, T, &'static [Need])]),
}

/// Begins the declaration of an axis with its name in the id of an instance.
pub const fn axis(name: &'static str) -> AxisName {
    AxisName(name)
}

/// An axis without its values.
#[derive(Clone, Copy, Debug)]
pub struct AxisName(&'static str);

impl AxisName {
    /// Completes the axis with named values that every device has. A script whose rule lacks the axis gets
    /// the first.
    pub const fn values<T>(self, values: &'static [(&'static str, T)]) -> Axis<T> {
        Axis { name: self.0, points: Points::Plain(values) }
    }

    /// Completes the axis with named values and the needs of each, beside those of the rule.
    pub const fn needing<T>(self, values: &'static [(&'static str, T, &'static [Need])]) -> Axis<T> {
        Axis { name: self.0, points: Points::Needing(values) }
    }
}

impl<T: Copy> Axis<T> {
    /// Returns a value.
    ///
    /// # Panics
    ///
    /// Panics if `index` is not below the number of values.
    pub fn value(&self, index: usize) -> T {
        match self.points {
            Points::Plain(values) => values[index].1,
            Points::Needing(values) => values[index].1,
        }
    }
}

/// The delivery mode of the contexts that a script opens, and of the operations that it posts.
pub const MODE: Axis<Mode> = axis("mode").needing(&[("rud", Mode::Rud, &[RUD]), ("rod", Mode::Rod, &[ROD])]);

/// Start_PSN of the contexts that a script opens, and of those of the device if it has the parameter
/// `start_psn`. A device with `start_rcvd_bytes` counts bytes from near the same place.
pub const START: Axis<Start> =
    axis("start").values(&[("any", Start::Any), ("wrap", Start::Wrap), ("half", Start::Half)]);

/// The first PSN of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// At a random number.
    Any,
    /// The third PSN is 0.
    Wrap,
    /// The third PSN is 2^31.
    Half,
}

/// The operation that carries the data of a script about packet delivery.
///
/// Scripts are written with writes. With `send`, [`Test`](crate::Test) posts a receive for each write, sends
/// the data there, and shows the receives as the memory of the region. A note in the timeline says so. A
/// device without writes runs the same rules so.
pub const CARRIER: Axis<Carrier> = axis("carrier")
    .needing(&[("write", Carrier::Write, &[WRITE]), ("send", Carrier::Send, &[SEND, RECEIVE])]);

/// See [`CARRIER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// Writes to a region.
    Write,
    /// Sends to receives.
    Send,
}

/// An axis with values of any type, as a [`Rule`](crate::Rule) lists it.
pub trait AnyAxis: fmt::Debug + Sync {
    /// The name of the axis.
    fn name(&self) -> &'static str;
    /// The number of values.
    fn count(&self) -> usize;
    /// The name of a value.
    fn point(&self, index: usize) -> &'static str;
    /// Returns the needs of a value.
    fn needs(&self, index: usize) -> &'static [Need];
}

impl<T: fmt::Debug + Sync> AnyAxis for Axis<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn count(&self) -> usize {
        match self.points {
            Points::Plain(values) => values.len(),
            Points::Needing(values) => values.len(),
        }
    }

    fn point(&self, index: usize) -> &'static str {
        match self.points {
            Points::Plain(values) => values[index].0,
            Points::Needing(values) => values[index].0,
        }
    }

    fn needs(&self, index: usize) -> &'static [Need] {
        match self.points {
            Points::Plain(_) => &[],
            Points::Needing(values) => values[index].2,
        }
    }
}
