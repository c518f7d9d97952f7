//! The program in P4-16, run by a small interpreter of the part of the language that it uses. No registry that we reach
//! has a compiler of P4.

use super::{Tally, vectors};
use crate::common::uet;
use std::collections::{BTreeMap, BTreeSet};
use uet_packet_io::hex::Hex;
use uet_wire::{Options, Packet, Start};

/// A value and its width in bits. Literals and booleans have no width.
type Bits = (u128, Option<usize>);
/// The fields of a header.
type Fields = BTreeMap<String, Bits>;
/// A header by its name.
type Found<'a> = (&'a str, Fields);

#[derive(Default)]
struct Program<'a> {
    /// Width and values of each enumeration.
    enums: BTreeMap<&'a str, (usize, BTreeMap<&'a str, u128>)>,
    /// Type, name and canonical name of each field.
    headers: BTreeMap<&'a str, Vec<(&'a str, &'a str, &'a str)>>,
    /// Type, expression and canonical name of each function.
    functions: BTreeMap<&'a str, (&'a str, &'a str, &'a str)>,
    /// The types of the parser's headers.
    found: BTreeMap<&'a str, &'a str>,
    /// The statements of each state.
    states: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Program<'a> {
    fn new(text: &'a str) -> Self {
        let mut program = Program::default();
        let canonical = |comment: &'a str| comment.split(':').next().unwrap().trim();
        let (mut open, mut depth, mut said) = (("", ""), 0, "");
        for line in text.lines().map(str::trim) {
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            let words: Vec<&str> = code.split_whitespace().collect();
            match (words.as_slice(), open.0) {
                (["enum", kind, name, "{"], "") => {
                    open = ("enum", name);
                    program.enums.insert(name, (width_of(kind).unwrap(), BTreeMap::new()));
                }
                ([kind @ ("header" | "struct" | "state"), name, "{"], "") => {
                    (open, depth) = ((*kind, *name), 1)
                }
                ([name, "=", value], "enum") => {
                    let values = &mut program.enums.get_mut(open.1).unwrap().1;
                    assert!(values.insert(name, value.trim_end_matches(',').parse().unwrap()).is_none());
                }
                ([kind, name], "header") => {
                    let name = name.strip_suffix(';').unwrap();
                    program.headers.entry(open.1).or_default().push((kind, name, canonical(comment)));
                }
                ([kind, name], "struct") => {
                    program.found.insert(name.strip_suffix(';').unwrap(), kind);
                }
                (_, "state") => {
                    depth = depth + code.matches('{').count() - code.matches('}').count();
                    if line != "}" {
                        program.states.entry(open.1).or_default().push(line);
                    }
                    open = if depth > 0 { open } else { ("", "") };
                }
                (["}"], _) => open = ("", ""),
                _ => {}
            }
            if let Some((head, expression)) = code.split_once(" { return ") {
                let (kind, rest) = head.split_once(' ').unwrap();
                let name = rest.split('(').next().unwrap();
                let expression = expression.strip_suffix("; }").unwrap();
                program.functions.insert(name, (kind, expression, said));
            }
            said = if code.is_empty() { canonical(comment) } else { "" };
        }
        program
    }

    fn width(&self, kind: &str) -> usize {
        width_of(kind).unwrap_or_else(|| self.enums.get(kind).unwrap_or_else(|| panic!("no type {kind}")).0)
    }

    /// Returns the fields of a header at the start of these bytes, and its length; `None` if it is cut.
    fn header(&self, name: &str, bytes: &[u8]) -> Option<(Fields, usize)> {
        let (mut fields, mut at) = (Fields::new(), 0);
        for (kind, name, _) in &self.headers[name] {
            let width = self.width(kind);
            let bit = |at: usize| Some(u128::from(bytes.get(at / 8)? >> (7 - at % 8) & 1));
            let value = (at..at + width).try_fold(0, |value, at| Some(value << 1 | bit(at)?))?;
            fields.insert((*name).into(), (value, Some(width)));
            at += width;
        }
        assert_eq!(at % 8, 0, "{name} ends within a byte");
        Some((fields, at / 8))
    }

    /// Runs the parser. Returns the headers that it has extracted, and the bytes that are left; `None` if it needs
    /// more.
    fn parse<'b>(&self, bytes: &'b [u8]) -> Option<(Vec<Found<'a>>, &'b [u8])> {
        let (mut state, mut rest, mut found) = ("start", bytes, Vec::<Found<'a>>::new());
        let mut names = Fields::new();
        while state != "accept" {
            let statements = self.states.get(state).unwrap_or_else(|| panic!("no state {state}"));
            for (at, statement) in statements.iter().enumerate() {
                let (before, value) = statement.split_once(' ').unwrap_or((statement, ""));
                if let Some(name) = between(statement, "packet.extract(hdr.", ");") {
                    let (fields, length) = self.header(self.found[name], rest)?;
                    rest = &rest[length..];
                    names.extend(fields.iter().map(|(field, bits)| (format!("hdr.{name}.{field}"), *bits)));
                    found.push((name, fields));
                } else if let Some(kind) = between(value, "= packet.lookahead<", ">();") {
                    let fields = self.header(kind, rest)?.0;
                    names.extend(fields.into_iter().map(|(field, bits)| (format!("{before}.{field}"), bits)));
                } else if let Some(name) = value.strip_prefix("= ") {
                    names.insert(before.into(), names[name.trim_end_matches(';')]);
                } else if let Some(value) = between(statement, "transition select(", ") {") {
                    let value = match between(value, "packet.lookahead<", ">()") {
                        Some("bit<8>") => u128::from(*rest.first()?),
                        Some(look) => {
                            let field = value.rsplit('.').next().unwrap();
                            self.header(look, rest)?.0[field].0
                        }
                        None => names[value].0,
                    };
                    let case = |line: &&'a str| {
                        let (label, next) = line.split_once(": ")?;
                        let label = if label == "default" { None } else { Some(self.eval(label, &names).0) };
                        label.is_none_or(|label| label == value).then(|| next.trim_end_matches(';'))
                    };
                    state = statements[at + 1..].iter().find_map(case).unwrap();
                    break;
                } else {
                    state = between(statement, "transition ", ";").unwrap_or_else(|| panic!("{statement}"));
                }
            }
        }
        Some((found, rest))
    }

    /// Returns the value of an expression.
    fn eval(&self, text: &str, names: &Fields) -> Bits {
        let mut reader = Reader { program: self, names, rest: text };
        let value = reader.choice();
        assert_eq!(reader.rest.trim(), "", "the end of {text}");
        value
    }
}

/// Returns the width of `bit<8>` or `int<8>`.
fn width_of(kind: &str) -> Option<usize> {
    kind.strip_prefix("bit<").or(kind.strip_prefix("int<"))?.strip_suffix('>')?.parse().ok()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split_once(after).map(|(between, _)| between)
}

/// Reads an expression.
struct Reader<'a> {
    program: &'a Program<'a>,
    names: &'a Fields,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn needs(&mut self, token: &str) {
        assert!(self.takes(token), "{token} is missing before {:?}", self.rest);
    }

    fn choice(&mut self) -> Bits {
        let test = self.either();
        if !self.takes("?") {
            return test;
        }
        let yes = self.choice();
        self.needs(":");
        let no = self.choice();
        if test.0 != 0 { yes } else { no }
    }

    fn either(&mut self) -> Bits {
        let mut value = self.both();
        while self.takes("||") {
            value = (value.0 | self.both().0, None);
        }
        value
    }

    fn both(&mut self) -> Bits {
        let mut value = self.compared();
        while self.takes("&&") {
            value = (value.0 & self.compared().0, None);
        }
        value
    }

    fn compared(&mut self) -> Bits {
        let left = self.joined();
        if self.takes("==") {
            (u128::from(left.0 == self.joined().0), None)
        } else if self.takes("!=") {
            (u128::from(left.0 != self.joined().0), None)
        } else {
            left
        }
    }

    fn joined(&mut self) -> Bits {
        let mut value = self.operand();
        while self.takes("++") {
            let (low, width) = self.operand();
            let width = width.unwrap();
            value = (value.0 << width | low, Some(value.1.unwrap() + width));
        }
        value
    }

    fn operand(&mut self) -> Bits {
        let value = if self.takes("(") {
            let kind = self.rest.split(')').next().unwrap();
            if width_of(kind).is_some() || self.program.enums.contains_key(kind) {
                self.rest = &self.rest[kind.len() + 1..];
                let value = self.operand();
                assert_eq!(value.1, Some(self.program.width(kind)), "the width of a cast");
                return value;
            }
            let value = self.choice();
            self.needs(")");
            value
        } else {
            let word = self.word();
            let known = word.split_once('.').and_then(|(kind, name)| {
                let (width, values) = self.program.enums.get(kind)?;
                Some((values[name], Some(*width)))
            });
            let number = || word.parse().ok().map(|number| (number, None));
            let named = || self.names.get(word).copied();
            known.or_else(named).or_else(number).unwrap_or_else(|| panic!("what is {word}?"))
        };
        if !self.takes("[") {
            return value;
        }
        let high: usize = self.word().parse().unwrap();
        self.needs(":");
        let low: usize = self.word().parse().unwrap();
        self.needs("]");
        assert!(high < value.1.unwrap() && low <= high);
        let width = high + 1 - low;
        (value.0 >> low & (u128::MAX >> (128 - width)), Some(width))
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && !"._".contains(letter));
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        word
    }
}

#[test]
fn p4_reads_every_field_of_the_vectors() {
    let text = uet(&["generate", "--language", "p4"]).out;
    let program = Program::new(&text);
    let vectors = vectors();
    let (mut tally, mut cut, mut reached) = (Tally::default(), 0, BTreeSet::new());
    for (bytes, vector) in vectors.iter().filter_map(|vector| Some((vector.uet()?, &vector.fields))) {
        let (packet, error) = Packet::parse_lax(Start::Uet, bytes, &Options::default());
        let Some((found, payload)) = program.parse(bytes) else {
            assert!(error.is_some(), "P4 needs more bytes than {}", Hex(bytes));
            cut += 1;
            continue;
        };
        assert_eq!(error, None, "P4 reads {}", Hex(bytes));
        assert_eq!(payload, packet.uet.payload);
        let names: Vec<&str> = packet.headers().map(|(layout, _)| layout.name).collect();
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names, "{}", Hex(bytes));
        for ((layout, bytes), (name, fields)) in packet.headers().zip(found) {
            reached.insert(name);
            tally.compare(layout, bytes, said(&program, name, fields), vector);
        }
    }
    let all: BTreeSet<&str> = program.found.keys().copied().collect();
    assert_eq!(reached, all, "the headers of all packets");
    tally.expect(45_000);
    assert!(cut > 700, "{cut} cut packets");
}

/// Returns the fields of a header by their canonical names: those that it has, and those that its functions read.
fn said<'a>(program: &Program<'a>, name: &str, fields: Fields) -> BTreeMap<&'a str, u128> {
    let names: Fields = fields.iter().map(|(field, bits)| (format!("hdr.{field}"), *bits)).collect();
    let exists = |field: &str| {
        let has = program.functions.get(format!("{name}_has_{field}").as_str());
        has.is_none_or(|(_, test, _)| program.eval(test, &names).0 == 1)
    };
    let rows = &program.headers[format!("{name}_h").as_str()];
    let own = rows.iter().filter(|(_, field, canonical)| !canonical.is_empty() && exists(field));
    let mut said: BTreeMap<&str, u128> =
        own.map(|(_, field, canonical)| (*canonical, fields[*field].0)).collect();
    for (function, (kind, expression, canonical)) in &program.functions {
        if let Some(field) = function.strip_prefix(&format!("{name}_get_")).filter(|field| exists(field)) {
            let (value, width) = program.eval(expression, &names);
            assert_eq!(width, Some(program.width(kind)), "the type of {function}, {field}");
            said.insert(canonical, value);
        }
    }
    said
}
