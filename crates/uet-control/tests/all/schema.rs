//! The schema in docs/ matches the types, and accepts the lines that the types write.

use serde_json::{Value, json};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-channel.schema.json");

/// Updates the file if `UPDATE=1` is set.
#[test]
fn the_schema_in_docs_is_current() {
    let text = format!("{:#}\n", uet_control::schema());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(SCHEMA, &text).unwrap();
    }
    let committed = std::fs::read_to_string(SCHEMA).unwrap_or_default();
    assert!(committed == text, "UPDATE=1 cargo test -p uet-control --features schema");
}

#[test]
fn the_schema_tells_lines_of_the_channel_from_others() {
    let schema = jsonschema::validator_for(&uet_control::schema()).unwrap();
    let takes = |line: &Value| schema.is_valid(line);
    for line in [
        json!({"id": 1, "op": "hello", "protocol": 1}),
        json!({"id": 2, "op": "post", "kind": "write", "peer": 1, "length": 5, "fill": {"hex": "68656c6c6f"}}),
        json!({"id": 2, "ok": true, "operation": 9}),
        json!({"id": 3, "error": {"code": "unsupported", "message": "no"}}),
        json!({"event": "completion", "operation": 9, "status": "ok", "length": 5}),
        json!({"id": 4, "op": "expose_region", "length": 4096, "key": "0xacce5", "permissions": ["read"]}),
    ] {
        assert!(takes(&line), "{line}");
    }
    for line in [
        json!({"op": "hello", "protocol": 1}),
        json!({"id": -1, "op": "reset"}),
        json!({"event": "completion", "operation": 9, "status": "perhaps"}),
        json!({"id": 3, "error": {"message": "no code"}}),
        json!("hello"),
    ] {
        assert!(!takes(&line), "{line}");
    }
}
