//! Live packets on an interface, for the commands that read captures.

#[cfg(target_os = "linux")]
use super::complain;
use clap::Args;
use std::io;
#[cfg(target_os = "linux")]
use uet_emulator::link::tap::Listener;
use uet_packet_io::input::Taker;

/// Live traffic on an interface instead of a capture. An interrupt ends it and prints what is known so far.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live")]
pub(super) struct Live {
    /// Read live traffic on this interface
    #[arg(long, value_name = "INTERFACE")]
    pub(super) interface: Option<String>,
    /// Also read frames for other stations, as on a mirror port. Needs a `uet` that was built with libpcap
    #[arg(long, requires = "interface", conflicts_with = "inputs")]
    promiscuous: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "COUNT", requires = "interface", conflicts_with = "inputs")]
    seconds: Option<u64>,
    /// Stop after this many packets
    #[arg(long, value_name = "COUNT", requires = "interface", conflicts_with = "inputs")]
    count: Option<u64>,
}

/// A reader of the packets of an interface.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has live packets"))]
pub(super) trait Watch: Taker {
    /// Returns the number of packets so far.
    fn packets(&self) -> u64;

    /// Returns whether nobody reads the output any more.
    fn is_over(&self) -> bool;
}

#[cfg(target_os = "linux")]
impl Live {
    /// Passes each packet on, until the end that the options state.
    pub(super) fn watch(&self, interface: &str, watch: &mut impl Watch) -> io::Result<()> {
        use uet_emulator::link::tap::FrameTap;

        if !self.promiscuous {
            return self.listen(interface, FrameTap::open(interface)?, watch);
        }
        #[cfg(feature = "live")]
        {
            use uet_emulator::link::promiscuous::Promiscuous;
            self.listen(interface, Promiscuous::open(interface)?, watch)
        }
        #[cfg(not(feature = "live"))]
        Err(io::Error::other(format!("--promiscuous: {}", uet_harness::dut::NOT_LIVE)))
    }

    fn listen(&self, interface: &str, mut tap: impl Listener, watch: &mut impl Watch) -> io::Result<()> {
        use core::time::Duration;
        use std::sync::atomic::Ordering;
        use std::time::Instant;
        use uet_emulator::link::udp::wait;

        /// Interval of the checks for a signal.
        const LOOK: Duration = Duration::from_millis(50);

        let link = tap.link_type();
        let stopped = super::signal::stopped()?;
        complain(format_args!("listening to {interface}"));
        let until = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let enough = |packets| self.count.is_some_and(|count| packets >= count);
        while !(enough(watch.packets())
            || stopped.load(Ordering::Relaxed)
            // A capture ends, but live traffic would continue with no reader.
            || watch.is_over()
            || until.is_some_and(|until| Instant::now() >= until))
        {
            match tap.receive()? {
                Some(passed) => {
                    let record = uet_packet_io::input::passed(link, passed.at, passed.bytes, passed.wire);
                    let _ = watch.packet(record)?;
                }
                None => wait(core::slice::from_ref(&tap), LOOK)?,
            }
        }
        match tap.missed() {
            0 => {}
            missed => complain(format_args!(
                "warning: {missed} packets were not read, because they arrived too fast"
            )),
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Live {
    pub(super) fn watch(&self, interface: &str, _: &mut impl Watch) -> io::Result<()> {
        Err(io::Error::other(format!("{interface}: this system has no packet sockets; pipe in a capture")))
    }
}
