//! Compiles the example in its four forms for the tests. With the feature `yours`, also compiles the parser that the
//! environment names: UET_PARSER is a list of C and C++ files, objects and libraries, separated by spaces.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=example/parser.c");
    println!("cargo::rerun-if-changed=uet_under_test.h");
    for bug in 0..4 {
        example(bug);
    }
    println!("cargo::rerun-if-env-changed=UET_PARSER");
    if env::var_os("CARGO_FEATURE_YOURS").is_some() {
        yours(&env::var("UET_PARSER").unwrap_or_else(|_| "example/parser.c".to_owned()));
    }
}

/// Compiles the example with this bug or none, under a name of its own.
fn example(bug: usize) {
    let name = format!("uet_example_{bug}");
    cc::Build::new()
        .file("example/parser.c")
        .include(".")
        .define("uet_parse_under_test", &*name)
        .define("BUG", &*bug.to_string())
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .compile(&name);
}

fn yours(parser: &str) {
    let (mut c, mut cpp) = (cc::Build::new(), cc::Build::new());
    let (mut is_c, mut is_cpp) = (false, false);
    for file in parser.split_whitespace() {
        println!("cargo::rerun-if-changed={file}");
        match Path::new(file).extension().and_then(|kind| kind.to_str()) {
            Some("c") => {
                is_c = true;
                c.file(file);
            }
            Some("cc" | "cpp" | "cxx") => {
                is_cpp = true;
                cpp.file(file);
            }
            _ => println!("cargo::rustc-link-arg={file}"),
        }
    }
    if is_c {
        c.include(".").compile("uet_yours_c");
    }
    if is_cpp {
        cpp.cpp(true).include(".").compile("uet_yours_cpp");
    }
}
