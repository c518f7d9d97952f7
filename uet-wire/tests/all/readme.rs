//! The figures in the README match the committed table.

#[test]
fn the_table_of_the_readme_is_the_committed_one() {
    let table = include_str!("../../benches/instructions.txt");
    assert!(
        include_str!("../../README.md").contains(table.trim_end()),
        "copy benches/instructions.txt into the README"
    );
}
