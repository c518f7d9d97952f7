use crate::error::{Code, Result};
use crate::wake::Wake;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A completed operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The context that the application gave the operation.
    pub context: usize,
    /// The kind of operation: [`flags`](crate::flags).
    pub flags: u64,
    /// The number of bytes received, or that the target accepted.
    pub length: usize,
    /// The address of the received bytes in a buffer for several messages.
    pub buffer: usize,
    /// The data that the peer attached for the queue.
    pub data: u64,
    /// The tag of a tagged message.
    pub tag: u64,
    /// The number of the sender in the address vector.
    pub source: u64,
}

/// A failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The operation.
    pub completion: Completion,
    /// The reason.
    pub code: Code,
    /// The number of bytes that did not fit the buffer.
    pub cut_off: usize,
    /// The return code of UET.
    pub return_code: u8,
}

/// An entry of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A completed operation.
    Done(Completion),
    /// A failed operation.
    Failed(Failed),
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    entries: Mutex<VecDeque<Entry>>,
    size: usize,
    wake: Wake,
}

impl CompletionQueue {
    /// The size of a queue for which the application asks none.
    const DEFAULT_SIZE: usize = 1 << 16;

    /// Creates a queue for `size` entries, or for a default number if it is 0; with a file descriptor to wait for, if asked.
    pub fn new(size: usize, with_fd: bool) -> Result<Self> {
        let size = if size == 0 { Self::DEFAULT_SIZE } else { size };
        Ok(CompletionQueue { entries: Mutex::default(), size, wake: Wake::new(with_fd)? })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file descriptor that is readable while the queue has entries.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.fd()
    }

    /// Returns whether the queue has no entry.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether the queue has all its entries. Further completions then wait in the NIC.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.size
    }

    /// Adds an entry.
    pub(crate) fn push(&self, entry: Entry) {
        self.lock().push_back(entry);
        self.signal();
    }

    /// Wakes those who wait for the file descriptor.
    pub fn signal(&self) {
        self.wake.set();
    }

    /// Takes the next completion. Fails with EAVAIL if a failed operation is next, and with EAGAIN if there is none.
    pub fn read(&self) -> Result<Completion, Code> {
        let mut entries = self.lock();
        match entries.front() {
            Some(Entry::Done(completion)) => {
                let completion = *completion;
                entries.pop_front();
                self.calm(&entries);
                Ok(completion)
            }
            Some(Entry::Failed(_)) => Err(Code::EAVAIL),
            None => Err(Code::EAGAIN),
        }
    }

    /// Takes the next failed operation, if it is at the head of the queue.
    pub fn read_failed(&self) -> Option<Failed> {
        let mut entries = self.lock();
        let Some(Entry::Failed(failed)) = entries.front().copied() else { return None };
        entries.pop_front();
        self.calm(&entries);
        Some(failed)
    }

    fn calm(&self, entries: &VecDeque<Entry>) {
        if entries.is_empty() {
            self.wake.clear();
        }
    }
}

/// A counter of completed and failed operations.
#[derive(Debug, Default)]
pub struct Counter {
    /// The number of completed operations.
    pub done: AtomicU64,
    /// The number of failed operations.
    pub failed: AtomicU64,
}

impl Counter {
    pub(crate) fn count(&self, succeeded: bool) {
        let counter = if succeeded { &self.done } else { &self.failed };
        counter.fetch_add(1, Ordering::Release);
    }
}
