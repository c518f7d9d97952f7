//! Prepares the device for a conversation: parameters, keys, memory and indices.

use super::{Held, OWNED, PROCESS, Player, REGIONS, job};
use crate::random::shadow::Shadow;
use crate::random::step::JOBS;
use crate::receives::tagged_room;
use crate::{Outcome, Region, Stop};
use uet_control::{Configure, Fill, Hex, Permission, PostReceive, Reset, SetIndices};

impl Player<'_, '_> {
    pub(super) fn set_up(&mut self) -> Outcome {
        let sequence = self.sequence;
        // A packet of a conversation that failed may have arrived after the first reset.
        self.t.call(Reset {})?;
        if !sequence.parameters.is_empty() {
            let parameters = sequence.parameters.clone();
            let taken = self.t.call(Configure { parameters: parameters.clone() })?.taken;
            self.t.was_set(parameters.into_iter().filter(|(name, _)| taken.contains(name)));
        }
        if let Some(domain) = sequence.secured {
            self.secure(domain)?;
        }
        self.gap = self.t.grace() / 8;
        for (number, plan) in sequence.regions.iter().enumerate() {
            let safe = if plan.safe { 1 << 63 } else { 0 };
            let mut permissions = Vec::new();
            permissions.extend((!plan.no_read).then_some(Permission::Read));
            permissions.extend((!plan.no_write).then_some(Permission::Write));
            permissions.extend((!plan.no_atomic).then_some(Permission::Atomic));
            let fill = Fill::Seed(1000 + number as u32);
            // Atomics need plain numbers: the second half is zeros.
            let mut bytes = fill.bytes(plan.length as usize);
            bytes.get_mut(plan.length as usize / 2..).unwrap_or_default().fill(0);
            let wanted = Region {
                number: 0,
                job: job(plan.job),
                process: PROCESS,
                index: REGIONS + number as u16,
                generation: 0,
                key: safe | (0xacc_0000 + number as u64),
                message_id: 1,
                length: plan.length.into(),
            };
            let fill = Fill::Hex(Hex(bytes.clone()));
            let (number, key) = self.t.expose(wanted.exposure(&permissions, Some(fill)), false)?;
            let region = Region { number, key, ..wanted };
            self.regions.push(Held { plan: *plan, region, shadow: Shadow::new(bytes) });
        }
        if self.t.claims("receive") {
            for number in 0..JOBS {
                // The index has to be there. No send is for this receive.
                let receive = tagged_room(8, 0x5ca1_ab1e_0000_0000);
                self.t.call(PostReceive { job: Some(job(number)), ..receive })?;
            }
        }
        if self.t.claims("indices") {
            for number in 0..JOBS {
                let indices = SetIndices {
                    job: Some(job(number)),
                    process: PROCESS,
                    index: OWNED.start,
                    count: OWNED.len() as u16,
                    generation: None,
                    disabled: None,
                    ordered: None,
                };
                // Without them, their neighbors belong to nobody either.
                if let Err(Stop::Gone(why)) = self.t.call(indices) {
                    return Err(Stop::Gone(why));
                }
            }
        }
        for plan in &sequence.contexts {
            let own = self.new_own(*plan)?;
            self.own.push(own);
        }
        Ok(())
    }
}
