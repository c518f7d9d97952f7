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
