//! Conditions on the fields of a packet: `pds.psn > 5 && pds.flags.retx`.

use crate::near;
use std::net::IpAddr;
use std::str::FromStr;
use uet_packet_io::json::Decoded;
use uet_wire::derived::{DERIVED, Derived, derived};
use uet_wire::layout::{ALL, Kind, Place, Row};
use uet_wire::trailer::{Crc, Icv};
use uet_wire::with_serde::{INNER_VLAN, inner_name};
use uet_wire::{Spec, TrailerKind};

/// A condition on the fields of a packet.
///
/// A field alone holds if the packet has it; a flag alone holds if it is set. A comparison with a field that
/// the packet does not have is false.
#[derive(Clone, Debug)]
pub struct Expression(Node);

#[derive(Clone, Debug)]
enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Present(&'static str),
    Compare(&'static str, Comparison, Operand),
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, left: Number, right: Number) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

/// A number in its order: the sign, then the bits. Negative numbers are in two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    is_positive: bool,
    bits: u128,
}

impl Number {
    const fn unsigned(bits: u128) -> Self {
        Number { is_positive: true, bits }
    }

    fn signed(number: i128) -> Self {
        Number { is_positive: number >= 0, bits: number as u128 }
    }

    /// Returns the value of a field.
    fn of(place: &Place, value: u128) -> Self {
        match place.row.kind {
            Kind::Int => {
                let unused = 128 - place.row.width() as u32;
                Number::signed((value << unused) as i128 >> unused)
            }
            _ => Number::unsigned(value),
        }
    }
}

/// The right side of a comparison.
#[derive(Clone, Debug)]
enum Operand {
    Number(Number),
    /// An address of this many bits, and the number of its last bits that may differ.
    Address(usize, u128, u32),
    /// The name of a code point, in capitals.
    Name(String),
}

impl Expression {
    /// Returns whether the condition holds for a packet, which came this many nanoseconds after the first one.
    pub fn holds(&self, decoded: &Decoded<'_>, time: Option<i64>) -> bool {
        self.0.holds(decoded, time)
    }
}

impl Node {
    fn holds(&self, decoded: &Decoded<'_>, time: Option<i64>) -> bool {
        match self {
            Node::Or(nodes) => nodes.iter().any(|node| node.holds(decoded, time)),
            Node::And(nodes) => nodes.iter().all(|node| node.holds(decoded, time)),
            Node::Not(node) => !node.holds(decoded, time),
            Node::Present(TIME) => time.is_some(),
            Node::Compare(TIME, comparison, Operand::Number(value)) => {
                time.is_some_and(|time| comparison.holds(Number::signed(time.into()), *value))
            }
            Node::Present(name) => any_value(decoded, name, |place, number| {
                place.is_none_or(|place| place.row.kind != Kind::Bool) || number.bits != 0
            }),
            Node::Compare(name, comparison, value) => {
                any_value(decoded, name, |place, number| compare(*comparison, place, number, value))
            }
        }
    }
}

fn compare(comparison: Comparison, place: Option<&Place>, number: Number, value: &Operand) -> bool {
    match (value, place.map(|place| place.row)) {
        (Operand::Number(value), _) => comparison.holds(number, *value),
        (Operand::Address(width, bits, free), Some(row)) => {
            let prefix = |bits: u128| Number::unsigned(bits.checked_shr(*free).unwrap_or(0));
            row.width() == *width && comparison.holds(prefix(number.bits), prefix(*bits))
        }
        (Operand::Name(name), Some(row)) => match row.kind {
            Kind::Code(registry) => registry
                .entries
                .iter()
                .filter(|entry| entry.name == name)
                .any(|entry| comparison.holds(number, Number::unsigned(entry.code.into()))),
            _ => false,
        },
        (_, None) => false,
    }
}

/// Returns whether the function accepts a value of the field in this packet. Derived values have no place.
fn any_value(
    decoded: &Decoded<'_>,
    name: &str,
    mut accepts: impl FnMut(Option<&Place>, Number) -> bool,
) -> bool {
    let (packet, view) = (&decoded.packet, decoded.view());
    let trailer = match view.trailer {
        TrailerKind::Icv => Icv::LAYOUT,
        _ => Crc::LAYOUT,
    };
    let trailer = (!packet.trailer.is_empty()).then_some((trailer, packet.trailer));
    let in_headers = view.headers().chain(trailer).any(|(layout, header)| {
        let is_inner = view.is_inner_vlan(header);
        let called = |place: &Place| if is_inner { inner_name(place.row.name) } else { place.row.name };
        layout
            .present(header)
            .any(|(place, value)| called(&place) == name && accepts(Some(&place), Number::of(&place, value)))
    });
    let mut accepts = |number: u64| accepts(None, Number::unsigned(number.into()));
    in_headers
        || LENGTHS
            .iter()
            .zip([packet.uet.payload, packet.padding])
            .any(|(known, bytes)| *known == name && !bytes.is_empty() && accepts(bytes.len() as u64))
        || derived(&packet.uet).filter(|(known, _)| *known == name).any(|(_, value)| match value {
            Derived::Number(number) => accepts(number),
            Derived::Ranges(mut psns) => psns.any(|psn| accepts(psn.0.into())),
        })
}

/// The time since the first packet, which is no field. Values are in seconds.
const TIME: &str = "time";

/// Parts of a packet that have a length in bytes, and no fields.
const LENGTHS: [&str; 2] = ["payload", "padding"];

/// Returns the places of the fields in all headers of all versions.
fn places() -> impl Iterator<Item = Place> + Clone {
    Spec::ALL.iter().flat_map(|spec| ALL.iter().flat_map(|layout| spec.layout(layout).fields()))
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    let inner = INNER_VLAN.iter().map(|(_, inner)| *inner);
    let derived = DERIVED.iter().map(|(name, _)| *name);
    places().map(|place| place.row.name).chain(inner).chain(derived).chain(LENGTHS).chain([TIME])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Symbol(&'static str),
    Word(&'t str),
    End,
}

struct Parser<'t> {
    text: &'t str,
    /// The token after the parsed ones, and its place in the text.
    next: Token<'t>,
    at: usize,
    end: usize,
    depth: usize,
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, next: Token::End, at: 0, end: 0, depth: 0 };
        parser.advance()?;
        let node = parser.either()?;
        match parser.next {
            Token::End => Ok(Expression(node)),
            _ => Err(parser.expected("&& or ||")),
        }
    }
}

impl<'t> Parser<'t> {
    /// Reads the next token, and returns the one before it.
    fn advance(&mut self) -> Result<Token<'t>, String> {
        // A symbol comes before its own first character.
        const SYMBOLS: [&str; 11] = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")"];
        let before = self.next;
        let rest = self.text.get(self.end..).unwrap_or_default();
        let token = rest.trim_start();
        self.at = self.end + rest.len() - token.len();
        let is_other = |char: char| !char.is_alphanumeric() && !"._:-/".contains(char);
        let word = &token[..token.find(is_other).unwrap_or(token.len())];
        let length;
        (self.next, length) = match SYMBOLS.iter().find(|symbol| token.starts_with(**symbol)) {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None if token.is_empty() => (Token::End, 0),
            None if word.is_empty() => return Err(self.expected("a field, a value or an operator")),
            None => (Token::Word(word), word.len()),
        };
        self.end = self.at + length;
        Ok(before)
    }

    fn expected(&self, what: &str) -> String {
        let (before, from) = self.text.split_at_checked(self.at).unwrap_or((self.text, ""));
        let seen = match (self.next, from.chars().next()) {
            (Token::Word(word), Some(_)) if from.starts_with(word) => format!("'{word}'"),
            (_, Some('=')) if !from.starts_with("==") => "'='; use == to compare".to_owned(),
            (_, Some(char)) => format!("'{char}'"),
            (_, None) => "the end".to_owned(),
        };
        format!("expected {what} at character {}, seen {seen}", before.chars().count() + 1)
    }

    /// Reads conditions with `||` between them.
    fn either(&mut self) -> Result<Node, String> {
        self.joined("||", Self::all).map(Node::Or)
    }

    /// Reads conditions with `&&` between them.
    fn all(&mut self) -> Result<Node, String> {
        self.joined("&&", Self::one).map(Node::And)
    }

    fn joined(
        &mut self,
        symbol: &'static str,
        part: fn(&mut Self) -> Result<Node, String>,
    ) -> Result<Vec<Node>, String> {
        let mut nodes = vec![part(self)?];
        while self.next == Token::Symbol(symbol) {
            self.advance()?;
            nodes.push(part(self)?);
        }
        Ok(nodes)
    }

    fn one(&mut self) -> Result<Node, String> {
        // Deeper conditions could exhaust the stack.
        const DEEPEST: usize = 100;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the condition is nested more than {DEEPEST} levels deep"));
        }
        let node = match self.next {
            Token::Symbol("!") => {
                self.advance()?;
                Node::Not(Box::new(self.one()?))
            }
            Token::Symbol("(") => {
                self.advance()?;
                let node = self.either()?;
                if self.next != Token::Symbol(")") {
                    return Err(self.expected("&&, || or )"));
                }
                self.advance()?;
                node
            }
            Token::Word(word) => {
                let Some(name) = names().find(|name| *name == word) else {
                    let unknown = near::unknown("field", word, names());
                    let hint = if unknown.ends_with('?') { "" } else { "; `uet layout` lists the headers" };
                    return Err(unknown + hint);
                };
                self.advance()?;
                self.comparison(name)?
            }
            _ => return Err(self.expected("a field")),
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Reads what follows a field.
    fn comparison(&mut self, name: &'static str) -> Result<Node, String> {
        let comparison = match self.next {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::NotEqual,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return Ok(Node::Present(name)),
        };
        self.advance()?;
        let Token::Word(word) = self.next else { return Err(self.expected("a value")) };
        let value = value(name, word)?;
        self.advance()?;
        Ok(Node::Compare(name, comparison, value))
    }
}

/// Reads a value of this field.
fn value(name: &str, word: &str) -> Result<Operand, String> {
    if name == TIME {
        let seconds = word.parse().ok().filter(|seconds: &f64| seconds.is_finite());
        return seconds
            .map(|seconds| Operand::Number(Number::signed((seconds * 1e9).round() as i128)))
            .ok_or_else(|| format!("'{word}' is not a number of seconds, which time is compared with"));
    }
    let digits = word.strip_prefix("0x");
    let unsigned = digits.map_or_else(|| word.parse().ok(), |digits| u128::from_str_radix(digits, 16).ok());
    let number = unsigned.map(Number::unsigned).or_else(|| word.parse().ok().map(Number::signed));
    let rows = || places().map(|place| place.row).filter(|row| row.name == name);
    if let Some(number) = number {
        // Derived values and lengths have no rows.
        let has_room = |row: &'static Row| match row.kind {
            Kind::Int => {
                (number.bits as i128) << (128 - row.width()) >> (128 - row.width()) == number.bits as i128
            }
            _ => number.is_positive && number.bits.checked_shr(row.width() as u32).unwrap_or(0) == 0,
        };
        return match rows().map(|row| row.width()).max() {
            Some(width) if !rows().any(has_room) => {
                Err(format!("no packet has {word} in {name}, which has a width of {width} bits"))
            }
            _ => Ok(Operand::Number(number)),
        };
    }
    let (start, length) = word.split_once('/').map_or((word, None), |(start, length)| (start, Some(length)));
    let address = match start.parse() {
        Ok(IpAddr::V4(address)) => Some((32, u128::from(address.to_bits()))),
        Ok(IpAddr::V6(address)) => Some((128, address.to_bits())),
        Err(_) => mac(start).map(|address| (48, address)),
    };
    let free = |width: usize| match length {
        Some(length) => (width as u32).checked_sub(length.parse().ok()?),
        None => Some(0),
    };
    let address = address.and_then(|(width, bits)| Some(Operand::Address(width, bits, free(width)?)));
    if let Some(address) = address.filter(|_| rows().any(|row| row.kind == Kind::Address)) {
        return Ok(address);
    }
    if rows().any(|row| row.kind == Kind::Bool) {
        match word {
            "true" => return Ok(Operand::Number(Number::unsigned(1))),
            "false" => return Ok(Operand::Number(Number::unsigned(0))),
            _ => {}
        }
    }
    let codes = rows().filter_map(|row| match row.kind {
        Kind::Code(registry) => Some(registry.entries.iter().map(|entry| entry.name)),
        _ => None,
    });
    let (codes, code) = (codes.flatten(), word.to_ascii_uppercase());
    if codes.clone().any(|known| known == code) {
        Ok(Operand::Name(code))
    } else if codes.clone().next().is_some() {
        Err(near::unknown(&format!("value of {name}"), word, codes))
    } else if rows().any(|row| row.kind == Kind::Address) {
        Err(format!("'{word}' is not an address, which {name} is compared with"))
    } else {
        Err(format!("'{word}' is not a number, which {name} is compared with"))
    }
}

/// Reads an Ethernet address: six groups of two hexadecimal digits.
fn mac(text: &str) -> Option<u128> {
    let group = |group: &str| u8::from_str_radix(group, 16).ok().filter(|_| group.len() == 2);
    let bytes = text.split(':').map(group).collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() == 6)?;
    Some(bytes.into_iter().fold(0, |address, byte| address << 8 | u128::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_packet_io::json::Record;
    use uet_wire::pds::Request;
    use uet_wire::registry::Opcode;
    use uet_wire::ses::Std;
    use uet_wire::{FrameBuilder, Options, Psn, Start};

    fn write() -> Vec<u8> {
        let request = Request::rud().psn(Psn(7)).clear_psn(Psn(5)).retx(true).done().unwrap();
        let write = Std::build(Opcode::UET_WRITE).head(|head| head.som(true)).request_length(9000);
        let frame = FrameBuilder::new(request).ses(write.done().unwrap()).payload(b"hello").udp(0xbeef);
        let frame =
            frame.ipv4([10, 0, 0, 1], [10, 0, 1, 12]).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut bytes = vec![0; 256];
        let length = frame.emit(&mut bytes).unwrap();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn conditions_hold_by_the_values_of_the_fields() {
        let bytes = write();
        let record = Record { start: Start::Eth, bytes: &bytes, wire: bytes.len(), ..Record::default() };
        let decoded = Decoded::new(record, &Options::default(), false);
        for (text, expected) in [
            ("pds.psn > 5 && pds.flags.retx", true),
            ("pds.psn>5&&pds.flags.ar", false),
            ("pds.psn < 7 || pds.psn >= 7", true),
            ("pds.psn != 7", false),
            ("!(pds.psn == 0x7)", false),
            ("!pds.flags.syn && !!ses.som", true),
            ("ses.som == true", true),
            ("pds.type == RUD_REQ && ses.opcode == uet_write", true),
            ("ses.opcode == UET_READ", false),
            ("pds.clear_psn_offset == -2", true),
            ("pds.clear_psn_offset < 0", true),
            ("pds.clear_psn == 5", true),
            ("ip.src == 10.0.0.1 && ip.dst != 10.0.0.1", true),
            ("ip.src == ::a00:1", false),
            ("ip.src == 10.0.0.128/24 && ip.dst != 10.0.0.0/24", true),
            ("ip.src == 0.0.0.0/0 && ip.src != ::/0", false),
            ("eth.src == 02:00:00:00:00:01", true),
            ("payload == 5 && !padding", true),
            ("pds.cack_psn", false),
            ("pds.cack_psn != 1", false),
            ("pds.psn == 7 || pds.psn == 8 && pds.psn == 9", true),
            ("time >= 1.5 && time < 1.500000001 && time", true),
            ("time > 1.5 || time < -1", false),
        ] {
            let holds = text.parse::<Expression>().unwrap().holds(&decoded, Some(1_500_000_000));
            assert_eq!(holds, expected, "{text}");
        }
    }

    #[test]
    fn errors_name_the_place_or_what_was_meant() {
        for (text, expected) in [
            ("pds.pns > 5", "there is no field 'pds.pns'; did you mean pds.psn"),
            ("pds.type == RUD_REG", "there is no value of pds.type 'RUD_REG'; did you mean RUD_REQ"),
            ("pds.flags.retx == 2", "no packet has 2 in pds.flags.retx, which has a width of 1 bits"),
            ("pds.clear_psn_offset < -40000", "no packet has -40000 in pds.clear_psn_offset"),
            ("ip.src == 10.0.0.0/33", "'10.0.0.0/33' is not an address"),
            ("pds.psn > five", "'five' is not a number, which pds.psn is compared with"),
            ("time > soon", "'soon' is not a number of seconds, which time is compared with"),
            ("ip.src == here", "'here' is not an address, which ip.src is compared with"),
            ("pds.psn > ", "expected a value at character 11, seen the end"),
            ("pds.psn > 5 and pds.flags.retx", "expected && or || at character 13, seen 'and'"),
            ("pds.psn = 5", "expected a field, a value or an operator at character 9, seen '='; use =="),
            ("(pds.psn", "expected &&, || or ) at character 9, seen the end"),
            ("", "expected a field at character 1, seen the end"),
            ("ä", "there is no field 'ä'"),
        ] {
            let error = text.parse::<Expression>().unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn random_text_is_a_condition_or_an_error() {
        const WORDS: [&str; 18] = [
            "pds.psn",
            "pds.flags.retx",
            "ip.src",
            "&&",
            "||",
            "==",
            "!=",
            "<",
            "<=",
            ">",
            "!",
            "(",
            ")",
            "7",
            "-1",
            "0x",
            "10.0.0.1",
            "\u{e4}=",
        ];
        let bytes = write();
        let record = Record { start: Start::Eth, bytes: &bytes, wire: bytes.len(), ..Record::default() };
        let decoded = Decoded::new(record, &Options::default(), false);
        let mut conditions = 0;
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let text: String = (0..rng.usize(..8)).map(|_| WORDS[rng.usize(..WORDS.len())]).collect();
            match text.parse::<Expression>() {
                Ok(condition) => {
                    condition.holds(&decoded, None);
                    conditions += 1;
                }
                Err(error) => assert!(!error.is_empty(), "{text}"),
            }
        }
        assert!(conditions > 3, "{conditions}");
    }

    #[test]
    fn nesting_is_bounded() {
        for deep in ["(", "!"] {
            let error = deep.repeat(1 << 16).parse::<Expression>().unwrap_err();
            assert!(error.contains("nested more than 100 levels"), "{error}");
        }
        let many = vec!["pds.psn == 1"; 1 << 10].join(" || ");
        assert!(many.parse::<Expression>().is_ok());
    }
}
