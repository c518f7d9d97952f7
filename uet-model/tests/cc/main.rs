//! Congestion control, by its public interface.

//mod arithmetic;
mod destination;
mod examples;
//mod histories;
mod nscc;
mod pacer;
mod parameters;
mod paths;
mod rccc;
mod states;
//mod world;
