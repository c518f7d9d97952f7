//! Tests of the dissector, as one program.

mod current;
mod tshark;
