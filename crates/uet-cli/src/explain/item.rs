//! An explained item.

use super::action;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use uet_conformance::{RULES, Rule, coverage};
use uet_control::Parameter;
use uet_model::pds::NackAction;
use uet_wire::Version;
use uet_wire::catalogue::{Level, Requirement};
use uet_wire::layout::{self, Kind as FieldKind, Layout, Place};
use uet_wire::registry::{Entry, NackCode, Registry, Status};

/// Kind of an explained item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field of a header.
    Field,
    /// A value derived from fields.
    Derived,
    /// A named number.
    CodePoint,
    /// The code points of a field.
    Registry,
    /// A header.
    Header,
    /// A requirement on implementations.
    Requirement,
    /// A rule of the conformance suite.
    Rule,
    /// A parameter of a device.
    Parameter,
    /// An abbreviation or a term.
    Abbreviation,
}

impl Kind {
    /// Returns the kind in words.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Field => "field",
            Kind::Derived => "derived value",
            Kind::CodePoint => "code point",
            Kind::Registry => "registry",
            Kind::Header => "header",
            Kind::Requirement => "requirement",
            Kind::Rule => "rule",
            Kind::Parameter => "parameter",
            Kind::Abbreviation => "term",
        }
    }
}

/// An explained item.
#[derive(Clone, Debug)]
pub struct Item {
    /// Kind of the item.
    pub kind: Kind,
    /// Identifier without spaces: `uet explain ID` finds it.
    pub id: String,
    /// Another name, or the identifier again.
    pub name: String,
    /// Meaning in one line.
    pub meaning: String,
    /// Further details, each with a label.
    pub details: Vec<(&'static str, String)>,
}

impl Item {
    fn new(kind: Kind, id: impl Into<String>, meaning: impl Into<String>) -> Self {
        let id = id.into();
        Item { kind, name: id.clone(), id, meaning: meaning.into(), details: Vec::new() }
    }

    fn detail(mut self, what: &'static str, text: impl Into<String>) -> Self {
        self.details.push((what, text.into()));
        self
    }

    /// Returns whether `word` names this item.
    pub fn is_called(&self, word: &str) -> bool {
        let without_layer = matches!(self.kind, Kind::Field | Kind::Derived)
            && [self.id.split_once('.'), self.id.rsplit_once('.')]
                .iter()
                .flatten()
                .any(|(_, name)| name.eq_ignore_ascii_case(word));
        self.id.eq_ignore_ascii_case(word) || self.name.eq_ignore_ascii_case(word) || without_layer
    }

    pub(super) fn derived(name: &str, meaning: &str) -> Self {
        Item::new(Kind::Derived, name, meaning)
    }

    pub(super) fn abbreviation(short: &str, long: &str, meaning: &str) -> Self {
        Item::new(Kind::Abbreviation, short, format!("{long}: {meaning}")).called(long)
    }

    pub(super) fn header(layout: &'static Layout) -> Self {
        let fields: Vec<&str> = layout.fields().map(|place| place.row.name).collect();
        Item::new(Kind::Header, format!("{}-header", layout.name), layout.title)
            .called(layout.name)
            .detail("layer", layout.layer.name())
            .detail("length", format!("{} bytes", layout.bytes))
            .detail("fields", fields.join(", "))
            .detail("figure", format!("uet layout {}", layout.name))
    }

    fn called(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    pub(super) fn requirement(requirement: &Requirement) -> Self {
        let sources = match requirement.evidence {
            1 => "one public source".to_owned(),
            many => format!("at least {many} independent public sources"),
        };
        let coverage = coverage::of(RULES, requirement);
        let mut item = Item::new(Kind::Requirement, requirement.id, requirement.sentence)
            .detail("level", format!("{}: {}", requirement.level.name(), gravity(requirement.level)))
            .detail("reason", requirement.rationale())
            .detail("section", requirement.section)
            .detail("evidence", sources)
            .detail("see", format!("docs/{}.md", requirement.source));
        for rule in coverage.rules.iter().filter_map(|id| RULES.find(id)) {
            item = item.detail("rule", format!("{}: {}", rule.id, rule.title));
        }
        if coverage.every_packet {
            item = item.detail("checked", "in every packet of the device, in all rules, and by `uet check`");
        }
        if let Some(reason) = coverage.unseen {
            item = item.detail("no rule", reason);
        }
        match coverage.rules.is_empty() {
            true => item,
            false => item.detail("failure", reading(requirement)),
        }
    }

    /// Creates the item of a rule without its timeline, which needs a run.
    pub(super) fn rule(rule: &'static Rule) -> Self {
        let mut item = Item::new(Kind::Rule, rule.id, rule.title);
        for requirement in rule.requirements {
            item = item.detail("checks", format!("{}: {}", requirement.id, requirement.sentence));
        }
        let needs: Vec<String> = rule.needs.iter().map(ToString::to_string).collect();
        if !needs.is_empty() {
            item = item.detail("needs", needs.join(", "));
        }
        for axis in rule.axes {
            let points: Vec<&str> = (0..axis.count()).map(|index| axis.point(index)).collect();
            item = item.detail("axis", format!("{}: {}", axis.name(), points.join(", ")));
        }
        item.detail("run", format!("uet run --id {}", rule.id))
    }

    /// Creates the item of a parameter without the rules that use it, which needs a run.
    pub(super) fn parameter(parameter: &'static Parameter) -> Self {
        Item::new(Kind::Parameter, parameter.name, parameter.meaning)
            .detail("type", parameter.kind.to_string())
            .detail("default", parameter.default)
            .detail("origin", parameter.origin.to_string())
    }

    pub(super) fn registry(registry: &'static Registry) -> Self {
        let names = registry.entries.iter().map(|entry| format!("{:#04x} {}", entry.code, entry.name));
        Item::new(Kind::Registry, registry.name, registry.title)
            .detail("width", format!("{} bits", registry.width))
            .detail("values", names.collect::<Vec<_>>().join(", "))
    }

    /// Creates the item of any number of a registry, named or not.
    pub(super) fn code(registry: &'static Registry, code: u8) -> Self {
        match registry.entry(code) {
            Some(entry) => Item::code_point(registry, entry),
            None => {
                let meaning = match registry.status(code, Version::default()) {
                    Status::Vendor => "left to vendors",
                    _ => "reserved",
                };
                let id = format!("{}={code:#04x}", registry.name);
                Item::new(Kind::CodePoint, id, meaning).detail("registry", registry.title)
            }
        }
    }

    pub(super) fn code_point(registry: &'static Registry, entry: &Entry) -> Self {
        let mut item = Item::new(Kind::CodePoint, format!("{}.{}", registry.name, entry.name), entry.doc)
            .called(entry.name)
            .detail("code", format!("{:#04x} ({})", entry.code, entry.code))
            .detail("registry", registry.title);
        if let Some(since) = entry.since {
            item = item.detail("since", format!("version {since}"));
        }
        if let Some(until) = entry.until {
            item = item.detail("until", format!("version {until}, where it becomes reserved"));
        }
        let nack = (registry == NackCode::REGISTRY).then(|| NackCode::new(entry.code)).flatten();
        match nack.and_then(|code| code.class().zip(NackAction::of(code))) {
            Some((class, action)) => {
                item.detail("class", action::class(class)).detail("action", action::action(action))
            }
            None => item,
        }
    }
}

/// Describes the effect of violating a requirement of this level.
const fn gravity(level: Level) -> &'static str {
    match level {
        Level::Must => "a violation loses, duplicates or misreads data, or makes a correct peer wait forever",
        Level::Should => "a peer can tolerate a violation",
        Level::May => "an option",
    }
}

/// Explains how to read a failure of its rules.
fn reading(requirement: &Requirement) -> String {
    format!(
        "`uet run --id {} --dut ...` shows the packets between suite and device, the expected value and the \
         observed one. The mark '>' names the packet in question. The requirement rests on public evidence: if the \
         specification says otherwise, waive it in a statement, and report it to us",
        requirement.id
    )
}

/// Returns all fields, each once, with its places.
pub(super) fn fields() -> Vec<Item> {
    let mut places: BTreeMap<&str, Vec<(&'static Layout, Place)>> = BTreeMap::new();
    let mut order = Vec::new();
    for layout in layout::ALL {
        for place in layout.fields() {
            let known = places.entry(place.row.name).or_insert_with(|| {
                order.push(place.row.name);
                Vec::new()
            });
            known.push((layout, place));
        }
    }
    order.iter().map(|name| field(name, &places[name])).collect()
}

fn field(name: &'static str, places: &[(&'static Layout, Place)]) -> Item {
    // One field can mean different things in different headers.
    let mut meanings: Vec<&str> = Vec::new();
    for (_, place) in places {
        if !meanings.contains(&place.row.doc) {
            meanings.push(place.row.doc);
        }
    }
    let mut item = Item::new(Kind::Field, name, meanings.join("; or: "));
    for (layout, place) in places {
        item = item.detail("in", Where(layout, *place).to_string());
        if let Some(when) = &place.row.when {
            item = item.detail("when", layout.condition(when).to_string());
        }
    }
    let mut told = Vec::new();
    for (_, place) in places {
        if let FieldKind::Code(registry) = place.row.kind {
            if !told.contains(&registry.name) && !registry.entries.is_empty() {
                told.push(registry.name);
                let names =
                    registry.entries.iter().map(|entry| format!("{:#04x} {}", entry.code, entry.name));
                item = item.detail("values", names.collect::<Vec<_>>().join(", "));
            }
        }
    }
    item
}

struct Where(&'static Layout, Place);

impl Display for Where {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Where(layout, place) = self;
        write!(f, "{}: bit {}, {} wide, {}", layout.name, place.lo(), place.row.width(), kind(place.row.kind))
    }
}

/// Describes in one word how the bits of a field are read.
pub(crate) const fn kind(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Bool => "flag",
        FieldKind::Uint => "unsigned",
        FieldKind::Int => "signed",
        FieldKind::Code(_) => "code",
        FieldKind::Address => "address",
        FieldKind::Part(_) => "part",
        FieldKind::Reserved => "reserved",
        _ => "other",
    }
}

impl serde::Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A detail that occurs more than once is a list.
        let mut details: Map<String, Value> = Map::new();
        for (what, text) in &self.details {
            match details.get_mut(*what) {
                None => {
                    let value =
                        if matches!(*what, "in" | "when" | "rule" | "checks" | "axis" | "read by" | "set by")
                        {
                            json!([text])
                        } else {
                            json!(text)
                        };
                    details.insert((*what).to_owned(), value);
                }
                Some(Value::Array(list)) => list.push(json!(text)),
                Some(other) => *other = json!([other.take(), text]),
            }
        }
        json!({
            "kind": self.kind.name(), "id": self.id, "name": self.name, "meaning": self.meaning, "details": details,
        })
        .serialize(serializer)
    }
}
