//! Congestion control, by its public interface.

mod examples;
mod nscc;
mod states;
