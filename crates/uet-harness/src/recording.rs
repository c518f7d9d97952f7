//! A bound for the packets of a capture that are kept in memory.

use std::io;

/// Maximum number of packets.
const PACKETS: usize = 65_536;

/// Maximum number of bytes: the payloads of all packets.
const BYTES: usize = 64 << 20;

/// The packets of a capture that are kept so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recording {
    packets: usize,
    bytes: usize,
}

impl Recording {
    /// Counts another packet.
    ///
    /// # Errors
    ///
    /// Fails above the limit. A compressed capture may be a thousand times smaller than its packets.
    pub(crate) fn keep(&mut self, length: usize) -> io::Result<()> {
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + length);
        match self.packets > PACKETS || self.bytes > BYTES {
            true => Err(io::Error::other(format!(
                "the conversation is longer than the limit of {PACKETS} packets and {} MiB; cut the capture",
                BYTES >> 20
            ))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_bytes_are_bounded() {
        for (length, count) in [(0, PACKETS), (9000, BYTES / 9000)] {
            let mut recording = Recording::default();
            (0..count).for_each(|_| recording.keep(length).unwrap());
            let error = recording.keep(length).unwrap_err().to_string();
            assert!(error.contains("the limit of 65536 packets and 64 MiB"), "{error}");
        }
    }
}
