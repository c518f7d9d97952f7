//! Validates a packet and lists the findings: `cargo run -p uet-wire --example validate`.

use uet_wire::validate::Severity;
use uet_wire::{Uet, Version};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // An ACK with a reserved bit set, from a context without an identifier. Parsing accepts it and keeps every bit.
    let bytes = [0x38, 0x40, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x00, 0x00, 0x40, 0x01];
    let packet = Uet::parse(&bytes)?;

    let mut errors = 0;
    for finding in packet.validate(Version::default()) {
        println!("{finding}");
        errors += usize::from(finding.severity() == Severity::Error);
    }
    assert_eq!(errors, 1);
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
