//! A version of the specification that the libraries do not know, with one new code point, one changed field and one
//! changed rule. Nothing but the `static`s here defines it.

use serde_json::{Value, json};
use uet_conformance::{Options, RunResult, run, spec_mismatch};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_packet_io::json::{Decoded, Record, Settings, encode};
use uet_wire::catalogue::WIRE_SES_001;
use uet_wire::layout::{self, Kind, Layout, Row, Values};
use uet_wire::pds::{Prologue, Uud};
use uet_wire::registry::{Entry, NackCode};
use uet_wire::ses::{Medium, Response, ResponseData, ResponseDataSmall, Small, Std};
use uet_wire::validate::{Condition, Rule};
use uet_wire::{Spec, Start, Version};

const TOO_WARM: Entry =
    Entry { code: 0x1b, name: "TOO_WARM", doc: "the receiver overheats", since: None, until: None };

const PROLOGUE: Kind = Kind::Part(Prologue::LAYOUT);
const ROWS: &[Row] = &[
    Row { name: "prologue", lo: 0, hi: 16, kind: PROLOGUE, when: None, doc: "" },
    Row { name: "pds.flow", lo: 16, hi: 32, kind: Kind::Uint, when: None, doc: "a flow label" },
];
static UUD: Layout = Uud::LAYOUT.revised(ROWS, &layout::places::<{ layout::count(ROWS) }>(ROWS));

const SES: &[&Layout] = &[
    Std::LAYOUT,
    Medium::LAYOUT,
    Small::LAYOUT,
    Response::LAYOUT,
    ResponseData::LAYOUT,
    ResponseDataSmall::LAYOUT,
];
const VERSION_IS_1: Rule = Rule {
    requirement: WIRE_SES_001,
    headers: SES,
    field: "ses.version",
    broken: &[Condition::In("ses.version", Values::of(&[1]).not())],
};

static NEXT: Spec = Spec::new("9.9", Version::V1_0_3)
    .with_codes(&[(NackCode::REGISTRY, &TOO_WARM)])
    .with_layouts(&[&UUD])
    .with_rules(&[WIRE_SES_001], &[VERSION_IS_1]);

const DATAGRAM: [u8; 4] = [0x30, 0, 0xab, 0xcd];
const NACK: [u8; 16] = [0x50, 0, 0x1b, 0, 0, 0, 1, 0x4d, 0x80, 1, 0x40, 1, 0, 0, 0, 0];

fn settings(spec: &'static Spec) -> Settings {
    Settings { start: Start::Uet, options: uet_wire::Options::DEFAULT.spec(spec) }
}

fn decoded(bytes: &[u8], spec: &'static Spec) -> Value {
    let record = Record { start: Start::Uet, bytes, wire: bytes.len(), ..Record::default() };
    serde_json::to_value(Decoded::new(record, &settings(spec).options, false)).unwrap()
}

#[test]
fn json_has_the_new_code_point_and_the_new_field() {
    let nack = decoded(&NACK, &NEXT);
    assert_eq!((&nack["names"]["pds.nack_code"], &nack["findings"]), (&json!("TOO_WARM"), &json!([])));
    assert_eq!(decoded(&NACK, Version::V1_0_3.spec())["findings"][0]["id"], "WIRE-NACK-001");

    let datagram = decoded(&DATAGRAM, &NEXT);
    assert_eq!((&datagram["fields"]["pds.flow"], &datagram["reserved"]), (&json!(0xabcd), &json!({})));
    assert_eq!(encode(&datagram, &settings(&NEXT)).unwrap(), DATAGRAM);
    assert_eq!(encode(&datagram, &settings(Version::V1_0_3.spec())).unwrap_err().at, "fields.pds.flow");
    assert_eq!(decoded(&DATAGRAM, Version::V1_0_3.spec())["reserved"], json!({ "uud@16:16": 0xabcd }));
}

fn suite(spec: &'static Spec) -> RunResult {
    let options = Options { ids: vec!["ack/requested".into()], spec, ..Options::default() };
    run(&mut Embedded::new(Config::default()).unwrap(), &options, |_| ())
}

#[test]
fn suite_judges_by_the_changed_rule() {
    let (next, released) = (suite(&NEXT), suite(Version::V1_0_3.spec()));
    assert_eq!((released.exit_code(), released.packets.findings.len()), (0, 0));
    assert_eq!((next.exit_code(), next.specification.as_str()), (1, "9.9"));
    assert_eq!(next.packets.findings[0].requirement.as_deref(), Some("WIRE-SES-001"));

    let warning = spec_mismatch(&next.statement.device, &NEXT).unwrap();
    assert!(warning.contains("1.0.3") && warning.contains("9.9"), "{warning}");
    assert_eq!(spec_mismatch(&next.statement.device, Version::V1_0_3.spec()), None);
}
