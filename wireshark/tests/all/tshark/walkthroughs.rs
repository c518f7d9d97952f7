//! The filters of docs/walkthroughs.md, in tshark. `wireshark/test` runs this.

use super::{SCRIPT, tshark};
use std::fs;
use std::path::Path;

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn filters_find_the_packets_that_the_page_names() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let page = fs::read_to_string(root.join("docs/walkthroughs.md")).unwrap();
    let mut filters = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains(" | `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, filter, packets, _] = cells[..] else { panic!("{row}") };
        let file = root.join(format!("corpora/captures/learn/{name}.pcapng"));
        let filter = filter.trim_matches('`');
        let arguments =
            ["-2", "-r", file.to_str().unwrap(), "-Y", filter, "-T", "fields", "-e", "frame.number"];
        let found = tshark(&[SCRIPT], &arguments).lines().collect::<Vec<_>>().join(", ");
        assert_eq!(found, packets, "{name}: {filter}");
        filters += 1;
    }
    assert!(filters >= 14, "{filters}");
}
