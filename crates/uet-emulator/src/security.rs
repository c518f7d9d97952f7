//! The secure domains of a NIC, from key files and from the control channel.

#[cfg(target_os = "linux")]
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_control::SecureDomain;
use uet_model::pds::Protect;
use uet_model::secure::{Counters, Encapsulation, Member, Secure, SecureParams, Statistic};
use uet_packet_io::keys::KeyError;

/// The transport security of a NIC. The NIC and its packet delivery share it.
#[derive(Clone, Debug)]
pub(crate) struct Security {
    secure: Arc<Mutex<Secure>>,
    counters: Counters,
    pub(crate) domains: Vec<SecureDomain>,
}

impl Security {
    pub(crate) fn new(seed: u64) -> Self {
        Security::with(seed, Counters::default())
    }

    /// Returns security whose packets leave the process: it repeats neither counters of this process nor, except by rare
    /// chance, those of another one.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_process() -> io::Result<Self> {
        /// The counters of a process, by its ID: after a fork, the child must not continue those of its parent.
        static COUNTERS: Mutex<Option<(u32, Counters)>> = Mutex::new(None);
        let process = std::process::id();
        let mut known = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = match known.take().filter(|(owner, _)| *owner == process) {
            Some((_, counters)) => counters,
            None => Counters::starting_at(random()?),
        };
        *known = Some((process, counters.clone()));
        Ok(Security::with(random()?, counters))
    }

    fn with(seed: u64, counters: Counters) -> Self {
        Security { secure: Arc::new(Mutex::new(Secure::new(seed))), counters, domains: Vec::new() }
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

    /// Makes these the NIC's domains. A domain that stays keeps its Start_PSNs, and every key that the NIC has ever had
    /// keeps its counter. Checks all before it changes any.
    pub(crate) fn install(&mut self, domains: &[SecureDomain]) -> Result<(), KeyError> {
        uet_packet_io::keys::check_unique(domains)?;
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
        let refused = |error: uet_model::secure::SettingsError| KeyError::from(error.to_string());
        let mut member = Member::new(uet_packet_io::keys::domain(entry)?, &self.counters).map_err(refused)?;
        if let Some(ssi) = entry.own_ssi {
            member = member.with_ssi(ssi).map_err(refused)?;
        }
        for (an, keys) in [false, true].into_iter().zip(uet_packet_io::keys::secrets(entry)?) {
            if let Some(key) = keys.into_iter().next() {
                member.install(an, key, entry.epoch).map_err(refused)?;
            }
        }
        member.current_an = entry.an == 1;
        if let Some(counter) = entry.counter {
            member.skip_to_counter(member.current_an, counter);
        }
        if let Some(before) = self.secure().member(entry.sdi) {
            member.inherit(before);
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

/// Returns a random number of the operating system.
#[cfg(target_os = "linux")]
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
