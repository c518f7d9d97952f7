//! Plays a script to a device: puts in the numbers that the device chooses, changes packets, keeps account of contexts.

use super::packets::{self, Memory};
use super::script::{Act, Edit, Script, Step};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_conformance::{Dut, DutError, DutExt, Pdc, Wire};
use uet_control::{ClosePdc, Hex64, Mode, Post, PostKind, Remote};
use uet_wire::layout::Layout;
use uet_wire::pds::{Pds, Request};
use uet_wire::registry::{CtlType, NackCode, PdsType, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::{Options, Packet, PdcId, Psn, Start, Uet, UetBuf};

/// How many lost PSNs of a context are filled before it is closed.
const FILLED: u32 = 64;

/// How often what the device asks is answered before its contexts are closed.
const ROUNDS: usize = 8;

/// A conversation with a device.
pub struct Player<'a> {
    dut: &'a mut dyn Dut,
    memory: &'a Memory,
    /// The fuzzer as a peer of the device, where it can be told of one.
    peer: Option<u64>,
    /// Whether the device has been told to act.
    posted: bool,
    soon: Duration,
    /// Contexts that packets of the fuzzer may have opened, by the PDCID that they said.
    opened: BTreeMap<(IpAddr, PdcId), Opened>,
    /// How many packets had this PDCID and this PSN, and have not been refused: of two that have the same, a NACK does not
    /// say which it is about.
    open: BTreeMap<(IpAddr, PdcId, u32), u32>,
    /// The script's own.
    own: Vec<Pdc>,
    /// What the device asks, by its PDCID: what has come, what has no answer.
    asked: BTreeMap<PdcId, Asked>,
    /// What passed, and when.
    pub passed: Vec<(Duration, Wire)>,
}

#[derive(Debug, Default)]
struct Opened {
    start: Psn,
    /// How many PSNs have been used.
    used: u32,
    rod: bool,
    remotes: BTreeSet<PdcId>,
    /// How many PSNs the device has acknowledged cumulatively.
    covered: u32,
    /// Which PSNs an ACK has named, from the first.
    named: BTreeSet<u32>,
    /// PSNs of opening packets.
    opening: BTreeSet<u32>,
    /// The device has said that it has no such context, or that it is closing it.
    gone: bool,
}

#[derive(Debug)]
struct Asked {
    /// The fuzzer's side.
    pdc: Pdc,
    came: BTreeSet<u32>,
    /// PSNs, and whether a request has them rather than a control packet.
    open: Vec<(Psn, bool)>,
    /// Whether the device has closed it.
    closed: bool,
}

impl Asked {
    /// The highest PSN up to which all have come.
    fn cumulative(&self) -> Psn {
        let whole = (0u32..).zip(&self.came).take_while(|(n, came)| n == *came).count() as u32;
        self.pdc.start + whole - 1
    }
}

impl<'a> Player<'a> {
    /// A conversation from the first address of the fuzzer.
    pub fn new(dut: &'a mut dyn Dut, memory: &'a Memory, peer: Option<u64>, soon: Duration) -> Self {
        Player {
            dut,
            memory,
            peer,
            posted: false,
            soon,
            opened: BTreeMap::new(),
            open: BTreeMap::new(),
            own: Vec::new(),
            asked: BTreeMap::new(),
            passed: Vec::new(),
        }
    }

    /// Plays it. The error is that of a link that is gone.
    pub fn play(&mut self, script: &Script) -> Result<(), DutError> {
        let (from, to) = self.way();
        self.own = script
            .contexts
            .iter()
            .map(|context| Pdc {
                from,
                to,
                local: PdcId(context.pdcid),
                remote: None,
                start: Psn(context.start),
                rod: context.rod,
                entropy: 0xc000 | context.pdcid,
            })
            .collect();
        script.steps.iter().try_for_each(|step| self.step(step))
    }

    fn way(&self) -> (IpAddr, IpAddr) {
        let facts = self.dut.facts();
        (facts.local.first().copied().unwrap_or(facts.device), facts.device)
    }

    fn step(&mut self, step: &Step) -> Result<(), DutError> {
        let built = |packet: Result<UetBuf, _>| packet.ok().map(|packet: UetBuf| packet.to_bytes());
        match &step.act {
            Act::Request { context, n, message, part, retx } => {
                let Some(pdc) = self.own.get(*context).cloned() else { return Ok(()) };
                let clear = self.settled(&pdc);
                let request = self.memory.request(&pdc, *n, message, *part).and_then(|request| {
                    let request = request.clear(clear);
                    if *retx { request.retx().build() } else { request.build() }
                });
                self.send(&pdc, built(request), &step.edits)?;
                self.learn(*context)
            }
            Act::Control { context, n, kind } => {
                let Some(pdc) = self.own.get(*context).cloned() else { return Ok(()) };
                let kind = CtlType::new(*kind).unwrap_or(CtlType::NOOP);
                self.send(&pdc, built(packets::control(&pdc, *n, kind)), &step.edits)?;
                self.learn(*context)
            }
            Act::Lone { message, rudi } => {
                let pdc = self.nobody();
                let packet = self.memory.lone(&pdc, message, *rudi);
                self.send(&pdc, built(packet), &step.edits)
            }
            Act::Post { kind, length, rod } => {
                self.post(kind, *length, *rod);
                self.listen(self.soon, |player| player.asks())
            }
            Act::Answer => {
                self.listen(self.soon / 4, |player| player.asks())?;
                self.answer(&step.edits)
            }
            Act::Refuse { code } => {
                let oldest = self.asked.values_mut().find(|asked| !asked.open.is_empty());
                let (pdc, psn) = match oldest {
                    Some(asked) => (asked.pdc.clone(), asked.open.remove(0).0),
                    None => (self.nobody(), Psn(7)),
                };
                let nack = packets::nack(&pdc, *code, psn).map(|nack| nack.to_bytes());
                self.send(&pdc, nack, &step.edits)
            }
            Act::Recorded { bytes } => {
                let mut bytes = bytes.0.clone();
                self.rebind(&mut bytes);
                let opens = Uet::parse_lax(&bytes).0.pds.and_then(|pds| pds.request()).filter(Request::syn);
                let key = opens.map(|request| (self.way().0, request.spdcid()));
                self.send(&self.nobody(), Some(bytes), &step.edits)?;
                let bound = |player: &Self| {
                    key.is_none_or(|key| {
                        player.opened.get(&key).is_none_or(|opened| !opened.remotes.is_empty())
                    })
                };
                self.listen(self.soon, bound)
            }
            Act::Raw { bytes } => self.send(&self.nobody(), Some(bytes.0.clone()), &step.edits),
            Act::Wait { .. } => self.listen(step.act.pause(), |_| false),
        }
    }

    /// A context that there is not, for what belongs to none.
    fn nobody(&self) -> Pdc {
        let (from, to) = self.way();
        Pdc { from, to, local: PdcId(1), remote: None, start: Psn(7), rod: false, entropy: 0xc000 }
    }

    /// Waits for the device's PDCID, where it is not known.
    fn learn(&mut self, context: usize) -> Result<(), DutError> {
        let key = self.own.get(context).map(|pdc| (pdc.from, pdc.local));
        // What was sent may open nothing: its numbers were changed.
        let opens = key.is_some_and(|key| self.opened.contains_key(&key));
        let known =
            move |player: &Self| !opens || player.own.get(context).is_none_or(|pdc| pdc.remote.is_some());
        let long = if opens { self.soon } else { Duration::ZERO };
        self.listen(long, known)
    }

    /// The PSN up to which all have an answer.
    fn settled(&self, pdc: &Pdc) -> Psn {
        let answered = |opened: &Opened| {
            let by_name = (opened.covered..).take_while(|n| opened.named.contains(n)).count() as u32;
            opened.covered + by_name
        };
        pdc.start + self.opened.get(&(pdc.from, pdc.local)).map_or(0, answered) - 1
    }

    fn post(&mut self, kind: &str, length: u64, rod: bool) {
        let kind: Option<PostKind> = serde_json::from_value(kind.into()).ok();
        let (Some(kind), Some(peer)) = (kind, self.peer) else { return };
        let mode = if rod { Mode::Rod } else { Mode::Rud };
        self.posted = true;
        let remote = Remote { key: Hex64(0x5eed), index: 10, ..Remote::default() };
        let post = Post { mode, remote, ..Post::new(kind, peer, length) };
        // What it cannot do, it does not do.
        let _ = self.dut.call(post);
    }

    fn asks(&self) -> bool {
        self.asked.values().any(|asked| !asked.open.is_empty())
    }

    /// ACKs for all that the device has asked.
    fn answer(&mut self, edits: &[Edit]) -> Result<(), DutError> {
        let mut acks = Vec::new();
        for asked in self.asked.values_mut() {
            let cack = asked.cumulative();
            for (psn, is_request) in core::mem::take(&mut asked.open) {
                let mut ack = asked.pdc.ack(psn).cack(cack);
                if !is_request {
                    ack.response = None;
                }
                acks.push((asked.pdc.clone(), ack.build().ok().map(|ack| ack.to_bytes())));
            }
        }
        acks.into_iter().try_for_each(|(pdc, ack)| self.send(&pdc, ack, edits))
    }

    /// Puts the PDCID that the device has for a context now into a recorded packet.
    fn rebind(&self, bytes: &mut [u8]) {
        let Some(pds) = Uet::parse_lax(bytes).0.pds else { return };
        let Some(place) = pds.layout().field("pds.spdcid") else { return };
        let spdcid = place.read(pds.bytes()).map(|id| PdcId(id as u16));
        let remote = spdcid.and_then(|id| self.opened.get(&(self.way().0, id))?.remotes.first().copied());
        let places: Vec<_> = pds.layout().present(pds.bytes()).map(|(place, _)| place).collect();
        let dpdcid = places.iter().find(|place| place.row.name == "pds.dpdcid");
        if let (Some(remote), Some(dpdcid)) = (remote, dpdcid) {
            dpdcid.write(bytes, remote.0.into());
        }
    }

    fn send(&mut self, pdc: &Pdc, bytes: Option<Vec<u8>>, edits: &[Edit]) -> Result<(), DutError> {
        let Some(mut bytes) = bytes else { return Ok(()) };
        let mut wire = pdc.raw(&[]);
        let mut copies = 1;
        for edit in edits {
            match edit {
                Edit::Twice => copies += 1,
                Edit::Mark => wire.marked = true,
                _ => apply(edit, &mut bytes),
            }
        }
        wire.bytes = bytes;
        for _ in 0..copies {
            self.note_sent(&wire);
            self.passed.push((self.dut.now(), wire.clone()));
            // What the system does not take is lost, as it may be on any link.
            let _ = self.dut.send(&wire);
        }
        self.listen(Duration::ZERO, |_| false)
    }

    /// Takes in what comes, until it is enough, but no longer than this.
    fn listen(&mut self, within: Duration, enough: impl Fn(&Self) -> bool) -> Result<(), DutError> {
        let until = self.dut.now() + within;
        while !enough(self) {
            let Some(wire) = self.dut.receive(until)? else { return Ok(()) };
            self.note_received(&wire);
            self.passed.push((self.dut.now(), wire));
        }
        Ok(())
    }

    /// What the packet may do to the contexts of the device, if it takes it.
    fn note_sent(&mut self, wire: &Wire) {
        let Some(pds) = Uet::parse_lax(&wire.bytes).0.pds else { return };
        let (spdcid, psn, opens, rod) = match (pds.request(), pds) {
            (Some(request), _) => {
                let rod = request.prologue().kind() == PdsType::ROD_REQ;
                (request.spdcid(), request.psn(), request.start_psn(), rod)
            }
            (None, Pds::Control(control)) => {
                (control.spdcid(), control.psn(), control.start_psn(), control.isrod())
            }
            _ => return,
        };
        *self.open.entry((wire.src, spdcid, psn.0)).or_default() += 1;
        if matches!(pds, Pds::Control(control) if !control.ctl_type().takes_psn()) {
            return;
        }
        let key = (wire.src, spdcid);
        if let Some(start) = opens {
            self.opened.entry(key).or_insert_with(|| Opened { start, rod, ..Opened::default() });
        }
        if let Some(opened) = self.opened.get_mut(&key) {
            // What lies before the first, or far behind it, is no use of a PSN.
            let n = psn - opened.start;
            opened.opening.extend(opens.map(|_| psn.0));
            if n < 1 << 16 {
                opened.used = opened.used.max(n + 1);
            }
        }
    }

    fn note_received(&mut self, wire: &Wire) {
        let Some(pds) = Uet::parse_lax(&wire.bytes).0.pds else { return };
        if let Some(ack) = pds.ack() {
            if let Some(opened) = self.opened.get_mut(&(wire.dst, ack.dpdcid())) {
                opened.remotes.insert(ack.spdcid());
                opened.named.extend(ack.ack_psn().map(|psn| psn - opened.start));
                let covered = ack.cack_psn() + 1 - opened.start;
                if covered < 1 << 17 {
                    opened.covered = opened.covered.max(covered);
                }
            }
            self.bind(wire.dst, ack.dpdcid(), ack.spdcid());
        } else if let Some(nack) = pds.nack() {
            let refused = nack.nack_psn().filter(|_| nack.nack_code() != NackCode::INV_DPDCID);
            let open = refused.and_then(|psn| self.open.get_mut(&(wire.dst, nack.dpdcid(), psn.0)));
            if let Some(open) = open {
                *open = open.saturating_sub(1);
            }
            if let Some(opened) = self.opened.get_mut(&(wire.dst, nack.dpdcid())) {
                let gone = [NackCode::INV_DPDCID, NackCode::CLOSING, NackCode::CLOSING_IN_ERR];
                opened.gone |= gone.contains(&nack.nack_code());
                if nack.spdcid() != PdcId::NONE {
                    opened.remotes.insert(nack.spdcid());
                }
            }
        } else if let Some(request) = pds.request() {
            self.ask(wire, request.spdcid(), request.dpdcid(), (request.psn(), true), request.start_psn());
        } else if let Pds::Control(control) = pds {
            if control.ctl_type().takes_psn() {
                self.ask(
                    wire,
                    control.spdcid(),
                    control.dpdcid(),
                    (control.psn(), false),
                    control.start_psn(),
                );
                if control.ctl_type() == CtlType::CLOSE_COMMAND {
                    self.asked.entry(control.spdcid()).and_modify(|asked| asked.closed = true);
                }
            }
        }
    }

    fn bind(&mut self, at: IpAddr, local: PdcId, remote: PdcId) {
        for pdc in self.own.iter_mut().filter(|pdc| pdc.local == local && pdc.from == at) {
            pdc.remote = Some(remote);
        }
    }

    fn ask(
        &mut self,
        wire: &Wire,
        remote: PdcId,
        local: Option<PdcId>,
        what: (Psn, bool),
        start: Option<Psn>,
    ) {
        let fresh = PdcId(0x8000 | self.asked.len() as u16);
        let asked = self.asked.entry(remote).or_insert_with(|| {
            let pdc = Pdc {
                from: wire.dst,
                to: wire.src,
                local: local.unwrap_or(fresh),
                remote: Some(remote),
                start: start.unwrap_or(what.0),
                rod: false,
                entropy: wire.entropy,
            };
            Asked { pdc, came: BTreeSet::new(), open: Vec::new(), closed: false }
        });
        asked.came.insert(what.0 - asked.pdc.start);
        if !asked.open.contains(&what) && asked.open.len() < 1 << 12 {
            asked.open.push(what);
        }
    }

    /// Answers what the device asks, and closes what was opened, by the rules. Whether all is closed as far as the device
    /// has said: if it has not, its contexts may stay open with reason.
    pub fn close(&mut self) -> Result<bool, DutError> {
        self.answer_all()?;
        if let Some(peer) = self.peer.filter(|_| self.posted) {
            for mode in [Mode::Rud, Mode::Rod] {
                // Where nothing is open, nothing is to be closed.
                let _ = self.dut.call(ClosePdc { peer, mode, class: 0 });
            }
            self.answer_all()?;
        }
        let (_, to) = self.way();
        let own = |remote: &PdcId| self.opened.values().any(|opened| opened.remotes.contains(remote));
        let mut sure = self.asked.iter().all(|(remote, asked)| asked.closed || own(remote));
        for (from, local) in self.opened.keys().copied().collect::<Vec<_>>() {
            let Some(opened) = self.opened.get(&(from, local)) else { continue };
            let remote = match opened.remotes.len() {
                1 => opened.remotes.first().copied(),
                // It has opened nothing, and said so of each packet.
                0 if opened.opening.iter().all(|psn| self.open.get(&(from, local, *psn)) == Some(&0)) => {
                    continue;
                }
                _ => None,
            };
            let missing = opened.used.saturating_sub(opened.covered);
            let (Some(remote), false) = (remote, missing > FILLED || opened.covered > opened.used) else {
                sure = false;
                continue;
            };
            let (start, rod, last) = (opened.start, opened.rod, opened.used);
            let pdc = Pdc { from, to, local, remote: Some(remote), start, rod, entropy: 0xc000 };
            for n in opened.covered..last {
                let filling = packets::control(&pdc, n, CtlType::NOOP).ok().map(|packet| packet.to_bytes());
                self.send(&pdc, filling, &[])?;
            }
            sure &= self.command(&pdc, last)?;
        }
        Ok(sure)
    }

    /// ACKs for what the device asks, until it asks no more.
    fn answer_all(&mut self) -> Result<(), DutError> {
        for _ in 0..ROUNDS {
            self.listen(self.soon / 8, |player| player.asks())?;
            if !self.asks() {
                break;
            }
            self.answer(&[])?;
        }
        Ok(())
    }

    /// Says CLOSE_COMMAND with the `n`-th PSN; whether it is acknowledged.
    fn command(&mut self, pdc: &Pdc, n: u32) -> Result<bool, DutError> {
        let key = (pdc.from, pdc.local);
        // What it said before may have been about a packet with another PDCID.
        self.opened.entry(key).and_modify(|opened| opened.gone = false);
        // Once more on a link that loses.
        for _ in 0..3 {
            let close = packets::control(pdc, n, CtlType::CLOSE_COMMAND).ok().map(|packet| packet.to_bytes());
            self.send(pdc, close, &[])?;
            let is_over = |player: &Self| {
                player.opened.get(&key).is_none_or(|opened| opened.gone || opened.named.contains(&n))
            };
            self.listen(self.soon, is_over)?;
            if is_over(self) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets time pass.
    pub fn idle(&mut self, span: Duration) -> Result<(), DutError> {
        self.listen(span, |_| false)
    }

    /// Writes to the memory that is for nothing else, on a context of its own, and closes that: what the device answers,
    /// and whether all is closed, as in [`close`](Self::close). `None` for silence.
    pub fn pulse(
        &mut self,
        local: PdcId,
        start: Psn,
        beat: [u8; 8],
    ) -> Result<Option<(Pulse, bool)>, DutError> {
        let (from, to) = self.way();
        let pdc = Pdc { from, to, local, remote: None, start, rod: false, entropy: 0xc000 };
        let message = pdc.request(0).write(&self.memory.pulse, 0, &beat);
        let Ok(request) = message else { return Ok(None) };
        for again in 0..4 {
            let request = if again == 0 { request.clone() } else { request.clone().retx() };
            let before = self.passed.len();
            self.send(&pdc, request.build().ok().map(|packet| packet.to_bytes()), &[])?;
            let until = self.dut.now() + self.soon;
            while self.dut.now() <= until {
                let heard = self.passed.get(before..).unwrap_or_default();
                let answer = heard
                    .iter()
                    .filter(|(_, wire)| wire.dst == from)
                    .find_map(|(_, wire)| answer(wire, &pdc));
                if let Some(pulse) = answer {
                    return Ok(Some((pulse, self.close()?)));
                }
                let Some(wire) = self.dut.receive(until)? else { break };
                self.note_received(&wire);
                self.passed.push((self.dut.now(), wire));
            }
        }
        Ok(None)
    }
}

/// What a device answers to a plain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It has done it.
    Done,
    /// It has not, and has said so.
    Refused,
}

/// What a packet says to the first request of this context.
fn answer(wire: &Wire, pdc: &Pdc) -> Option<Pulse> {
    let uet = Uet::parse_lax(&wire.bytes).0;
    let pds = uet.pds?;
    if let Some(nack) = pds.nack() {
        let is_of_it = nack.dpdcid() == pdc.local && nack.nack_psn() == Some(pdc.start);
        return is_of_it.then_some(Pulse::Refused);
    }
    // A response that has to be cleared holds the cumulative PSN back.
    let names =
        |ack: &uet_wire::pds::Ack| ack.ack_psn() == Some(pdc.start) || !pdc.start.is_after(ack.cack_psn());
    pds.ack().filter(|ack| ack.dpdcid() == pdc.local && names(ack))?;
    let code = match uet.ses {
        Some(Ses::Response(response)) => response.head().return_code(),
        _ => ReturnCode::OK,
    };
    let done = code == ReturnCode::OK;
    Some(if done { Pulse::Done } else { Pulse::Refused })
}

/// Changes a packet, as far as it has what is to be changed.
fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    match edit {
        Edit::Set { header, field, value } => {
            let digits = value.trim_start_matches("0x");
            if let Ok(value) = u128::from_str_radix(digits, 16) {
                change(bytes, header, field, |_| value);
            }
        }
        Edit::Add { header, field, by } => {
            change(bytes, header, field, |now| now.wrapping_add_signed((*by).into()))
        }
        Edit::Flip { bit } => {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 0x80 >> (bit % 8);
            }
        }
        Edit::Cut { left } => bytes.truncate(*left),
        Edit::Grow { bytes: more } => bytes.extend(&more.0),
        Edit::Twice | Edit::Mark => {}
    }
}

fn change(bytes: &mut [u8], header: &str, field: &str, value: impl Fn(u128) -> u128) {
    let packet = Packet::parse_lax(Start::Uet, bytes, &Options::DEFAULT).0;
    let mut start = 0;
    let mut found: Option<(usize, &'static Layout)> = None;
    for (layout, part) in packet.headers() {
        if layout.name == header {
            found = Some((start, layout));
            break;
        }
        start += part.len();
    }
    let place = found.and_then(|(start, layout)| Some((start, layout.place(field)?)));
    if let Some((start, place)) = place {
        let header = bytes.get_mut(start..).unwrap_or_default();
        if let Some(now) = place.read(header) {
            let mask = u128::MAX >> (128 - place.row.width());
            place.write(header, value(now) & mask);
        }
    }
}
