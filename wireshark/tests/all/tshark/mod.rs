//! Tests that need tshark, which `wireshark/test` runs, and helpers that run packets through tshark.

mod analysis;
#[allow(dead_code)] // its `main`
#[path = "../../../examples/capture.rs"]
mod capture;
mod codec;
mod compare;
mod filters;
mod observer;
mod preferences;
mod random;
mod reassembly;
mod secured;
mod steps;
mod trailer;
mod walkthroughs;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/uet.lua");

/// A captured packet.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) bytes: Vec<u8>,
    /// Number of bytes on the wire.
    pub(crate) wire: usize,
}

impl Captured {
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Captured { wire: bytes.len(), bytes }
    }
}

/// A temporary file.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(ending: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("uet-{}-{}.{ending}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes a capture with link type `link` and one packet per microsecond.
pub(crate) fn write_capture(file: &Path, link: u32, packets: &[Captured]) {
    let mut out = Vec::new();
    let words =
        |out: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    words(&mut out, &[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link]);
    for (index, packet) in packets.iter().enumerate() {
        let index = index as u32;
        words(
            &mut out,
            &[1 + index / 1_000_000, index % 1_000_000, packet.bytes.len() as u32, packet.wire as u32],
        );
        out.extend(&packet.bytes);
    }
    std::fs::write(file, out).unwrap();
}

fn copy(script: &str) -> Scratch {
    let scratch = Scratch::new("lua");
    std::fs::copy(script, &scratch.0).unwrap();
    scratch
}

/// Runs tshark with the dissector and returns its output. `TSHARK` names another one, with arguments.
pub(crate) fn tshark(scripts: &[&str], arguments: &[&str]) -> String {
    let program = std::env::var("TSHARK").unwrap_or_else(|_| "tshark".into());
    let mut words = program.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    // In a world-readable directory, because tshark may run as another user.
    let copies: Vec<Scratch> = scripts.iter().map(|script| copy(script)).collect();
    if let ["-G", what] = arguments {
        command.args(["-G", what]);
    }
    for script in &copies {
        command.arg("-X").arg(format!("lua_script:{}", script.0.display()));
    }
    let out = Scratch::new("out");
    let errors = Scratch::new("err");
    if arguments[0] != "-G" {
        command.args(arguments);
    }
    command.stdin(Stdio::null());
    command.stdout(std::fs::File::create(&out.0).unwrap()).stderr(std::fs::File::create(&errors.0).unwrap());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}; install tshark"));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > Duration::from_secs(300) => {
                child.kill().unwrap();
                panic!("tshark hangs: {arguments:?}");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let said = std::fs::read_to_string(&errors.0).unwrap();
    assert!(status.success(), "tshark {arguments:?}: {status}\n{said}");
    assert!(!said.contains("Lua: Error"), "{said}");
    let mut text = Vec::new();
    std::fs::File::open(&out.0).unwrap().read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    if let Some(at) = text.find("Lua Error") {
        let end = text[at..].char_indices().nth(400).map_or(text.len(), |(index, _)| at + index);
        panic!("{}", &text[at..end]);
    }
    text
}

/// tshark's view of one packet: the values of each UET field, and its expert items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dissected {
    pub(crate) fields: BTreeMap<String, Vec<String>>,
    /// Number of layers and fields of expert items, including those of other protocols.
    pub(crate) experts: usize,
}

impl Dissected {
    pub(crate) fn values(&self, name: &str) -> &[String] {
        self.fields.get(name).map_or(&[], |values| values)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u128> {
        self.values(name).first().map(|text| number(text))
    }

    /// Returns whether the field is present as a number.
    pub(crate) fn number_is_plain(&self, name: &str) -> bool {
        self.values(name).first().is_some_and(|text| text.parse::<i64>().is_ok())
    }

    fn gather(&mut self, node: &Node) {
        match node {
            Node::Map(entries) => {
                for (name, value) in entries {
                    if name == "_ws.expert" {
                        self.experts += 1;
                    }
                    if let (Some(name), Node::Text(text)) = (name.strip_prefix("uet."), value) {
                        self.fields.entry(name.into()).or_default().push(text.clone());
                    }
                    self.gather(value);
                }
            }
            Node::List(all) => all.iter().for_each(|node| self.gather(node)),
            Node::Text(_) => {}
        }
    }
}

/// Parses a number as tshark prints it: decimal, hexadecimal, a Boolean, or bytes with colons.
pub(crate) fn number(text: &str) -> u128 {
    match text {
        "True" | "true" => return 1,
        "False" | "false" => return 0,
        _ => {}
    }
    if let Some(negative) = text.strip_prefix('-') {
        return number(negative).wrapping_neg();
    }
    let parsed = if text.contains(':') {
        u128::from_str_radix(&text.replace(':', ""), 16)
    } else {
        text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u128::from_str_radix(digits, 16))
    };
    parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Dissects packets with these preferences.
pub(crate) fn dissect(link: u32, packets: &[Captured], preferences: &[String]) -> Vec<Dissected> {
    dissect_with(&[SCRIPT], link, packets, preferences)
}

/// Dissects packets with these scripts and preferences.
pub(crate) fn dissect_with(
    scripts: &[&str],
    link: u32,
    packets: &[Captured],
    preferences: &[String],
) -> Vec<Dissected> {
    let file = Scratch::new("pcap");
    write_capture(&file.0, link, packets);
    let mut arguments = vec!["-r", file.0.to_str().unwrap(), "-T", "json"];
    for preference in preferences {
        arguments.extend(["-o", preference]);
    }
    let json = tshark(scripts, &arguments);
    let Ok(Node::List(all)) = serde_json::from_str(&json) else { panic!("no list of packets: {json}") };
    assert_eq!(all.len(), packets.len());
    let each = all.iter().map(|node| {
        let mut dissected = Dissected::default();
        dissected.gather(node);
        dissected
    });
    each.collect()
}

/// Returns the Info column of the packet list with these preferences. The field `_ws.col.info` can be outdated.
pub(crate) fn info(link: u32, packets: &[Captured], preferences: &[String]) -> Vec<String> {
    info_with(&[SCRIPT], link, packets, preferences)
}

/// Returns the Info column with these scripts and preferences.
pub(crate) fn info_with(
    scripts: &[&str],
    link: u32,
    packets: &[Captured],
    preferences: &[String],
) -> Vec<String> {
    let file = Scratch::new("pcap");
    write_capture(&file.0, link, packets);
    let mut arguments = vec!["-r", file.0.to_str().unwrap(), "-o", "gui.column.format:\"Info\",\"%i\""];
    // PRP claims some padding for itself and reports a malformed packet.
    arguments.extend(["--disable-protocol", "prp"]);
    for preference in preferences {
        arguments.extend(["-o", preference]);
    }
    let lines: Vec<String> = tshark(scripts, &arguments).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), packets.len());
    lines
}

/// JSON with repeated names, as tshark writes it.
enum Node {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Text(text.into()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Text(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Text(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Text(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Text(value.to_string()))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Text(String::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
                let mut all = Vec::new();
                while let Some(node) = access.next_element()? {
                    all.push(node);
                }
                Ok(Node::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = access.next_entry()? {
                    all.push(entry);
                }
                Ok(Node::Map(all))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
