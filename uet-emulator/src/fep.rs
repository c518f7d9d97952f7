//! Packet delivery and semantics, joined.

use uet_model::pds::Pds;
use uet_model::ses::Ses;
use uet_model::{Command, Packet, Refused, Time};

/// A fabric endpoint.
pub(crate) struct Fep {
    pub(crate) pds: Pds,
    pub(crate) ses: Ses,
}

impl Fep {
    pub(crate) fn handle_input(&mut self, now: Time, packet: Packet) {
        self.pds.handle_input(now, packet);
        self.exchange(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.pds.handle_timeout(now);
        self.exchange(now);
    }

    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.exchange(now);
        let packet = self.pds.poll_transmit(now);
        self.exchange(now);
        packet
    }

    pub(crate) fn poll_timeout(&mut self) -> Option<Time> {
        self.pds.poll_timeout()
    }

    /// Lets the two talk until they have nothing to say.
    fn exchange(&mut self, now: Time) {
        loop {
            if let Some(indication) = self.pds.poll_indication() {
                self.ses.handle(indication);
                // A request is refused before anything else happens.
                while let Some(command) = self.ses.poll_command() {
                    self.obey(now, command);
                }
            } else if let Some(command) = self.ses.poll_command() {
                self.obey(now, command);
            } else {
                return;
            }
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Send(via, request) => {
                if let Err(Refused(request)) = self.pds.request(now, via, request) {
                    self.ses.put_back(Command::Send(via, request));
                }
            }
            Command::Respond(ticket, response) => self.pds.respond(now, ticket, response),
            Command::Refuse(ticket, code) => self.pds.refuse(now, ticket, code),
            Command::Hold(pdc) => self.pds.hold(now, pdc),
            Command::Release(pdc) => self.pds.release(now, pdc),
        }
    }
}
