//! What the suite found, for people and for other programs.

pub mod capture;
pub mod text;
