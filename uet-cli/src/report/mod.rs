//! What the suite found, for people and for other programs.

pub mod html;
pub mod junit;
pub mod text;
