//! The figures in the README match the committed table.

#[test]
fn the_rows_of_the_readme_are_in_the_committed_table() {
    let table = include_str!("../../benches/instructions.txt");
    let speed = include_str!("../../README.md").split_once("## Speed").expect("a section").1;
    let rows: Vec<&str> = speed.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        assert!(table.lines().any(|line| line == row), "benches/instructions.txt has no row {row}");
    }
}
