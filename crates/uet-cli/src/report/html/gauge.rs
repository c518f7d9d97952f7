//! An observed value drawn against its limits.

use crate::site::html::Escaped;
use std::fmt::Write as _;
use uet_conformance::{Observation, Relation};

/// Returns the drawing of a bounded observation; `None` if the values are no numbers.
pub(super) fn svg(observation: &Observation) -> Option<String> {
    let (seen, unit) = quantity(&observation.seen)?;
    let bound = |text: &str| quantity(text).filter(|(_, of)| *of == unit).map(|(value, _)| value);
    let (low, high) = match observation.relation {
        Relation::AtLeast => (bound(&observation.expected)?, f64::INFINITY),
        Relation::AtMost => (0.0, bound(&observation.expected)?),
        Relation::Between => {
            let (low, high) = observation.expected.split_once(" to ")?;
            (bound(low)?, bound(high)?)
        }
        _ => return None,
    };
    let largest = [seen, low, high].into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
    if seen < 0.0 || low < 0.0 || largest <= 0.0 {
        return None;
    }
    // The scale ends beyond the largest value, so that an open range shows.
    let percent = |value: f64| 100.0 * (value / (1.25 * largest)).min(1.0);
    let (low, high, seen) = (percent(low), percent(high), percent(seen));
    let class = if observation.held { "held" } else { "broken" };
    let mut text = format!(
        "<figure class=gauge><figcaption>{}: {}; seen <b class={class}>{}</b></figcaption>\n",
        Escaped(&observation.requirement),
        Escaped(observation.obligation()),
        Escaped(&observation.seen)
    );
    let _ = writeln!(
        text,
        "<svg width=\"100%\" height=26 role=img aria-label=\"the permitted range and the observed value\">\
         <rect class=scale width=\"100%\" y=8 height=8 rx=4 />\
         <rect class=range x=\"{low:.1}%\" width=\"{:.1}%\" y=8 height=8 />\
         <line class=\"seen {class}\" x1=\"{seen:.1}%\" x2=\"{seen:.1}%\" y1=2 y2=22 /></svg></figure>",
        high - low
    );
    Some(text)
}

/// Reads a number with a unit. Times become nanoseconds.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite())?;
    Some(match unit {
        "ns" => (number, "time"),
        "µs" => (number * 1e3, "time"),
        "ms" => (number * 1e6, "time"),
        "s" => (number * 1e9, "time"),
        other => (number, other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(relation: Relation, expected: &str, seen: &str) -> Observation {
        Observation {
            requirement: "PDS-RTO-001".into(),
            what: "time <to it>".into(),
            relation,
            expected: expected.into(),
            seen: seen.into(),
            tolerance: None,
            from: None,
            packet: 1,
            request: None,
            held: false,
        }
    }

    #[test]
    fn value_and_limits_share_a_scale() {
        let drawing = svg(&observation(Relation::Between, "500 µs to 2 ms", "4 ms")).unwrap();
        for part in ["x=\"10.0%\" width=\"30.0%\"", "x1=\"80.0%\"", "time &lt;to it&gt;"] {
            assert!(drawing.contains(part), "{part}: {drawing}");
        }
        assert_eq!(svg(&observation(Relation::AtMost, "2 ms", "nothing")), None);
        assert_eq!(svg(&observation(Relation::Equal, "2", "3")), None);
        assert_eq!(svg(&observation(Relation::AtLeast, "2 units", "3 bytes")), None);
    }
}
