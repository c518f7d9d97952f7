//! The tests of the dissector, as one program.

mod current;
mod tshark;
