//! `uet corpus`: seed inputs for fuzzers.

use crate::common;

use common::uet;
use std::fs;

#[test]
fn exported_packets_can_be_read() {
    let place = std::env::temp_dir().join(format!("uet-corpus-{}", std::process::id()));
    let path = place.to_str().unwrap();
    let run = uet(&["corpus", "export", path]);
    assert_eq!(run.code, 0, "{}", run.err);

    let mut files = 0;
    for (start, capture) in [("eth", true), ("ip", true), ("udp", false), ("uet", true)] {
        let count = fs::read_dir(place.join(start)).unwrap().count();
        assert!(count > 20, "{start}: {count}");
        files += count;
        if capture {
            let decoded = uet(&["decode", "--format", "json", &format!("{path}/{start}.pcap")]);
            assert_eq!(decoded.out.lines().count(), count, "{start}");
        }
    }
    assert_eq!(run.err, format!("{files} packets\n"));
    let words = fs::read_to_string(place.join("uet.dict")).unwrap();
    assert!(words.contains("\nRUD_REQ_UET_HDR_REQUEST_STD=\"\\x11\\x80\"\n"), "{words}");
    assert_eq!(words, uet(&["corpus", "dictionary"]).out);
    fs::remove_dir_all(place).unwrap();
}
