//! The keys of protected groups.

use super::Run;
use uet_packet_io::keys::{KeyRing, domains_from_toml};

impl Run {
    /// Returns the keys of a group: that of this round and that before it, and the round with whose key to send. `None`
    /// without protection. A key comes back every third round, in the other slot.
    pub(super) fn key_file(&self, group: usize, round: u32, sends: u32) -> Option<String> {
        let (sdi, mode) = self.plan.groups[group].domain?;
        let key =
            |round: u32| format!("{} = \"{}\"", round % 2, format!("{sdi:04x}{:04x}", round % 3).repeat(8));
        let keys: Vec<String> = (round.saturating_sub(1)..=round).map(key).collect();
        let text = format!(
            "[[domain]]\nsdi = {sdi}\nmode = \"{mode}\"\nan = {}\nkeys = {{ {} }}\n",
            sends % 2,
            keys.join(", ")
        );
        Some(text)
    }

    pub(super) fn install(&mut self, member: usize, key_file: &str) -> Result<(), String> {
        let domains = domains_from_toml(key_file).map_err(|error| error.to_string())?;
        self.net[member].install_keys(&domains).map_err(|error| error.to_string())
    }

    /// Offers the key of a round to all members of a group, and to the judge.
    pub(super) fn keys(&mut self, group: usize, round: u32) -> Result<(), String> {
        let Some(key_file) = self.key_file(group, round, round.saturating_sub(1)) else { return Ok(()) };
        let ring = KeyRing::from_toml(&key_file).map_err(|error| error.to_string())?;
        match &mut self.net.observer.keys {
            Some(keys) => keys.add(ring).map_err(|error| error.to_string())?,
            keys => *keys = Some(ring),
        }
        let members = self.plan.groups[group].members.clone();
        members.into_iter().filter(|_| round > 0).try_for_each(|member| self.install(member, &key_file))
    }
}
