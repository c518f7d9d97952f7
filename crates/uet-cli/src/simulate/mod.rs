//! Input and output of `uet simulate`: a scenario from flags and a file; an outcome as a table, JSON, CSV and plots.

pub mod compare;
pub mod csv;
pub mod json;
pub mod plot;
pub mod quantity;
pub mod seeds;
pub mod settings;
pub mod sweep;
pub mod table;
pub mod workload;
