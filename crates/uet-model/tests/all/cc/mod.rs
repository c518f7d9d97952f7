//! Congestion control.

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
