//! Tests of the harness, as one program. `faults` is separate: it runs optimized, for minutes, on all processors.

mod around;
mod busy;
mod configurations;
mod declared;
mod dying;
mod example;
mod fuzz;
mod imaginary_version;
mod impaired;
#[cfg(target_os = "linux")]
mod instances;
mod otherwise;
mod passive;
mod random;
mod suite;
mod switch;
mod twice;
