//! Reports of the suite's results for people and programs.

pub mod causes;
pub mod html;
#[cfg(target_os = "linux")]
pub mod interop;
pub mod json;
pub mod junit;
pub mod matrix;
pub mod switch;
pub mod text;

/// Returns `3 pass` and `1 fail`, one for each word that counts something.
fn counted<const N: usize>(counts: [(usize, &'static str); N]) -> Vec<String> {
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, word)| format!("{count} {word}")).collect()
}
