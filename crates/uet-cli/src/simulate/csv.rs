//! The time series of an outcome.

use std::io::{self, Write};
use uet_simulate::Outcome;

/// Writes a line for each sample. Unknown values are empty, such as the window or credit of a sender without one.
pub fn write(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    write!(
        out,
        "time_us,delivered_bytes,new,again,last_hop_queue_bytes,fabric_queue_bytes,last_hop_carried_bytes,\
         fabric_carried_bytes"
    )?;
    let watched = outcome.series.samples.first().map_or(0, |sample| sample.flows.len());
    for flow in 0..watched {
        for what in ["window_bytes", "in_flight_bytes", "credit_bytes", "delivered_bytes"] {
            write!(out, ",flow{flow}_{what}")?;
        }
    }
    writeln!(out)?;
    for sample in &outcome.series.samples {
        let us = sample.at.as_nanos() as f64 / 1e3;
        write!(out, "{us:.3},{},{},{}", sample.delivered, sample.new, sample.again)?;
        write!(out, ",{},{}", sample.last_hop, sample.fabric)?;
        write!(out, ",{},{}", sample.last_hop_carried, sample.fabric_carried)?;
        for flow in &sample.flows {
            let text = |number: Option<i64>| number.map_or(String::new(), |number| number.to_string());
            let window = flow.window.and_then(|window| i64::try_from(window).ok());
            write!(
                out,
                ",{},{},{},{}",
                text(window),
                text(flow.in_flight),
                text(flow.credit),
                flow.delivered
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}
