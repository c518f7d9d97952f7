//! Permutations that a key selects. Different values stay different, so contexts do not merge, and equal
//! values stay equal. Nobody without the key can tell which value was replaced.

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The replacements of one key. `Debug` shows no key.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The round function of the permutations.
    rounds: Aes256,
    /// Encrypts payload.
    payload: Aes256,
}

/// A tweak: each kind of value has a permutation of its own.
#[derive(Clone, Copy)]
enum Purpose {
    Mac = 1,
    Ipv4,
    Ipv6,
    Job,
    Key,
    Tag,
    HeaderData,
    Operand,
    Payload,
}

impl Mapping {
    /// Creates the mapping of a key, which may have any length.
    pub fn new(key: &[u8]) -> Self {
        let cipher = |number: u8| {
            let key: [u8; 32] = Sha256::new_with_prefix([number]).chain_update(key).finalize().into();
            Aes256::new(&key.into())
        };
        Mapping { rounds: cipher(0), payload: cipher(1) }
    }

    /// Returns the replacement of a field's value, or `None` if the field is kept. `width` is in bits. A
    /// value of 0 stays, because it often means that there is none.
    pub fn field(&self, name: &str, width: usize, value: u128) -> Option<u128> {
        let width = width as u32;
        Some(match name {
            "eth.src" | "eth.dst" => self.mac(value as u64).into(),
            "ip.src" | "ip.dst" if width == 32 => self.ipv4((value as u32).into()).to_bits().into(),
            "ip.src" | "ip.dst" => self.ipv6(value.into()).to_bits(),
            "ses.job_id" => self.nonzero(Purpose::Job, width, value),
            "ses.memory_key" | "ses.read_memory_key" => self.memory_key(value as u64).into(),
            "ses.match_bits" => self.nonzero(Purpose::Tag, width, value),
            "ses.header_data" => self.nonzero(Purpose::HeaderData, width, value),
            "ses.compare_value" | "ses.swap_value" => self.nonzero(Purpose::Operand, width, value),
            _ => return None,
        })
    }

    /// Returns whether [`field`](Self::field) replaces the values of this field.
    pub fn is_replaced(&self, name: &str) -> bool {
        self.field(name, 32, 0).is_some()
    }

    /// Returns the replacement of an address. Loopback, multicast, link-local, private and reserved addresses
    /// stay what they are.
    pub fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => self.ipv4(address).into(),
            IpAddr::V6(address) => self.ipv6(address).into(),
        }
    }

    fn ipv4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let kept = match address.octets() {
            // This network, reserved, broadcast.
            [0 | 240..=255, ..] => return address,
            [10 | 127, ..] => 8,
            [169, 254, ..] | [192, 168, ..] => 16,
            [172, 16..=31, ..] => 12,
            [224..=239, ..] => 4,
            // The others are what the ranges above leave of all addresses.
            _ => 0,
        };
        let is_other = |address: u32| {
            let address = Ipv4Addr::from(address);
            let [first, ..] = address.octets();
            let is_special = address.is_private() || address.is_link_local() || address.is_loopback();
            !(is_special || matches!(first, 0 | 224..))
        };
        let mut bits = address.to_bits();
        loop {
            bits = self.behind(Purpose::Ipv4, kept, 32, bits.into()) as u32;
            // A permutation of a set, restricted to a part of it, is a permutation of the part if it is
            // repeated until it ends there.
            if kept > 0 || is_other(bits) {
                return bits.into();
            }
        }
    }

    fn ipv6(&self, address: Ipv6Addr) -> Ipv6Addr {
        let kept = match address.segments() {
            // Unspecified, loopback.
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return address,
            // Flags and scope of a multicast address stay.
            [0xff00..=0xffff, ..] => 16,
            [0xfe80..=0xfebf, ..] => 64,
            [0x2000..=0x3fff, ..] => 3,
            _ => 8,
        };
        let bits = self.behind(Purpose::Ipv6, kept, 128, address.to_bits());
        match bits {
            // Only the kept bits of an address say that it is unspecified or loopback.
            0 | 1 => self.behind(Purpose::Ipv6, kept, 128, bits).into(),
            _ => bits.into(),
        }
    }

    /// Replaces an Ethernet address by a locally administered one. Multicast and broadcast addresses stay
    /// what they are.
    fn mac(&self, address: u64) -> u64 {
        const BROADCAST: u64 = (1 << 48) - 1;
        const GROUP: u64 = 1 << 40;
        const LOCAL: u64 = 1 << 41;
        if address == 0 || address == BROADCAST {
            return address;
        }
        let (high, low) = (address >> 42 << 40, address & (GROUP - 1));
        let replaced = self.permuted(Purpose::Mac, 0, 46, (high | low).into()) as u64;
        (replaced >> 40 << 42) | LOCAL | address & GROUP | replaced & (GROUP - 1)
    }

    /// Bits 63 and 62 of a memory key have a meaning, and its reserved bits are 0. In an optimized key, more are
    /// reserved. A key with other reserved bits gets another one of these, which breaks the same requirement.
    fn memory_key(&self, key: u64) -> u64 {
        const OPTIMIZED: u64 = 1 << 62;
        const MEANING: u64 = 1 << 63 | OPTIMIZED;
        let reserved = |key: u64| match key & OPTIMIZED {
            0 => key & 0x3f << 56,
            _ => key & (0x3f << 56 | 0xf_ffff_ffff << 12),
        };
        if reserved(key) != 0 {
            let mut replaced = key;
            loop {
                replaced = self.behind(Purpose::Key, 2, 64, replaced.into()) as u64;
                // As in `ipv4`.
                if reserved(replaced) != 0 {
                    return replaced;
                }
            }
        }
        let low = if key & OPTIMIZED == 0 {
            self.nonzero(Purpose::Key, 56, (key & !MEANING).into()) as u64
        } else {
            let used = key >> 48 << 12 & 0xf_f000 | key & 0xfff;
            let replaced = self.nonzero(Purpose::Key, 20, used.into()) as u64;
            replaced >> 12 << 48 | replaced & 0xfff
        };
        key & MEANING | low
    }

    /// Replaces bytes. Bytes with an equal beginning get replacements with an equal beginning, in steps of 16
    /// bytes: each block is encrypted with the replacement of the one before it (CBC).
    pub fn payload(&self, bytes: &mut [u8]) {
        let mut before = 0;
        for block in bytes.chunks_mut(16) {
            let mut value = [0; 16];
            value[16 - block.len()..].copy_from_slice(block);
            let value = u128::from_be_bytes(value);
            before = match block.len() {
                16 => encrypted(&self.payload, before ^ value),
                // The last block, which keeps its length.
                length => self.permuted(Purpose::Payload, before, length as u32 * 8, value),
            };
            block.copy_from_slice(&before.to_be_bytes()[16 - block.len()..]);
        }
    }

    /// Permutes a value that is not 0 into another one.
    fn nonzero(&self, purpose: Purpose, width: u32, value: u128) -> u128 {
        match value {
            0 => 0,
            _ => match self.permuted(purpose, 0, width, value) {
                // The replacement of 0, which stays, is free.
                0 => self.permuted(purpose, 0, width, 0),
                replaced => replaced,
            },
        }
    }

    /// Permutes the bits of a value behind its first `kept` ones.
    fn behind(&self, purpose: Purpose, kept: u32, width: u32, value: u128) -> u128 {
        let low = u128::MAX >> (128 - width + kept);
        value & !low | self.permuted(purpose, kept.into(), width - kept, value & low)
    }

    /// Permutes a value of `width` bits, 2 to 128: a Feistel network. Four rounds suffice for wide values,
    /// because their halves do not repeat.
    fn permuted(&self, purpose: Purpose, tweak: u128, width: u32, value: u128) -> u128 {
        let rounds: u128 = if width < 128 { 10 } else { 4 };
        let (left_width, right_width) = (width / 2, width - width / 2);
        let mask = |width: u32| u128::MAX >> (128 - width);
        let (mut left, mut right) = (value >> right_width & mask(left_width), value & mask(right_width));
        for round in 0..rounds {
            // A half has at most 64 bits.
            let half = if round % 2 == 0 { right } else { left };
            let input = (purpose as u128) << 120 | u128::from(width) << 112 | round << 104 | half;
            let random = encrypted(&self.rounds, encrypted(&self.rounds, input) ^ tweak);
            match round % 2 {
                0 => left ^= random & mask(left_width),
                _ => right ^= random & mask(right_width),
            }
        }
        left << right_width | right
    }
}

fn encrypted(cipher: &Aes256, block: u128) -> u128 {
    let mut block = block.to_be_bytes();
    cipher.encrypt_block((&mut block).into());
    u128::from_be_bytes(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const MAPPING: fn() -> Mapping = || Mapping::new(b"a key");

    #[test]
    fn permutations_keep_different_values_different() {
        for width in [2, 5, 8, 12] {
            let all = 0..1 << width;
            let replaced: BTreeSet<u128> =
                all.clone().map(|value| MAPPING().permuted(Purpose::Tag, 0, width, value)).collect();
            assert!(replaced.iter().copied().eq(all), "{width}");
        }
        let replaced: BTreeSet<u128> =
            (0..1 << 8).map(|value| MAPPING().nonzero(Purpose::Tag, 8, value)).collect();
        assert_eq!(replaced.len(), 1 << 8);
        assert_eq!(MAPPING().nonzero(Purpose::Tag, 8, 0), 0);
    }

    #[test]
    fn another_key_gives_other_replacements() {
        let address = "10.0.0.1".parse().unwrap();
        let other = Mapping::new(b"another key").address(address);
        assert_eq!(MAPPING().address(address), MAPPING().address(address));
        assert!(MAPPING().address(address) != other && other != address);
    }

    #[test]
    fn addresses_keep_their_class() {
        for kept in ["0.0.0.0", "255.255.255.255", "::", "::1"] {
            let kept: IpAddr = kept.parse().unwrap();
            assert_eq!(MAPPING().address(kept), kept);
        }
        for last in 0..=255 {
            for first in [[10, 1], [127, 0], [172, 20], [192, 168], [169, 254], [224, 0], [8, 8], [100, 64]] {
                let old = Ipv4Addr::from([first[0], first[1], 7, last]);
                let new = MAPPING().ipv4(old);
                let class =
                    |it: Ipv4Addr| (it.is_private(), it.is_loopback(), it.is_link_local(), it.is_multicast());
                assert_eq!(class(old), class(new), "{old} {new}");
            }
            for first in [0xfd00, 0xfe80, 0xff02, 0x2001, 0] {
                let old = Ipv6Addr::from([first, 0, 0, 0, 0, 0, 7, last.into()]);
                let new = MAPPING().ipv6(old);
                let class = |it: Ipv6Addr| {
                    (it.is_unique_local(), it.is_unicast_link_local(), it.is_multicast(), it.is_loopback())
                };
                assert_eq!(class(old), class(new), "{old} {new}");
            }
        }
    }

    #[test]
    fn macs_keep_their_group_bit() {
        let (group, host) = (MAPPING().mac(0x0100_5e00_0001), MAPPING().mac(0x0200_0a02_0001));
        assert_eq!((group >> 40 & 3, host >> 40 & 3), (3, 2));
        assert_eq!((MAPPING().mac(0), MAPPING().mac((1 << 48) - 1)), (0, (1 << 48) - 1));
    }

    #[test]
    fn memory_keys_keep_the_bits_with_a_meaning() {
        let plain = MAPPING().memory_key(0x80ac_ce50_0000_0001);
        assert_eq!(plain >> 56, 0x80);
        assert_ne!(plain, 0x80ac_ce50_0000_0001);
        let optimized = MAPPING().memory_key(0x4012_0000_0000_0123);
        assert_eq!((optimized >> 56, optimized << 16 >> 28), (0x40, 0));
        assert!(optimized & 0xfff != 0x123 && optimized >> 48 != 0x4012, "{optimized:x}");
        // Reserved bits are not 0: nothing of the key stays, and it still breaks the requirement.
        for key in [0x4123_4567_89ab_cdef, 0x4000_4567_89ab_c123, 0x0123_4567_89ab_cdef_u64] {
            let bytes = MAPPING().memory_key(key).to_be_bytes();
            let kept = key.to_be_bytes().iter().zip(&bytes).filter(|(old, new)| old == new).count();
            assert!(kept < 2, "{key:x} {bytes:x?}");
        }
        assert_eq!(MAPPING().memory_key(0), 0);
    }

    #[test]
    fn equal_beginnings_of_payloads_stay_equal() {
        let replaced = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            MAPPING().payload(&mut bytes);
            bytes
        };
        let (one, cut) = (replaced(&[7; 40]), replaced(&[7; 33]));
        assert_eq!(one[..32], cut[..32]);
        assert_ne!(one[..16], one[16..32], "equal blocks differ");
        let short: BTreeSet<Vec<u8>> = (0..=255).map(|byte| replaced(&[byte])).collect();
        assert_eq!(short.len(), 256);
    }
}
