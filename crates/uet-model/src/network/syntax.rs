use crate::network::impairment::{Effect, Impairment, Pick};
use crate::network::kind::PacketKind;
use crate::{Time, TrimPoint};
use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;
use uet_wire::Trimmed;

/// An error in the text syntax of an impairment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The wrong word; empty at the end of the text.
    pub word: String,
    /// The column of its first character, counted from 1.
    pub column: usize,
    /// The words that the parser accepts there.
    pub expected: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word.as_str() {
            "" => write!(f, "at the end: expected {}", self.expected),
            word => write!(f, "at '{word}' (character {}): expected {}", self.column, self.expected),
        }
    }
}

impl core::error::Error for SyntaxError {}

const EFFECTS: &str = "drop, duplicate, delay TIME, jitter TIME, reorder COUNT, mark, trim SIZE, trim-last-hop SIZE, \
                       corrupt or blackout TIME";
const WHICH: &str = "a percentage (5%), a number (3), numbers (3..5), 'every 3', 'from ADDRESS', 'to ADDRESS', \
                     'after TIME', 'before TIME', or packet, request, first, retransmission, ack, nack or control";
const PERCENTAGE: &str = "a percentage from 0% to 100%";
const TIME: &str = "a time such as 500ns, 20us, 1.5ms or 2s";
const COUNT: &str = "a number from 1 on";

/// Parses an effect and a selection of packets:
///
/// ```text
/// drop 5%                      each packet with this probability
/// drop request 3               the third request; 3..5 for the third to the fifth
/// delay 20us ack every 4       every fourth ACK
/// trim 64 first 2 to 10.0.0.2  the second first transmission to this address, to 64 bytes behind the IP header
/// blackout 1ms request 3       everything from the third request on, for one millisecond
/// mark after 1ms before 2ms    every packet in this span of time
/// ```
///
/// The kinds are packet (the default), request, first, retransmission, ack, nack and control. A first is a request that
/// is not a retransmission. Conditions after the effect may come in any order.
impl FromStr for Impairment {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let mut words = Words { text, at: 0 };
        let mut impairment = Impairment::new(words.effect()?);
        while !words.rest().is_empty() {
            words.condition(&mut impairment)?;
        }
        Ok(impairment)
    }
}

struct Words<'a> {
    text: &'a str,
    /// The number of bytes read.
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default().trim_start()
    }

    fn peek(&self) -> &'a str {
        self.rest().split_whitespace().next().unwrap_or_default()
    }

    /// Takes the next word.
    fn next(&mut self) -> &'a str {
        let word = self.peek();
        self.at = self.text.len() - self.rest().len() + word.len();
        word
    }

    fn error(&self, expected: &'static str) -> SyntaxError {
        let start = self.text.len() - self.rest().len();
        let column = self.text.get(..start).unwrap_or_default().chars().count() + 1;
        SyntaxError { word: self.peek().to_owned(), column, expected }
    }

    /// Takes the next word if `read` accepts it.
    fn take<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, SyntaxError> {
        let word = self.peek();
        let value = read(word).ok_or_else(|| self.error(expected))?;
        self.next();
        Ok(value)
    }

    fn effect(&mut self) -> Result<Effect, SyntaxError> {
        const SIZE: &str = "a size in bytes from 24 on";
        let size =
            |word: &str| word.parse().ok().filter(|size: &u16| usize::from(*size) >= Trimmed::MIN_SIZE);
        let begin = self.at;
        Ok(match self.next() {
            "drop" => Effect::Drop,
            "duplicate" => Effect::Duplicate,
            "delay" => Effect::Delay(self.take(TIME, span)?),
            "jitter" => Effect::Jitter(self.take(TIME, span)?),
            "reorder" => Effect::Reorder(self.take(COUNT, count)?),
            "mark" => Effect::Mark,
            "trim" => Effect::Trim(self.take(SIZE, size)?, TrimPoint::Fabric),
            "trim-last-hop" => Effect::Trim(self.take(SIZE, size)?, TrimPoint::LastHop),
            "corrupt" => Effect::Corrupt,
            "blackout" => Effect::Blackout(self.take(TIME, span)?),
            _ => {
                self.at = begin;
                return Err(self.error(EFFECTS));
            }
        })
    }

    fn condition(&mut self, to: &mut Impairment) -> Result<(), SyntaxError> {
        const ADDRESS: &str = "an IP address";
        let address = |word: &str| word.parse::<IpAddr>().ok();
        let time = |word: &str| span(word).map(|span| Time::ZERO + span);
        let begin = self.at;
        match self.next() {
            "from" => to.from = Some(self.take(ADDRESS, address)?),
            "to" => to.to = Some(self.take(ADDRESS, address)?),
            "after" => to.after = self.take(TIME, time)?,
            "before" => to.before = Some(self.take(TIME, time)?),
            word => {
                if let Some((_, kind)) = PacketKind::NAMES.iter().find(|(name, _)| *name == word) {
                    to.kind = *kind;
                    return Ok(());
                }
                if to.pick != Pick::All {
                    self.at = begin;
                    return Err(self.error("nothing here: the packets are already selected"));
                }
                if word == "every" {
                    to.pick = Pick::Every(self.take(COUNT, count)?);
                    return Ok(());
                }
                self.at = begin;
                to.pick = self.take(if word.ends_with('%') { PERCENTAGE } else { WHICH }, picked)?;
            }
        }
        Ok(())
    }
}

/// Parses a number from 1 on.
fn count<T: FromStr + Default + PartialEq>(word: &str) -> Option<T> {
    word.parse().ok().filter(|number| *number != T::default())
}

/// Parses a selection: `5%`, `3` or `3..5`.
fn picked(word: &str) -> Option<Pick> {
    if let Some(percent) = word.strip_suffix('%') {
        let percent: f64 = percent.parse().ok()?;
        return (0.0..=100.0).contains(&percent).then_some(Pick::Chance(percent));
    }
    let (first, last) = word.split_once("..").unwrap_or((word, word));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0 && first <= last).then_some(Pick::Nth(first..=last))
}

const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Parses a duration: a number and its unit.
fn span(word: &str) -> Option<Duration> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = (word.get(..end)?, word.get(end..)?);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let nanos = number.parse::<f64>().ok()? * factor;
    (nanos <= 86_400e9).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// Prints a duration in the largest unit that keeps it a whole number.
pub(crate) struct DurationText(pub(crate) Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (unit, factor) = UNITS
            .iter()
            .map(|(name, factor)| (name, *factor as u128))
            .find(|(_, factor)| nanos % factor == 0)
            .unwrap_or((&"ns", 1));
        write!(f, "{}{unit}", nanos / factor)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Drop => f.write_str("drop"),
            Effect::Duplicate => f.write_str("duplicate"),
            Effect::Delay(span) => write!(f, "delay {}", DurationText(*span)),
            Effect::Jitter(span) => write!(f, "jitter {}", DurationText(*span)),
            Effect::Reorder(count) => write!(f, "reorder {count}"),
            Effect::Mark => f.write_str("mark"),
            Effect::Trim(size, TrimPoint::Fabric) => write!(f, "trim {size}"),
            Effect::Trim(size, TrimPoint::LastHop) => write!(f, "trim-last-hop {size}"),
            Effect::Corrupt => f.write_str("corrupt"),
            Effect::Blackout(span) => write!(f, "blackout {}", DurationText(*span)),
        }
    }
}

/// Prints the text that parses to this impairment. The text omits the predicate.
impl fmt::Display for Impairment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        if let Some((name, _)) =
            PacketKind::NAMES.iter().find(|(_, kind)| *kind == self.kind && *kind != PacketKind::Packet)
        {
            write!(f, " {name}")?;
        }
        match &self.pick {
            Pick::All => {}
            Pick::Nth(numbers) if numbers.start() == numbers.end() => write!(f, " {}", numbers.start())?,
            Pick::Nth(numbers) => write!(f, " {}..{}", numbers.start(), numbers.end())?,
            Pick::Every(n) => write!(f, " every {n}")?,
            Pick::Chance(percent) => write!(f, " {percent}%")?,
        }
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        if self.after > Time::ZERO {
            write!(f, " after {}", DurationText(self.after - Time::ZERO))?;
        }
        if let Some(before) = self.before {
            write!(f, " before {}", DurationText(before - Time::ZERO))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match text.parse::<Impairment>() {
            Ok(impairment) => impairment.to_string(),
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn printed_impairments_parse() {
        for text in [
            "drop",
            "drop 5%",
            "drop 0.5%",
            "drop request 3",
            "drop request 3..5",
            "duplicate first every 10",
            "delay 20us",
            "delay 1500ns ack",
            "jitter 2ms nack 10%",
            "reorder 3 retransmission 2",
            "mark control 50% from 10.0.0.1 to fd00::2",
            "trim 64 request 2",
            "trim-last-hop 24 request 2",
            "corrupt 4 after 1ms before 2s",
            "blackout 100us request 3",
        ] {
            assert_eq!(read(text), text);
        }
        assert_eq!(read(" delay   1.5us  "), "delay 1500ns");
        assert_eq!(read("drop 3 packet"), "drop 3");
    }

    #[test]
    fn errors_name_the_place() {
        for (text, start) in [
            ("", "! at the end: expected drop, "),
            ("dorp 5%", "! at 'dorp' (character 1): expected drop, "),
            ("drop request x", "! at 'x' (character 14): expected a percentage"),
            ("delay", "! at the end: expected a time"),
            ("delay 20", "! at '20' (character 7): expected a time"),
            ("delay 20 us", "! at '20' (character 7): expected a time"),
            ("delay 9999999s", "! at '9999999s' (character 7): expected a time"),
            ("drop 101%", "! at '101%' (character 6): "),
            ("drop NaN%", "! at 'NaN%' (character 6): "),
            ("drop 0", "! at '0' (character 6): "),
            ("drop 5..3", "! at '5..3' (character 6): "),
            ("drop 5% 3", "! at '3' (character 9): expected nothing here"),
            ("drop every 0", "! at '0' (character 12): expected a number from 1 on"),
            ("drop from nowhere", "! at 'nowhere' (character 11): expected an IP address"),
            ("trim 23", "! at '23' (character 6): expected a size"),
            ("reorder", "! at the end: expected a number from 1 on"),
            ("drop é 3", "! at 'é' (character 6): "),
        ] {
            assert!(read(text).starts_with(start), "{text}: {}", read(text));
        }
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = read(&text);
        }

        #[test]
        fn conditions_come_in_any_order(words in proptest::collection::vec("drop|delay|trim|reorder|3|5%|24|20us|request|every|from|to|10.0.0.1|after|1ms", 1..6)) {
            let text = words.join(" ");
            let once = read(&text);
            if !once.starts_with('!') {
                proptest::prop_assert_eq!(read(&once), once);
            }
        }
    }
}
