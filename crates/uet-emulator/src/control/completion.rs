//! Completion of operations and receives.

use super::{Control, Memory, Operation};
use crate::nic::Nic;
use uet_control::{Answer, Completion, Event, Hex, Hex64, Status};
use uet_model::ses::{self, Done, OperationError, Received};
use uet_wire::registry::ReturnCode;

/// Maximum number of queued events; when the queue is full, the oldest event is dropped.
const EVENTS: usize = 4096;

impl Control {
    /// Collects new completions and answers the requests that wait for them.
    pub(super) fn collect(&mut self, nic: &mut Nic) {
        while let Some(completion) = nic.poll_completion() {
            match completion {
                ses::Completion::Operation { id, result } => {
                    let Some(number) = self.by_id.remove(&id) else { continue };
                    let Some(operation) = self.operations.get_mut(&number) else { continue };
                    operation.source.take().and_then(|source| nic.withdraw(source));
                    let ended = match result {
                        Ok(done) => succeeded(number, done, operation),
                        Err(fault) => failed(number, fault),
                    };
                    if ended.data.is_none() {
                        self.memory -= core::mem::take(&mut operation.bytes);
                    }
                    self.end(number, ended);
                }
                ses::Completion::Received(received) => {
                    let Some(number) = self.by_receive.remove(&received.id) else { continue };
                    self.fill(number, &received);
                    self.end(number, got(number, &received));
                }
                // No request has named it by number.
                ses::Completion::Written(_) => {}
            }
        }
    }

    /// Fills the buffer of a receive with the received data.
    fn fill(&mut self, number: u64, received: &Received) {
        let region = self.operations.get(&number).and_then(|operation| operation.region);
        if let Some(Memory::Receive(buffer)) = region.and_then(|region| self.regions.get_mut(&region)) {
            let length = buffer.len().min(received.data.len());
            buffer[..length].copy_from_slice(&received.data[..length]);
        }
    }

    fn end(&mut self, number: u64, ended: Completion) {
        if self.events.len() >= EVENTS {
            self.events.pop_front();
        }
        // Only a request that waits for the completion gets the data.
        self.events.push_back(Event::Completion(Completion { data: None, ..ended.clone() }));
        if let Some(operation) = self.operations.get_mut(&number) {
            operation.ended = Some(ended);
        }
        while let Some(place) = self.waiting.iter().position(|waiting| waiting.operation == number) {
            let waiting = self.waiting.swap_remove(place);
            if let Some(ended) = self.hand_over(number) {
                self.answers.push_back(Answer::ok(waiting.id, &ended));
            }
        }
    }

    /// Returns the completion of an operation, if it has completed. Hands over its data only once, since data takes
    /// memory.
    pub(super) fn hand_over(&mut self, number: u64) -> Option<Completion> {
        let operation = self.operations.get_mut(&number)?;
        let ended = operation.ended.as_mut()?;
        let handed = ended.clone();
        if ended.data.take().is_some() {
            self.memory -= core::mem::take(&mut operation.bytes);
        }
        Some(handed)
    }
}

fn ended(operation: u64, status: Status, length: u32, code: ReturnCode) -> Completion {
    Completion {
        operation,
        status,
        length: length.into(),
        return_code: Some(code.to_string()),
        header_data: None,
        data: None,
        message: String::new(),
    }
}

fn succeeded(number: u64, done: Done, operation: &Operation) -> Completion {
    let data = operation.want_data.then(|| Hex(done.data.to_vec()));
    Completion { data, ..ended(number, Status::Ok, done.length, ReturnCode::OK) }
}

fn failed(number: u64, fault: OperationError) -> Completion {
    let status = match fault.code {
        ReturnCode::UNDELIVERABLE => Status::Failed,
        ReturnCode::CANCELLED => Status::Cancelled,
        _ => Status::Refused,
    };
    let message = match (fault.why, fault.code) {
        (Some(why), _) => why.to_string(),
        (None, ReturnCode::BAD_GENERATION) => format!("the current generation is {}", fault.generation),
        (None, _) => String::new(),
    };
    Completion { message, ..ended(number, status, fault.length, fault.code) }
}

fn got(number: u64, received: &Received) -> Completion {
    let status = match received.code {
        ReturnCode::OK => Status::Ok,
        ReturnCode::CANCELLED => Status::Cancelled,
        _ => Status::Failed,
    };
    let length = u32::try_from(received.data.len()).unwrap_or(u32::MAX);
    let message = match received.total > length {
        true => format!("the message had {} bytes", received.total),
        false => String::new(),
    };
    let header_data = received.header_data.map(Hex64);
    Completion { header_data, message, ..ended(number, status, length, received.code) }
}
