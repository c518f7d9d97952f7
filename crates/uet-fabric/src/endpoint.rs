use crate::address::AddressVector;
use crate::domain::Domain;
use crate::error::{Code, Error, Result};
use crate::memory::UserMemory;
use crate::name::Name;
use crate::queue::{CompletionQueue, Counter};
use crate::request::{Atomic, Peek, Read, Receive, Send, Tag, Write};
use crate::state::{EndpointOptions, State};
use std::sync::Arc;

/// An endpoint: a resource index of the domain's NIC.
#[derive(Clone)]
pub struct Endpoint {
    domain: Domain,
    index: u16,
}

impl Endpoint {
    /// Opens an endpoint at the first free index.
    pub fn open(domain: &Domain, options: EndpointOptions) -> Result<Self> {
        domain.check_process()?;
        let mut engine = domain.lock();
        let index = (engine.index..1 << 12).find(|index| !engine.endpoints.contains_key(index));
        let index = index.ok_or(Error::new(Code::EBUSY, "the domain has no free resource index"))?;
        engine.open_index(index)?;
        engine.endpoints.insert(index, State { options, min_multi_receive: 64, ..State::default() });
        Ok(Endpoint { domain: domain.clone(), index })
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the name by which peers reach it.
    pub fn name(&self) -> Name {
        self.domain.lock().name(self.index)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.domain.lock().endpoints.get_mut(&self.index) {
            change(state);
        }
    }

    /// Sets the address vector.
    pub fn bind_addresses(&self, addresses: Arc<AddressVector>) {
        self.change(|state| state.addresses = Some(addresses));
    }

    /// Sets the queue for completions of sends, of receives or of both.
    pub fn bind_queue(&self, queue: &Arc<CompletionQueue>, sends: bool, receives: bool) {
        self.change(|state| {
            if sends {
                state.sends = Some(queue.clone());
            }
            if receives {
                state.receives = Some(queue.clone());
            }
        });
    }

    /// Adds a counter for operations of these kinds.
    pub fn bind_counter(&self, counter: &Arc<Counter>, kinds: u64) {
        self.change(|state| state.counters.push((kinds, counter.clone())));
    }

    /// Sets the least room of a buffer for several messages.
    pub fn set_min_multi_receive(&self, bytes: usize) {
        self.change(|state| state.min_multi_receive = bytes);
    }

    /// Returns the least room of a buffer for several messages.
    pub fn min_multi_receive(&self) -> usize {
        self.domain.lock().endpoints.get(&self.index).map_or(0, |state| state.min_multi_receive)
    }

    /// Enables the endpoint, which then accepts operations.
    pub fn enable(&self) -> Result<()> {
        let mut engine = self.domain.lock();
        let Some(state) = engine.endpoints.get_mut(&self.index) else { return Err(Code::EOPBADSTATE.into()) };
        if state.addresses.is_none() {
            return Err(Error::new(Code::ENOAV, "bind an address vector before enabling the endpoint"));
        }
        if state.sends.is_none() && state.receives.is_none() && state.counters.is_empty() {
            return Err(Error::new(
                Code::ENOCQ,
                "bind a completion queue or counter before enabling the endpoint",
            ));
        }
        state.enabled = true;
        Ok(())
    }

    /// Sends a message.
    pub fn send(&self, send: Send) -> Result<()> {
        self.domain.lock_active()?.send(self.index, send)
    }

    /// Posts a receive.
    pub fn receive(&self, receive: Receive) -> Result<()> {
        self.domain.lock_active()?.receive(self.index, receive)
    }

    /// Reads remote memory.
    pub fn read(&self, read: Read) -> Result<()> {
        self.domain.lock_active()?.read(self.index, read)
    }

    /// Writes remote memory.
    pub fn write(&self, write: Write) -> Result<()> {
        self.domain.lock_active()?.write(self.index, write)
    }

    /// Changes remote memory atomically.
    pub fn atomic(&self, atomic: Atomic) -> Result<()> {
        self.domain.lock_active()?.atomic(self.index, atomic)
    }

    /// Looks for an unexpected message and reports it to the queue of receives, or ENOMSG if there is none.
    pub fn peek(&self, from: u64, tag: Option<Tag>, what: Peek, context: usize) -> Result<()> {
        let mut engine = self.domain.lock_active()?;
        // A failure of the link shows with the next operation.
        let _ = engine.turn();
        engine.peek(self.index, from, tag, what, context)
    }

    /// Completes a receive with the message that a look claimed with this context, or discards the message.
    pub fn take_claimed(&self, memory: Box<dyn UserMemory>, context: usize, discard: bool) -> Result<()> {
        self.domain.lock_active()?.take_claimed(self.index, memory, context, discard)
    }

    /// Cancels the receives with this context that no message has matched; returns whether there was one.
    pub fn cancel(&self, context: usize) -> bool {
        self.domain.lock_active().is_ok_and(|mut engine| engine.cancel(self.index, context))
    }

    /// Closes the endpoint. Its buffers are not touched any more. Does nothing in a process that was forked.
    pub fn close(&self) {
        if self.domain.check_process().is_err() {
            return;
        }
        // Peers still wait for acknowledgments of what the application has already received.
        self.domain.settle();
        self.domain.lock().close_endpoint(self.index);
    }
}
