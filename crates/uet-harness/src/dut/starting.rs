//! The wait for a device that is still starting.

use super::busy;
use core::time::Duration;
use std::io;
use std::time::Instant;

/// Maximum time until a device that is starting listens on its control channel, on an idle host.
const STARTING: Duration = Duration::from_secs(10);

/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

/// Connects to a device. If the connection is refused because the device is still starting, tries again for ten
/// seconds, or a minute on a busy host. Calls `waits` when the wait begins.
///
/// # Errors
///
/// Fails with the last error of `connect`. Errors other than a refused connection end the wait.
pub fn once_it_listens<T>(waits: impl FnOnce(), connect: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    once_it_listens_within(busy::patience(STARTING), waits, connect)
}

fn once_it_listens_within<T>(
    limit: Duration,
    waits: impl FnOnce(),
    mut connect: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let begun = Instant::now();
    let mut waits = Some(waits);
    loop {
        match connect() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && begun.elapsed() < limit => {
                if let Some(waits) = waits.take() {
                    waits();
                }
                std::thread::sleep(PAUSE);
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connects to a device that refuses this many times and then gives this answer. Returns the end, the number of
    /// attempts and the number of waits.
    fn connected(limit: Duration, refusals: usize, answer: io::Result<()>) -> (io::Result<()>, usize, usize) {
        let (mut attempts, mut waits, mut answer) = (0, 0, Some(answer));
        let ended = once_it_listens_within(
            limit,
            || waits += 1,
            || {
                attempts += 1;
                if attempts > refusals { answer.take().unwrap() } else { refused() }
            },
        );
        (ended, attempts, waits)
    }

    fn refused() -> io::Result<()> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    #[test]
    fn refused_connection_is_tried_again() {
        let (ended, attempts, waits) = connected(Duration::from_secs(60), 2, Ok(()));
        ended.unwrap();
        assert_eq!((attempts, waits), (3, 1));
    }

    #[test]
    fn wait_has_a_limit() {
        let (ended, attempts, waits) = connected(PAUSE / 2, usize::MAX, Ok(()));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(attempts <= 2 && waits <= 1, "{attempts} attempts, {waits} waits");
    }

    #[test]
    fn other_error_fails_at_once() {
        let unreachable = Err(io::ErrorKind::NetworkUnreachable.into());
        let (ended, attempts, waits) = connected(Duration::from_secs(60), 0, unreachable);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::NetworkUnreachable);
        assert_eq!((attempts, waits), (1, 0));
    }
}
