//! A trace as an SVG ladder: the suite on the left, the device on the right, time downward.

use crate::site::html::Escaped;
use crate::timeline::{Row, milliseconds};
use std::fmt::Write as _;
use uet_conformance::{Mark, Moment, PacketDirection, Phase, TimelineEvent};

/// The place of the suite's line in pixels. The times stand left of it.
const SUITE: usize = 50;

/// The place of the device's line.
const DEVICE: &str = "98%";

/// Height of a line of text in pixels.
const LINE: usize = 14;

/// Maximum number of characters of a line of text: it fits a phone.
const WIDTH: usize = 42;

/// Maximum number of lines of a text.
const LINES: usize = 5;

/// Appends the rows. `marked` is the packet in question. `fields` names the element with the fields of a packet.
pub(super) fn svg(
    body: &mut String,
    rows: &[Row<'_>],
    marked: Option<usize>,
    fields: impl Fn(usize) -> Option<String>,
) {
    let mut drawing = Drawing { body: String::new(), y: 2 * LINE, phase: None };
    for row in rows {
        match row {
            Row::Folded(count) => drawing.folded(*count),
            Row::Step(moment) => drawing.step(moment, marked, &fields),
        }
    }
    let height = drawing.y + LINE / 2;
    let line = |x: &str| format!("<line class=life x1=\"{x}\" x2=\"{x}\" y1=20 y2={height} />\n");
    *body += &format!(
        "<svg class=ladder width=\"100%\" height={height} role=img aria-label=\"packets between suite and device\">\n\
         <text class=end x={SUITE} y=14>suite</text><text class=end x=\"{DEVICE}\" y=14 text-anchor=end>device</text>\n\
         {}{}{}</svg>\n",
        line(&SUITE.to_string()),
        line(DEVICE),
        drawing.body
    );
}

struct Drawing {
    body: String,
    y: usize,
    phase: Option<Phase>,
}

impl Drawing {
    fn folded(&mut self, count: usize) {
        self.y += LINE;
        let _ = writeln!(
            self.body,
            "<text class=faint x={} y={}>… {count} steps are not shown</text>",
            SUITE + 8,
            self.y
        );
        self.y += LINE / 2;
    }

    fn step(&mut self, moment: &Moment, marked: Option<usize>, fields: &impl Fn(usize) -> Option<String>) {
        if self.phase != Some(moment.phase) {
            self.phase = Some(moment.phase);
            self.y += LINE + 2;
            let name = moment.phase.name();
            let _ = writeln!(self.body, "<text class=phase x={} y={}>{name}</text>", SUITE + 8, self.y);
            self.y += LINE / 3;
        }
        let time = milliseconds(moment.time_ns);
        let first = self.y + LINE;
        let time = format!("<text class=time x={} y={first} text-anchor=end>{time}</text>", SUITE - 4);
        match &moment.event {
            TimelineEvent::Packet { number, direction, text, marks } => {
                self.packet(&time, (*number, *direction), text, marks, (marked, number.and_then(fields)));
            }
            TimelineEvent::Control { operation, arguments } => {
                self.band("control", &time, &format!("{operation} {arguments}"));
            }
            TimelineEvent::Check(check) if check.held => {
                self.band("held", &time, &format!("{}: {}", check.requirement, check.obligation()));
            }
            TimelineEvent::Check(check) => {
                let text = format!("{}: {}; seen {}", check.requirement, check.obligation(), check.seen);
                self.band("broken", &time, &text);
            }
            TimelineEvent::Note { text } => self.band("note", &time, text),
        }
    }

    /// Draws a text on a colored band.
    fn band(&mut self, class: &str, time: &str, text: &str) {
        let lines = wrap(text, WIDTH);
        let height = lines.len() * LINE + 4;
        let top = self.y + 2;
        let _ = writeln!(
            self.body,
            "<g class={class}><rect x=0 y={top} width=\"{DEVICE}\" height={height} rx=3 />{time}"
        );
        self.lines(&lines, SUITE + 8, "start");
        self.body += "</g>\n";
        self.y += height + 4;
    }

    fn packet(
        &mut self,
        time: &str,
        (number, direction): (Option<usize>, PacketDirection),
        text: &str,
        marks: &[Mark],
        (marked, fields): (Option<usize>, Option<String>),
    ) {
        let (class, from, to, tip) = match direction {
            PacketDirection::ToDevice => ("to", format!("{SUITE}"), DEVICE.to_owned(), "M0 0l-9 -4v8z"),
            PacketDirection::FromDevice => ("from", DEVICE.to_owned(), format!("{SUITE}"), "M0 0l9 -4v8z"),
        };
        let mut classes = vec!["packet", class];
        classes.extend((marked.is_some() && marked == number).then_some("marked"));
        for mark in marks {
            classes.push(match mark {
                Mark::Lost => "lost",
                Mark::Congestion => "congestion",
                Mark::Trimmed => "trimmed",
                Mark::Damaged => "damaged",
                Mark::Retransmission => "retransmission",
                Mark::Duplicate => "duplicate",
                Mark::Refusal => "refusal",
            });
        }
        let number = number.map_or_else(String::new, |number| format!("{number}  "));
        let mut lines = wrap(&format!("{number}{text}"), WIDTH);
        let words: Vec<&str> = marks.iter().map(|mark| mark.word()).collect();
        let height = (lines.len() + usize::from(!words.is_empty())) * LINE + 12;
        let button =
            fields.map(|id| format!(" tabindex=0 role=button data-fields=\"{id}\"")).unwrap_or_default();
        let _ = write!(
            self.body,
            "<g class=\"{}\"{button}><rect class=back x=0 y={} width=\"{DEVICE}\" height={height} rx=3 />{time}",
            classes.join(" "),
            self.y + 2,
        );
        self.lines(&core::mem::take(&mut lines), SUITE + 8, "start");
        let mut y = self.y + height - 12;
        if !words.is_empty() {
            let _ = write!(
                self.body,
                "<text class=mark x={} y={}>{}</text>",
                SUITE + 8,
                y,
                Escaped(words.join(", "))
            );
        }
        y += 7;
        let _ = write!(self.body, "<line class=arrow x1=\"{from}\" x2=\"{to}\" y1={y} y2={y} />");
        // A packet that does not arrive whole ends in a cross.
        let lost = marks.iter().any(|mark| matches!(mark, Mark::Lost | Mark::Trimmed | Mark::Damaged));
        let shape = if lost { "M-5 -5l10 10M5 -5l-10 10" } else { tip };
        let kind = if lost { "cross" } else { "tip" };
        let place = if lost { "75%" } else { &to };
        let _ = writeln!(
            self.body,
            "<svg x=\"{place}\" y={y} overflow=visible><path class={kind} d=\"{shape}\" /></svg></g>"
        );
        self.y += height + 2;
    }

    fn lines(&mut self, lines: &[String], x: usize, anchor: &str) {
        for (index, line) in lines.iter().enumerate() {
            let y = self.y + (index + 1) * LINE;
            let _ = write!(self.body, "<text x={x} y={y} text-anchor={anchor}>{}</text>", Escaped(line));
        }
    }
}

/// Breaks a text between words. A long text ends in dots.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while let Some(line) = lines.last_mut() {
            let used = line.chars().count();
            let gap = usize::from(used > 0);
            if used + gap + rest.len() <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.extend(rest);
                break;
            }
            if used == 0 {
                line.extend(rest.drain(..width));
            }
            lines.push(String::new());
        }
    }
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            last.push('…');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_within_long_ones() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a b c d e f g", 1).len(), LINES);
    }
}
