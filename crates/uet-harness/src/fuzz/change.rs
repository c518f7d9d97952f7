//! Names what a fuzzer changed in a packet, in the form of the changed packet: after `som`, the bits of the
//! header data are those of length and offset.

use uet_wire::{Options, Packet, Start};

/// Returns the differences of two packets, such as `ses.message_offset 0 to 7`. Empty if they are equal.
pub(super) fn between(before: &[u8], after: &[u8]) -> String {
    let packet = Packet::parse_lax(Start::Uet, after, &Options::DEFAULT).0;
    let mut changes = Vec::new();
    let mut at = 0;
    for (layout, header) in packet.headers() {
        let old = before.get(at..).unwrap_or_default();
        for (place, new) in layout.present(header) {
            match place.read(old) {
                Some(old) if old != new => changes.push(format!(
                    "{} {} to {}",
                    layout.key(&place),
                    place.display(old),
                    place.display(new)
                )),
                _ => {}
            }
        }
        at += header.len();
    }
    if before.iter().zip(after).skip(at).any(|(old, new)| old != new) {
        changes.push(if packet.rest.is_empty() { "payload" } else { "a header that is cut off" }.into());
    }
    if before.len() != after.len() {
        changes.push(format!("length {} to {}", before.len(), after.len()));
    }
    changes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::between;
    use uet_wire::pds::Request;
    use uet_wire::registry::Opcode;
    use uet_wire::ses::Std;
    use uet_wire::{FrameBuilder, Psn};

    fn write(som: bool) -> Vec<u8> {
        let request = Request::rud().psn(Psn(7)).done().unwrap();
        let write =
            Std::build(Opcode::UET_WRITE).head(|head| head.som(som)).request_length(8221).done().unwrap();
        let mut bytes = vec![0; 128];
        let length = FrameBuilder::new(request)
            .ses(write)
            .payload(if som { b"abc" } else { b"" })
            .emit(&mut bytes)
            .unwrap();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn the_form_of_the_header_names_the_field() {
        // The last bytes of header data and of message_offset are the same.
        let offset = 12 + 39;
        for (som, expected) in [(true, "ses.header_data 0 to 7"), (false, "ses.message_offset 0 to 7")] {
            let (before, mut after) = (write(som), write(som));
            after[offset] = 7;
            let change = between(&before, &after);
            assert_eq!(
                change.replace("0x0000000000000000", "0").replace("0x0000000000000007", "7"),
                expected
            );
        }
    }

    #[test]
    fn lengths_and_payload_are_named() {
        let before = write(true);
        let mut after = before.clone();
        *after.last_mut().unwrap() = 0;
        after.push(0);
        assert_eq!(between(&before, &after), "payload, length 59 to 60");
        assert_eq!(between(&before, &before), "");
        assert_eq!(between(&before, &before[..20]), "length 59 to 20");
    }
}
