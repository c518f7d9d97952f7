//! Draws operations and receives that the device posts, and the replies of the peer.

use super::{ATOMICS, Draw};
use crate::draw::{Operation, Source};
use crate::random::step::{Posting, Reply, Step};
use uet_control::{Mode, PostKind};

impl<S: Source> Draw<'_, S> {
    pub(super) fn receive(&mut self) -> Step {
        let length =
            if self.source.one_in(3) { self.source.within(1..=199) as u32 } else { self.can.mtu * 3 };
        let tag = self.source.flip().then(|| self.source.below(4) as u8);
        let of_one = tag.is_some() && self.source.one_in(4);
        Step::Receive {
            job: self.source.below(self.jobs.into()) as u8,
            length,
            tag,
            ignore: self.source.one_in(4).into(),
            initiator: of_one.then(|| self.source.one_in(4).into()),
        }
    }

    pub(super) fn posting(&mut self) -> Posting {
        let can = self.can;
        let modes = [Mode::Rud, Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud];
        let preferred = [PostKind::Write, PostKind::Read, PostKind::Send];
        let Operation { kind, mode, length, eager, header_data, .. } =
            self.operation(&can.kinds, &preferred, &modes, 16);
        let atomic =
            matches!(kind, PostKind::Atomic | PostKind::FetchAtomic).then(|| self.source.pick(&ATOMICS));
        self.seed += 1;
        let packets = length.div_ceil(can.mtu).max(1) as usize;
        let replies = if self.source.one_in(3) {
            Vec::new()
        } else {
            (0..packets.min(12)).map(|_| self.reply(kind)).collect()
        };
        // A medium header has room for header data or an offset, and none for extensions.
        let plain = matches!(kind, PostKind::Write | PostKind::Read | PostKind::Send | PostKind::Tsend);
        let fits = plain && matches!(mode, Mode::Rud | Mode::Rod) && length <= can.mtu && !header_data;
        let medium = fits && self.source.one_in(4);
        Posting {
            peer: self.source.below(self.peers.into()) as u8,
            job: self.source.below(self.jobs.into()) as u8,
            kind,
            mode,
            length,
            offset: if self.source.flip() { self.source.below(1 << 40) & !15 } else { 0 },
            seed: self.seed * 6007 + 3,
            form: medium.then_some(uet_control::Form::Medium),
            atomic,
            tag: self.source.below(4) as u8,
            eager: eager.min(can.mtu),
            header_data,
            replies,
        }
    }

    fn reply(&mut self, kind: PostKind) -> Reply {
        if self.sequence.secured.is_some() && self.source.one_in(6) {
            return Reply::NewStart;
        }
        let deferrable = matches!(kind, PostKind::DeferrableSend | PostKind::DeferrableTsend);
        if deferrable && self.source.flip() {
            return Reply::PutOff;
        }
        match self.source.below(33) {
            10 | 11 => Reply::Lost,
            12 | 13 => Reply::AckLost,
            14 | 15 => Reply::Late,
            16 => Reply::Twice,
            17 => Reply::Marked,
            18 | 19 => Reply::Bitmap,
            20 | 21 => Reply::Busy,
            22 => Reply::NotReady,
            23 => Reply::Trimmed,
            24 => Reply::Refused,
            25 => Reply::Short,
            26 | 27 => Reply::Null,
            28 | 29 => Reply::Stale,
            30 => Reply::Slowed,
            31 => Reply::Restored,
            32 => Reply::Extended,
            _ => Reply::Ack,
        }
    }
}
