//! Congestion control, by its public interface.

#[path = "../common/cases.rs"]
#[allow(unreachable_pub)]
mod cases;

mod arithmetic;
mod destination;
mod examples;
mod histories;
mod incast;
mod nscc;
mod pacer;
mod parameters;
mod paths;
mod rccc;
mod states;
mod world;
