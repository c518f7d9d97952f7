//! Receives: posting, looking for messages, completing and cancelling.

use super::{Engine, Posted};
use crate::address::{AddressVector, UNKNOWN_ADDRESS};
use crate::error::{Code, Error, Result};
use crate::flags;
use crate::memory::UserMemory;
use crate::name::Name;
use crate::queue::{Completion, Entry, Failed};
use crate::request::{Peek, Receive, Tag};
use uet_model::Memory;
use uet_model::ses::{self, ReceiveId};
use uet_wire::registry::ReturnCode;

impl Engine {
    pub(crate) fn receive(&mut self, endpoint: u16, receive: Receive) -> Result<()> {
        let sender = self.directed(endpoint, receive.from)?;
        self.post_receive(endpoint, sender, receive)
    }

    fn post_receive(&mut self, endpoint: u16, sender: Option<Name>, receive: Receive) -> Result<()> {
        let Receive { from: _, tag, memory, multi, context, report } = receive;
        let address = memory.address();
        let whole = multi.then(|| memory.window(0, memory.len()));
        let tagged = tag.is_some();
        let pattern = pattern(memory.len(), tag, sender);
        let id = self.nic.receive_into(self.place(endpoint), pattern, memory);
        let id = id.map_err(|error| Error::new(Code::EINVAL, error.to_string()))?;
        self.receives
            .insert(id, Posted { endpoint, sender, memory: whole, tagged, address, context, report });
        self.complete();
        Ok(())
    }

    /// Returns the only sender whose messages a receive takes, if it has one.
    fn directed(&mut self, endpoint: u16, from: u64) -> Result<Option<Name>> {
        let directed = self.state(endpoint)?.options.directed && from != UNKNOWN_ADDRESS;
        directed.then(|| self.name_of(endpoint, from)).transpose()
    }

    /// Looks for an unexpected message. Reports it to the queue, or ENOMSG if there is none.
    pub(crate) fn peek(
        &mut self,
        endpoint: u16,
        from: u64,
        tag: Option<Tag>,
        what: Peek,
        context: usize,
    ) -> Result<()> {
        let sender = self.directed(endpoint, from)?;
        let kind = if tag.is_some() { flags::TAGGED } else { flags::MSG };
        let place = self.place(endpoint);
        let pattern = pattern(u32::MAX as usize, tag, sender);
        let found = self.nic.peek_unexpected(place, &pattern);
        let mut completion = Completion { context, flags: flags::RECV | kind, ..Completion::default() };
        let Some(found) = found else {
            self.report_failure(endpoint, flags::RECV, completion, Code::ENOMSG, 0);
            return Ok(());
        };
        completion.length = found.length as usize;
        self.fill(endpoint, &mut completion, &found.sender, found.header_data);
        if what != Peek::Look {
            // The message moves from the NIC's list to ours, or away.
            let id = self
                .nic
                .receive(place, pattern)
                .map_err(|error| Error::new(Code::EINVAL, error.to_string()))?;
            self.claims.insert(id, (what == Peek::Claim).then_some((endpoint, context)));
            self.complete();
        }
        if let Some(state) = self.endpoints.get(&endpoint) {
            state.report(flags::RECV, Entry::Done(completion), true, false);
        }
        Ok(())
    }

    /// Completes a receive with the message that [`peek`](Self::peek) claimed with this context, or discards the message.
    pub(crate) fn take_claimed(
        &mut self,
        endpoint: u16,
        mut memory: Box<dyn UserMemory>,
        context: usize,
        discard: bool,
    ) -> Result<()> {
        let claimed = self.claimed.remove(&(endpoint, context));
        let mut received =
            claimed.ok_or(Error::new(Code::EINVAL, "no message was claimed with this context"))?;
        let room = if discard { received.data.len() } else { memory.len().min(received.data.len()) };
        if !discard {
            // The memory is the application's, of this length.
            let _ = memory.write(0, received.data.get(..room).unwrap_or_default());
        }
        received.length = room as u32;
        let kind = if received.sender.tag.is_some() { flags::TAGGED } else { flags::MSG };
        let mut completion =
            Completion { context, flags: flags::RECV | kind, length: room, ..Completion::default() };
        self.fill(endpoint, &mut completion, &received.sender, received.header_data);
        self.report_received(endpoint, completion, &received, true);
        Ok(())
    }

    pub(super) fn fill(
        &self,
        endpoint: u16,
        to: &mut Completion,
        sender: &ses::Sender,
        header_data: Option<u64>,
    ) {
        to.tag = sender.tag.unwrap_or_default();
        if let Some(data) = header_data {
            (to.data, to.flags) = (data, to.flags | flags::REMOTE_CQ_DATA);
        }
        let addresses = self.endpoints.get(&endpoint).and_then(|state| state.addresses.as_ref());
        let find = |addresses: &std::sync::Arc<AddressVector>| addresses.find(sender.from, sender.initiator);
        to.source = addresses.map_or(UNKNOWN_ADDRESS, find);
    }

    /// Cancels the receives with this context that no message has matched; returns whether there was one.
    pub(crate) fn cancel(&mut self, endpoint: u16, context: usize) -> bool {
        let of_context =
            |(_, posted): &(&ReceiveId, &Posted)| posted.endpoint == endpoint && posted.context == context;
        let ids: Vec<ReceiveId> = self.receives.iter().filter(of_context).map(|(id, _)| *id).collect();
        let place = self.place(endpoint);
        let mut cancelled = false;
        for id in ids {
            cancelled |= !self.nic.has_matched(id) && self.nic.cancel_receive(place, id);
        }
        self.complete();
        cancelled
    }

    /// Removes an endpoint. Its memory is not touched any more. No later endpoint receives
    /// its messages: they are dropped, and the generation of the index changes.
    pub(crate) fn close_endpoint(&mut self, endpoint: u16) {
        self.operations.retain(|_, outstanding| outstanding.endpoint != endpoint);
        let place = self.place(endpoint);
        let of_endpoint = |(_, posted): &(&ReceiveId, &Posted)| posted.endpoint == endpoint;
        let ids: Vec<ReceiveId> = self.receives.iter().filter(of_endpoint).map(|(id, _)| *id).collect();
        let claims = self.claims.iter().filter(|(_, claim)| claim.is_some_and(|(of, _)| of == endpoint));
        for id in ids.into_iter().chain(claims.map(|(id, _)| *id).collect::<Vec<_>>()) {
            self.receives.remove(&id);
            self.claims.remove(&id);
            self.nic.cancel_receive(place, id);
        }
        self.claimed.retain(|(of, _), _| *of != endpoint);
        let generation = self.generations.entry(endpoint).or_insert(self.generation);
        *generation = generation.wrapping_add(1);
        // The index is open, so this cannot fail.
        let _ = self.nic.set_generation(place, *generation);
        let _ = self.nic.discard_unexpected(place);
        self.endpoints.remove(&endpoint);
    }

    pub(super) fn received(&mut self, received: &ses::Received) {
        if let Some(claim) = self.claims.remove(&received.id) {
            if let Some(claim) = claim {
                self.claimed.insert(claim, received.clone());
            }
            return;
        }
        let Some(posted) = self.receives.remove(&received.id) else { return };
        let Posted { endpoint, sender, memory, tagged, address, context, report } = posted;
        let kind = if tagged { flags::TAGGED } else { flags::MSG };
        let mut completion = Completion { context, flags: flags::RECV | kind, ..Completion::default() };
        completion.length = received.length as usize;
        if received.code == ReturnCode::OK {
            self.fill(endpoint, &mut completion, &received.sender, received.header_data);
        }
        if let Some(memory) = memory {
            completion.buffer = address;
            let least = self.endpoints.get(&endpoint).map_or(1, |state| state.min_multi_receive.max(1));
            let left = memory.len().saturating_sub(completion.length);
            if received.code != ReturnCode::OK || left < least {
                completion.flags |= flags::MULTI_RECV;
            } else {
                let memory = memory.window(completion.length, left);
                let again =
                    Receive { from: UNKNOWN_ADDRESS, tag: None, memory, multi: true, context, report };
                // The report comes first, since the next message may be there already.
                self.report_received(endpoint, completion, received, report);
                // The index is open, so this cannot fail.
                let _ = self.post_receive(endpoint, sender, again);
                return;
            }
        }
        self.report_received(endpoint, completion, received, report);
    }

    fn report_received(&self, endpoint: u16, completion: Completion, received: &ses::Received, report: bool) {
        let Some(state) = self.endpoints.get(&endpoint) else { return };
        let cut_off = received.total.saturating_sub(received.length) as usize;
        let code = match received.code {
            ReturnCode::OK if cut_off == 0 => {
                return state.report(flags::RECV, Entry::Done(completion), report, true);
            }
            ReturnCode::OK => Code::ETRUNC,
            code => Code::of_response(code),
        };
        let failed = Failed { completion, code, cut_off, return_code: received.code.code() };
        state.report(flags::RECV, Entry::Failed(failed), true, true);
    }
}

/// Returns the receive for messages with this tag and sender. The field `initiator` tells the endpoints of an address apart.
/// It proves nothing, since everyone can compute the hash of a name.
fn pattern(length: usize, tag: Option<Tag>, sender: Option<Name>) -> ses::Receive {
    let tag = tag.map(|Tag { bits, ignore }| ses::Tag { bits, ignore });
    let capacity = u32::try_from(length).unwrap_or(u32::MAX);
    let (initiator, from) = (sender.map(|name| name.initiator()), sender.map(|name| name.identity()));
    ses::Receive { tag, initiator, from, ..ses::Receive::new(capacity) }
}
