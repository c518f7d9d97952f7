//! Tests of the suite by its public interface, as one program.

mod select;
mod silent;
