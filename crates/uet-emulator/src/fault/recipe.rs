//! Protection made by hand, so that faults can change each of its inputs. It shares no code with the right protection.

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use cmac::{Cmac, Mac};
use core::net::IpAddr;
use uet_control::{KeyMode, SecureDomain, SsiContext};
use uet_wire::tss::{ICV, Outer, OuterLayer};

/// The inputs of the protection of one packet.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// The domain.
    pub(super) domain: SecureDomain,
    /// True if this NIC sends the packet.
    pub(super) leaving: bool,
    /// The outer headers.
    pub(super) outer: Outer,
    /// The security header, as the packet has it. A change reaches the packet.
    pub(super) header: Vec<u8>,
    /// The security header, as it is authenticated.
    pub(super) authentic: Vec<u8>,
    /// The label, with the byte that separates it from the context.
    pub(super) label: Vec<u8>,
    /// The context of the derivation: epoch, rekey index, identity.
    pub(super) epoch: [u8; 2],
    pub(super) index: u32,
    pub(super) identity: IpAddr,
    /// The length of the derived key, as the derivation takes it.
    pub(super) length: Vec<u8>,
    /// The IV before the mask, and the first of its bytes that is masked.
    pub(super) iv: [u8; 12],
    pub(super) masked_from: usize,
    /// The first encrypted byte, counted from the security header.
    pub(super) offset: usize,
}

fn bytes(digits: &str) -> Vec<u8> {
    let pair =
        |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    (0..digits.len()).step_by(2).map(pair).collect()
}

impl Recipe {
    /// Returns the right inputs for a packet that starts with its security header.
    pub(super) fn right(domain: &SecureDomain, outer: Outer, packet: &[u8], leaving: bool) -> Option<Self> {
        let long = packet.first()? & 4 != 0;
        let header = packet.get(..if long { 16 } else { 12 })?.to_vec();
        let (front, tsc) = header.split_at(header.len() - 8);
        let mut iv = [0; 12];
        let source = match (domain.ssi && long, outer.src) {
            (true, _) => front.get(4..8)?.to_vec(),
            (false, IpAddr::V4(address)) => address.octets().to_vec(),
            (false, IpAddr::V6(_)) => [&[0], front.get(1..4)?].concat(),
        };
        iv[..4].copy_from_slice(&source);
        iv[4..].copy_from_slice(tsc);
        let counter = tsc[2..].iter().fold(0u64, |counter, byte| counter << 8 | u64::from(*byte));
        let index = (counter & domain.rekey_mask) >> domain.rekey_shift;
        let address = match domain.mode {
            KeyMode::Server if leaving => outer.dst,
            _ => outer.src,
        };
        let short = outer.src.is_ipv4() || domain.ipv6_ssi_context == SsiContext::Ssi;
        let identity = match domain.ssi && long && short {
            true => IpAddr::V4([iv[0], iv[1], iv[2], iv[3]].into()),
            false => address,
        };
        let label = match domain.mode {
            KeyMode::Cluster => b"U1\0".to_vec(),
            KeyMode::Server => b"U2\0".to_vec(),
            KeyMode::Direct | KeyMode::Client => Vec::new(),
        };
        let offset = usize::from(domain.confidentiality_offset.unwrap_or(0)).max(header.len());
        Some(Recipe {
            domain: domain.clone(),
            leaving,
            outer,
            epoch: [tsc[0], tsc[1]],
            authentic: header.clone(),
            header,
            label,
            index: if domain.mode == KeyMode::Cluster { index as u32 } else { 0 },
            identity,
            length: vec![1, 0x60],
            iv,
            masked_from: 0,
            offset,
        })
    }

    /// Returns the secret of the packet's association number.
    fn secret(&self) -> Option<Vec<u8>> {
        let name = if self.header.first()? & 1 == 0 { "0" } else { "1" };
        self.domain.keys.get(name)?.iter().next().map(|secret| bytes(&secret.0))
    }

    /// Returns the key and the IV.
    fn key(&self) -> Option<([u8; 32], [u8; 12])> {
        let secret = self.secret()?;
        let derived = match self.label.is_empty() {
            true => [secret, vec![0; 12]].concat(),
            false => self.derive(secret.get(..32)?),
        };
        let (key, mask) = (derived.first_chunk::<32>()?, derived.get(32..44)?);
        let mut iv = self.iv;
        iv.iter_mut().zip(mask).skip(self.masked_from).for_each(|(byte, mask)| *byte ^= mask);
        Some((*key, iv))
    }

    fn derive(&self, secret: &[u8]) -> Vec<u8> {
        let mut context = Vec::new();
        if self.identity.is_ipv6() {
            context.extend([0; 4]);
        }
        context.extend(self.epoch);
        context.extend(self.index.to_be_bytes());
        match self.identity {
            IpAddr::V4(address) => context.extend(address.octets()),
            IpAddr::V6(address) => context.extend(address.octets()),
        }
        let block = |number: u8| {
            let mut mac = <Cmac<aes::Aes256> as cmac::KeyInit>::new_from_slice(secret).ok()?;
            mac.update(&[&[number], &self.label[..], &context, &self.length].concat());
            Some(mac.finalize().into_bytes().to_vec())
        };
        (1..=3).filter_map(block).flatten().collect()
    }

    fn authenticated(&self, packet: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        for address in [self.outer.src, self.outer.dst] {
            match address {
                IpAddr::V4(address) => all.extend(address.octets()),
                IpAddr::V6(address) => all.extend(address.octets()),
            }
        }
        match self.outer.layer {
            OuterLayer::Native { header } => all.extend(header),
            OuterLayer::Udp { src_port, dst_port, length } => {
                [src_port, dst_port, length, 0].iter().for_each(|field| all.extend(field.to_be_bytes()));
            }
        }
        all.extend(&self.authentic);
        all.extend(packet.get(self.header.len()..self.offset.min(packet.len())).unwrap_or(&[]));
        all
    }

    /// Encrypts or decrypts the body in place, which is the same, and returns the ICV of the result.
    fn crypt(&self, packet: &mut [u8]) -> Option<[u8; ICV]> {
        let (key, iv) = self.key()?;
        let aad = self.authenticated(packet);
        let start = self.offset.min(packet.len());
        let cipher = Aes256Gcm::new(&key.into());
        cipher
            .encrypt_inout_detached(&Nonce::from(iv), &aad, (&mut packet[start..]).into())
            .ok()
            .map(Into::into)
    }

    /// Seals the bytes before the ICV, which are in the clear, and writes the ICV.
    pub(super) fn seal(&self, packet: &mut [u8]) -> Option<()> {
        let (body, icv) = packet.split_last_chunk_mut::<ICV>()?;
        body.get_mut(..self.header.len())?.copy_from_slice(&self.header);
        *icv = self.crypt(body)?;
        Some(())
    }

    /// Opens a packet in place. Returns `None`, and the packet as it was, if its ICV is wrong.
    pub(super) fn open(&self, packet: &mut [u8]) -> Option<()> {
        let (key, iv) = self.key()?;
        let (body, icv) = packet.split_last_chunk_mut::<ICV>()?;
        let aad = self.authenticated(body);
        let start = self.offset.min(body.len());
        let cipher = Aes256Gcm::new(&key.into());
        let tag = Tag::from(*icv);
        cipher.decrypt_inout_detached(&Nonce::from(iv), &aad, (&mut body[start..]).into(), &tag).ok()
    }

    /// Decrypts a packet in place whatever its ICV is, and returns the right ICV.
    pub(super) fn decrypt(&self, packet: &mut [u8]) -> Option<[u8; ICV]> {
        let end = packet.len().checked_sub(ICV)?;
        self.crypt(&mut packet[..end])?;
        let mut again = packet[..end].to_vec();
        self.crypt(&mut again)
    }
}
