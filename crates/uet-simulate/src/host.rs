//! A host: the model's packet delivery, and a layer that cuts flows into writes and answers those of others. Each flow
//! is one message into its own region, and the flow's number is the key. Flows of a context leave one after the other.

use crate::flow::Flow;
use crate::graph::Step;
use crate::time::Picos;
use bytes::Bytes;
use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::{BinaryHeap, HashMap, VecDeque};
use uet_model::pds::Pds;
use uet_model::{
    Delivery, Head, Indication, MessageKey, Mode, PdsParams, Pool, Route, RxRequest, Time, TxRequest,
    TxResponse, Via,
};
use uet_wire::registry::{NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Std};

/// The repeated payload of all writes.
pub(crate) static PAYLOAD: [u8; 8192] = [0; 8192];

const JOB: u32 = 101;

/// Returns the address of a host.
pub(crate) fn address(host: u32) -> IpAddr {
    // The network 10.0.0.0/8 has room for all hosts.
    Ipv4Addr::from(0x0a00_0000 | (host + 1) & 0x00ff_ffff).into()
}

/// Returns the host with an address.
pub(crate) fn host_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => (u32::from(address) & 0x00ff_ffff).wrapping_sub(1),
        IpAddr::V6(_) => u32::MAX,
    }
}

/// Returns the route of a flow.
fn route(flow: &Flow) -> Route {
    Route {
        job: JOB,
        destination: address(flow.demand.to),
        class: flow.demand.class,
        mode: Mode::Rud,
        pool: Pool::General,
        context: flow.context,
    }
}

pub(crate) struct Host {
    pub(crate) pds: Pds,
    /// True if it waits until its link is free.
    pub(crate) waits_for_link: bool,
    /// The flows to start and the delays to end, by time.
    pub(crate) starts: BinaryHeap<Reverse<(Picos, Step)>>,
    /// The flows of each context that have packets to hand to packet delivery.
    pub(crate) queues: HashMap<u32, VecDeque<u32>>,
}

/// A change in a flow that the simulation has to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// All bytes have arrived.
    Received(u32),
    /// All bytes are acknowledged.
    Done(u32),
}

impl Host {
    pub(crate) fn new(number: u32, params: PdsParams, seed: u64) -> Result<Self, uet_model::cc::CcError> {
        let pds = Pds::new(params, address(number), seed)?;
        Ok(Host { pds, waits_for_link: false, starts: BinaryHeap::new(), queues: HashMap::new() })
    }

    /// Returns the time of its next timer. A timer in the past is due now.
    pub(crate) fn timer(&self, now: Picos) -> Picos {
        let at = self.pds.poll_timeout().map_or(u64::MAX, |at| at.0.max(now.div_ceil(1000)));
        at.saturating_mul(1000)
    }

    /// Hands as many packets of a context's flows to packet delivery as it takes, one flow after the other.
    pub(crate) fn feed(&mut self, now: Time, mtu: u16, flows: &mut [Flow], context: u32) {
        let Some(queue) = self.queues.get_mut(&context) else { return };
        while let Some(number) = queue.front().copied() {
            let Some(flow) = flows.get_mut(number as usize) else { return };
            while flow.next < flow.packets {
                let request = write(flow, number, mtu);
                if self.pds.request(now, Via::Route(route(flow)), request).is_err() {
                    return;
                }
                flow.next += 1;
            }
            queue.pop_front();
        }
        self.queues.remove(&context);
    }

    /// Handles the indications of packet delivery. Returns the number of payload bytes that arrived.
    pub(crate) fn listen(
        &mut self,
        now: Time,
        at: Picos,
        mtu: u16,
        flows: &mut [Flow],
        news: &mut Vec<News>,
    ) -> u64 {
        let mut delivered = 0;
        while let Some(indication) = self.pds.poll_indication() {
            match indication {
                Indication::Request(request) => {
                    delivered += self.receive(now, at, mtu, request, flows, news);
                }
                Indication::Response { message, .. } => {
                    let Some(flow) = flows.get_mut(message.0 as usize) else { continue };
                    flow.acknowledged += 1;
                    if flow.acknowledged == flow.packets {
                        flow.completed = Some(at);
                        news.push(News::Done(message.0 as u32));
                    }
                }
                Indication::Resumed(Via::Route(route)) => {
                    self.feed(now, mtu, flows, route.context);
                }
                _ => {}
            }
        }
        delivered
    }

    /// Handles a packet of a write, placed by its header. Returns the bytes of payload. `PDS-ACK-013`: a success needs
    /// no response of its own.
    fn receive(
        &mut self,
        now: Time,
        at: Picos,
        mtu: u16,
        request: RxRequest,
        flows: &mut [Flow],
        news: &mut Vec<News>,
    ) -> u64 {
        let mut delivered = 0;
        let place = place(&request, mtu);
        if let Some((number, flow)) =
            place.and_then(|(number, _)| Some((number, flows.get_mut(number as usize)?)))
        {
            delivered = request.payload.len() as u64;
            flow.delivered += delivered;
            if flow.delivered == flow.demand.size {
                flow.received = Some(at);
                news.push(News::Received(number));
            }
        }
        let code = if place.is_some() { ReturnCode::OK } else { ReturnCode::BAD_MKEY };
        self.pds.respond(now, request.ticket, response(code));
        delivered
    }
}

/// Returns the next packet of a flow.
fn write(flow: &Flow, number: u32, mtu: u16) -> TxRequest {
    let (som, eom) = (flow.next == 0, flow.next + 1 == flow.packets);
    let offset = u64::from(flow.next) * u64::from(mtu);
    let length = (flow.demand.size - offset).min(mtu.into()) as u16;
    let head = Std::build(Opcode::UET_WRITE)
        .head(|head| head.rel(true).som(som).eom(eom))
        .message_id((number % 0xffff) as u16 + 1)
        .address(|address| address.job_id(JOB).pid_on_fep(1))
        .memory_key(u64::from(number) + 1)
        .request_length(flow.demand.size as u32);
    let head = match som {
        true => head,
        false => head.payload_length(length).message_offset(offset as u32),
    };
    TxRequest {
        message: MessageKey(number.into()),
        som,
        eom,
        next_hdr: NextHdr::UET_HDR_REQUEST_STD,
        head: copied(head.current_unchecked().bytes()),
        payload: Bytes::from_static(&PAYLOAD).slice(..usize::from(length)),
    }
}

/// Returns the flow of a packet and its offset; `None` if the header does not fit the payload.
fn place(request: &RxRequest, mtu: u16) -> Option<(u32, u64)> {
    let (std, _) = Std::parse(&request.head).ok()?;
    let number = u32::try_from(std.memory_key()?.checked_sub(1)?).ok()?;
    let offset = std.message_offset().unwrap_or(0);
    let length = match std.payload_length() {
        Some(length) => u32::from(length),
        None => std.request_length().min(mtu.into()),
    };
    let fits = request.payload.len() == length as usize
        && offset.checked_add(length).is_some_and(|end| end <= std.request_length())
        && request.next_hdr == NextHdr::UET_HDR_REQUEST_STD
        && std.head().opcode() == Opcode::UET_WRITE;
    fits.then_some((number, offset.into()))
}

fn response(code: ReturnCode) -> TxResponse {
    let opcode = ResponseOpcode::UET_DEFAULT_RESPONSE;
    TxResponse {
        delivery: Delivery::Default,
        next_hdr: NextHdr::UET_HDR_RESPONSE,
        head: copied(Response::build(opcode, code).current_unchecked().bytes()),
        payload: Bytes::new(),
    }
}

/// Copies a header, which fits, at once and not byte by byte.
fn copied(header: &[u8]) -> Head {
    Head::try_from(header).unwrap_or_default()
}
