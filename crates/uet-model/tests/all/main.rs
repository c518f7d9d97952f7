//! Tests of the model by its public interface: packet delivery, congestion control, semantics, and the catalogue.

mod boundary;
mod cases;
mod catalogue;
mod cc;
mod fabric;
mod pds;
mod ses;
