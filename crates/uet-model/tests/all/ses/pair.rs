//! The semantics of two endpoints, connected without packet delivery. Commands of one reach the other in order or in
//! any order.

use bytes::Bytes;
use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, NextHdr};

/// The addresses of initiator and target.
pub(crate) const ADDRESS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
pub(crate) const JOB: u32 = 101;
pub(crate) const PID: u16 = 2;
pub(crate) const PROCESS: Process = Process::Relative { job: JOB, pid: PID };
/// The contexts of side 0 and side 1, each with its PDCID at its own initiator and at the other side.
const PDC: [[u16; 2]; 2] = [[0x4001, 0x8001], [0x4002, 0x8002]];

pub(crate) struct Pair {
    pub(crate) side: [Ses; 2],
    /// The packets in flight.
    flying: Vec<Flying>,
    /// The next PSNs of both contexts, forward and return.
    pub(crate) psn: [[u32; 2]; 2],
    /// Requests that wait for a response, by the side that must respond and the ticket.
    owed: BTreeMap<(usize, u16, u32), Owed>,
    pub(crate) completions: [Vec<Completion>; 2],
    /// All requests and responses, as commanded, with the side that gave the command.
    pub(crate) requests: Vec<(usize, Via, TxRequest)>,
    pub(crate) responses: Vec<(usize, TxResponse)>,
    pub(crate) sent_back: Vec<NackCode>,
    pub(crate) held: [i32; 2],
    last: Option<RxRequest>,
    /// The random order of delivery; in order if `None`.
    shuffle: Option<fastrand::Rng>,
    /// True to omit default responses, as packet delivery may.
    pub(crate) quiet: bool,
}

/// The request that waits for a response: its ticket, its message and its context.
type Owed = (usize, MessageKey, Option<(PdcHandle, Psn)>);

enum Flying {
    Request { to: usize, rx: RxRequest, key: MessageKey, pdc: Option<(PdcHandle, Psn)> },
    Response { to: usize, indication: Indication },
}

pub(crate) fn handle(pdcid: u16) -> PdcHandle {
    PdcHandle { pdcid, generation: 0 }
}

impl Pair {
    pub(crate) fn new() -> Self {
        Pair::with(SesParams::default(), SesParams::default())
    }

    pub(crate) fn with(initiator: SesParams, target: SesParams) -> Self {
        Pair::of(PdsParams::default(), initiator, target)
    }

    pub(crate) fn of(pds: PdsParams, initiator: SesParams, target: SesParams) -> Self {
        Pair {
            side: [Ses::new(initiator, &pds), Ses::new(target, &pds)],
            flying: Vec::new(),
            psn: [[0x12000, 0x34000], [0x12000, 0x34000]],
            owed: BTreeMap::new(),
            completions: [Vec::new(), Vec::new()],
            requests: Vec::new(),
            responses: Vec::new(),
            sent_back: Vec::new(),
            held: [0; 2],
            last: None,
            shuffle: None,
            quiet: false,
        }
    }

    /// Returns a pair with the process of the articles, and indices 0 to 63 on both sides.
    pub(crate) fn open() -> Self {
        Pair::new().opened()
    }

    pub(crate) fn opened(mut self) -> Self {
        for side in &mut self.side {
            side.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
        }
        self
    }

    pub(crate) fn shuffled(mut self, seed: u64) -> Self {
        self.shuffle = Some(fastrand::Rng::with_seed(seed));
        self
    }

    /// Posts an operation at side 0 and runs until nothing is left.
    pub(crate) fn run_one(&mut self, operation: Operation) -> Result<Done, OperationError> {
        let id = self.side[0].post(operation).unwrap();
        self.run();
        self.outcome(id)
    }

    /// Returns the result of an operation of side 0, which has ended once.
    pub(crate) fn outcome(&self, id: OperationId) -> Result<Done, OperationError> {
        let mut ends = self.completions[0].iter().filter_map(|completion| match completion {
            Completion::Operation { id: other, result } if *other == id => Some(result.clone()),
            _ => None,
        });
        let end = ends.next().expect("it has ended");
        assert_eq!(ends.next(), None, "it has ended once");
        end
    }

    pub(crate) fn has_ended(&self, id: OperationId) -> bool {
        let ended = |completion: &Completion| matches!(completion, Completion::Operation { id: other, .. } if *other == id);
        self.completions[0].iter().any(ended)
    }

    /// Returns the completed receives of side 1.
    pub(crate) fn received(&self) -> Vec<Received> {
        let receives = self.completions[1].iter().filter_map(|completion| match completion {
            Completion::Received(received) => Some(received.clone()),
            _ => None,
        });
        receives.collect()
    }

    pub(crate) fn run(&mut self) {
        for _ in 0..100_000 {
            self.collect();
            if self.flying.is_empty() {
                return;
            }
            let next = match &mut self.shuffle {
                Some(rng) => rng.usize(..self.flying.len()),
                None => 0,
            };
            self.deliver(next);
        }
        panic!("it does not come to an end");
    }

    /// Collects the commands of both sides.
    pub(crate) fn collect(&mut self) {
        for from in 0..2 {
            while let Some(command) = self.side[from].poll_command() {
                self.command(from, command);
            }
            while let Some(completion) = self.side[from].poll_completion() {
                self.completions[from].push(completion);
            }
            assert!(self.side[from].poll_command().is_none());
        }
    }

    pub(crate) fn flying(&self) -> usize {
        self.flying.len()
    }

    /// Drops all packets in flight.
    pub(crate) fn lose_all(&mut self) {
        self.flying.clear();
    }

    pub(crate) fn deliver(&mut self, index: usize) {
        let (to, indication) = match self.flying.remove(index) {
            Flying::Request { to, rx, key, pdc } => {
                if let Ticket::Pdc(at, psn) = rx.ticket {
                    self.owed.insert((to, at.pdcid, psn.0), (1 - to, key, pdc));
                } else if let Ticket::Rudi(_, _, id) = rx.ticket {
                    self.owed.insert((to, 0, id), (1 - to, key, None));
                }
                // The request is kept in case it is refused.
                self.last = Some(rx.clone());
                (to, Indication::Request(rx))
            }
            Flying::Response { to, indication } => (to, indication),
        };
        self.side[to].handle(indication);
        self.collect();
    }

    fn command(&mut self, from: usize, command: Command) {
        match command {
            Command::Send(via, request) => {
                self.requests.push((from, via, request.clone()));
                self.send(from, via, request);
            }
            Command::Respond(ticket, response) => {
                self.responses.push((from, response.clone()));
                let key = match ticket {
                    Ticket::Pdc(at, psn) => (from, at.pdcid, psn.0),
                    Ticket::Rudi(_, _, id) => (from, 0, id),
                    Ticket::Uud => panic!("a datagram is not answered"),
                };
                let (to, message, pdc) = self.owed.remove(&key).expect("one response to each request");
                let silent = self.quiet && response.delivery == Delivery::Default;
                let rx = RxResponse {
                    next_hdr: response.next_hdr,
                    head: response.head,
                    payload: response.payload,
                };
                let response = Some(rx).filter(|_| !silent);
                let indication = Indication::Response { message, pdc, response };
                self.flying.push(Flying::Response { to, indication });
            }
            Command::Refuse(ticket, code) => {
                self.sent_back.push(code);
                let rx = self.last.clone().filter(|rx| rx.ticket == ticket).expect("while it is indicated");
                let key = match ticket {
                    Ticket::Pdc(at, psn) => (from, at.pdcid, psn.0),
                    _ => panic!("no context"),
                };
                let (_, key, pdc) = self.owed.remove(&key).unwrap();
                self.flying.push(Flying::Request { to: from, rx, key, pdc });
            }
            Command::Abandon(pdc) => self.side[from].handle(Indication::Closed(pdc)),
            Command::Hold(_) => self.held[from] += 1,
            Command::Release(_) => self.held[from] -= 1,
        }
    }

    fn send(&mut self, from: usize, via: Via, request: TxRequest) {
        let to = 1 - from;
        let (mode, class, context, direction) = match via {
            Via::Route(route) => (route.mode, route.class, from, 0),
            Via::Return(at) => {
                let context = PDC.iter().position(|pdc| pdc[1] == at.pdcid).expect("a context of ours");
                (Mode::Rud, 0, context, 1)
            }
        };
        let psn = Psn(self.psn[context][direction]);
        self.psn[context][direction] += 1;
        // These are the local and the remote PDCID of the context.
        let (here, there) = match direction {
            0 => (handle(PDC[context][0]), handle(PDC[context][1])),
            _ => (handle(PDC[context][1]), handle(PDC[context][0])),
        };
        let from_address: IpAddr = ADDRESS[from].into();
        let ticket = match mode {
            Mode::Rud | Mode::Rod => Ticket::Pdc(there, psn),
            Mode::Rudi => Ticket::Rudi(from_address, class, psn.0),
            Mode::Uud => Ticket::Uud,
        };
        let pdc = matches!(ticket, Ticket::Pdc(..)).then_some((here, psn));
        if let (Some((pdc, psn)), message) = (pdc, request.message) {
            self.side[from].handle(Indication::Numbered { message, pdc, psn });
        }
        let TxRequest { message, next_hdr, head, payload, .. } = request;
        let rx =
            RxRequest { ticket, from: from_address, class, mode, confirmed: true, next_hdr, head, payload };
        self.flying.push(Flying::Request { to, rx, key: message, pdc });
    }
}

/// Returns the articles' peer: side 1, seen from side 0.
pub(crate) fn peer() -> Peer {
    Peer { index: 10, ..Peer::relative(ADDRESS[1], JOB, PID) }
}

pub(crate) fn index(index: u16) -> ResourceIndex {
    ResourceIndex { process: PROCESS, index }
}

/// Returns bytes that identify their position.
pub(crate) fn data(length: usize) -> Bytes {
    (0..length).map(|i| (i % 251) as u8).collect()
}

pub(crate) fn write(key: u64, offset: u64, data: Bytes) -> Operation {
    Operation::new(peer(), Work::Write { key: Key(key), offset, data })
}

pub(crate) fn read(key: u64, offset: u64, length: u32) -> Operation {
    Operation::new(peer(), Work::Read { key: Key(key), offset, length })
}

pub(crate) fn send(tag: Option<u64>, data: Bytes) -> Operation {
    Operation::new(peer(), Work::Send { tag, data })
}

/// Returns a request that has arrived from side 0 by RUD.
pub(crate) fn arrived(ticket: Ticket, next_hdr: NextHdr, head: &[u8], payload: Bytes) -> RxRequest {
    let head = head.iter().copied().collect();
    let from = ADDRESS[0].into();
    RxRequest { ticket, from, class: 0, mode: Mode::Rud, confirmed: true, next_hdr, head, payload }
}

/// Exposes memory of zeros at index 10 of side 1.
pub(crate) fn region(pair: &mut Pair, key: u64, length: usize) -> RegionId {
    let region = Region { key: Key(key), base: 0x1000, access: Access::ALL, data: vec![0; length] };
    pair.side[1].expose(index(10), region).unwrap()
}
