//! The secure domains of a NIC, from key files and from the control channel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_control::SecureDomain;
use uet_keys::KeyError;
use uet_model::pds::Protect;
use uet_model::secure::{Encapsulation, Member, Secure, SecureParams, Statistic};

/// The transport security of a NIC. The NIC and its packet delivery share it.
#[derive(Clone, Debug)]
pub(crate) struct Security {
    secure: Arc<Mutex<Secure>>,
    pub(crate) domains: Vec<SecureDomain>,
}

impl Security {
    pub(crate) fn new(seed: u64) -> Self {
        Security { secure: Arc::new(Mutex::new(Secure::new(seed))), domains: Vec::new() }
    }

    /// Returns the protection for packet delivery; `None` without a domain.
    pub(crate) fn protection(&self) -> Option<Box<dyn Protect>> {
        let shared: Box<dyn Protect> = Box::new(self.secure.clone());
        (!self.domains.is_empty()).then_some(shared)
    }

    pub(crate) fn secure(&self) -> MutexGuard<'_, Secure> {
        self.secure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_encapsulation(&self, encapsulation: Encapsulation) {
        self.secure().encapsulation = encapsulation;
    }

    pub(crate) fn set_params(&self, params: &SecureParams) {
        self.secure().params = params.clone();
    }

    /// Makes these the NIC's domains. A domain with unchanged settings keeps its Start_PSNs, and a key that stays
    /// keeps its counter. Checks all before it changes any.
    pub(crate) fn install(&mut self, domains: &[SecureDomain]) -> Result<(), KeyError> {
        let members = domains.iter().map(|entry| self.member(entry));
        let members = members.collect::<Result<Vec<Member>, _>>()?;
        let mut secure = self.secure();
        for old in &self.domains {
            secure.remove(old.sdi);
        }
        for member in members {
            secure.insert(member);
        }
        drop(secure);
        self.domains = domains.to_vec();
        Ok(())
    }

    fn member(&self, entry: &SecureDomain) -> Result<Member, KeyError> {
        let old = self.domains.iter().find(|old| old.sdi == entry.sdi);
        let refused = |error: uet_model::secure::SettingsError| KeyError::from(error.to_string());
        let mut member = Member::new(uet_keys::domain(entry)?).map_err(refused)?;
        if let Some(ssi) = entry.own_ssi {
            member = member.with_ssi(ssi).map_err(refused)?;
        }
        for (an, keys) in [false, true].into_iter().zip(uet_keys::secrets(entry)?) {
            let Some(key) = keys.into_iter().next() else { continue };
            member.install(an, key, entry.epoch).map_err(refused)?;
            let name = if an { "1" } else { "0" };
            let same =
                |old: &&SecureDomain| old.keys.get(name) == entry.keys.get(name) && old.epoch == entry.epoch;
            if old.filter(same).is_some() {
                let next = self.secure().member(entry.sdi).and_then(|member| member.counter(an));
                next.into_iter().for_each(|next| member.set_counter(an, next));
            }
        }
        member.current_an = entry.an == 1;
        if let Some(counter) = entry.counter {
            member.set_counter(member.current_an, counter);
        }
        if old.is_some() {
            if let Some(before) = self.secure().member(entry.sdi) {
                member.inherit(before);
            }
        }
        Ok(member)
    }

    /// Returns the counts by name.
    pub(crate) fn counts(&self) -> Vec<(String, u64)> {
        let named = |(sdi, what, count): (Option<u32>, Statistic, u64)| match sdi {
            Some(sdi) => (format!("{what} sdi {sdi:#08x}"), count),
            None => (what.to_string(), count),
        };
        self.secure().statistics().into_iter().map(named).collect()
    }
}
