//! Tests of the program, as one program.

mod common;

mod action;
mod anonymize;
mod check;
mod commands;
mod corpus;
mod devices;
mod emulate;
mod encode;
mod example_device;
mod filter;
#[cfg(target_os = "linux")]
mod flood;
mod fuzz_command;
mod generated;
mod help;
#[cfg(target_os = "linux")]
mod hostile;
mod inputs;
mod interop;
mod lab;
mod languages;
mod links;
mod live;
mod pages;
mod proxy;
#[cfg(target_os = "linux")]
mod random_inputs;
mod reference_provider;
mod replay;
mod reports;
mod rtl;
mod run;
mod secured;
mod show;
mod simulate;
mod stats;
mod switch;
mod tables;
mod trailer_hints;
mod trim_hints;
mod wireshark;
