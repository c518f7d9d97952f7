//! Reports of the suite's results for people and programs.

pub mod causes;
pub mod html;
pub mod json;
pub mod junit;
pub mod matrix;
pub mod text;
