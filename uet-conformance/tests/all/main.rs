//! Tests of the suite by its public interface, as one program.

mod passive;
mod select;
mod silent;
