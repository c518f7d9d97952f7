//! Work on several threads, with results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Does the work for each item, on as many threads as the machine runs at once. Passes the results to `take`
/// in the order of the items, each as soon as all before it are there.
///
/// ```
/// let mut squares = Vec::new();
/// uet_conformance::parallel(&[1, 2, 3], |number| number * number, |square| squares.push(square));
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub fn parallel<'a, T: Sync, R: Send>(
    items: &'a [T],
    work: impl Fn(&'a T) -> R + Sync,
    mut take: impl FnMut(R),
) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let (results, arrived) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (results, next, work) = (results.clone(), &next, &work);
            scope.spawn(move || {
                let turn = || {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    results.send((number, work(items.get(number)?))).ok()
                };
                while turn().is_some() {}
            });
        }
        drop(results);
        let (mut early, mut wanted) = (BTreeMap::new(), 0);
        for (number, result) in arrived {
            early.insert(number, result);
            while let Some(result) = early.remove(&wanted) {
                take(result);
                wanted += 1;
            }
        }
    });
}
