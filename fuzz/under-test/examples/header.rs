//! Prints the C header: `cargo run -p uet-under-test --example header > fuzz/under-test/uet_under_test.h`.

fn main() {
    print!("{}", uet_under_test::header());
}
