use super::{ICV, Tss, TssError};
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use cmac::{Cmac, Mac};
use core::fmt;
use zeroize::Zeroizing;

/// The labels of the key derivation.
pub(super) const CLUSTER: [u8; 2] = *b"U1";
pub(super) const CLIENT_SERVER: [u8; 2] = *b"U2";

/// The length in bytes of a derived key with its IV mask.
const DERIVED: usize = 44;

/// The secret of a secure domain, or the derived key that a client holds. Its memory is cleared when it is dropped,
/// and `Debug` does not show it.
#[derive(Clone)]
pub struct DomainKey(Secret);

#[derive(Clone)]
enum Secret {
    Domain(Zeroizing<[u8; 32]>),
    Client(Zeroizing<[u8; DERIVED]>),
}

impl DomainKey {
    /// Takes the 32 bytes of a domain's key, or the 44 bytes of a client: its key and its IV mask.
    pub fn new(bytes: &[u8]) -> Result<Self, TssError> {
        if let Ok(key) = bytes.try_into() {
            return Ok(DomainKey(Secret::Domain(Zeroizing::new(key))));
        }
        let client = bytes.try_into().map_err(|_| TssError::KeyLength)?;
        Ok(DomainKey(Secret::Client(Zeroizing::new(client))))
    }

    /// Returns true for the derived key of a client.
    pub fn is_client(&self) -> bool {
        matches!(self.0, Secret::Client(_))
    }

    /// Returns the fingerprint of the key. The fingerprint of a client's key covers no IV mask.
    pub fn fingerprint(&self) -> KeyFingerprint {
        match &self.0 {
            Secret::Domain(key) => KeyFingerprint::of(key),
            Secret::Client(bytes) => KeyFingerprint::of(bytes.first_chunk().unwrap_or(&[0; 32])),
        }
    }
}

impl fmt::Debug for DomainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DomainKey(secret)")
    }
}

/// Identifies an AES-256 key without revealing it: equal keys have equal fingerprints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyFingerprint([u8; 16]);

impl KeyFingerprint {
    /// The CMAC of a label that no key derivation has.
    fn of(key: &[u8; 32]) -> Self {
        let mut mac = Cmac::<aes::Aes256>::new(key.into());
        mac.update(b"fingerprint");
        KeyFingerprint(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFingerprint")
    }
}

/// The AES-GCM inputs that must be unique: no two packets may have one key and one IV.
/// [`Domain::key_iv`](super::Domain::key_iv) returns those of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyIv {
    /// The key after its derivation.
    pub key: KeyFingerprint,
    /// The IV after its mask.
    pub iv: [u8; 12],
}

/// The sender in the context of the key derivation.
pub(super) enum Identity {
    /// An IPv4 address or a source identifier.
    Short(u32),
    /// An IPv6 address.
    Long(u128),
}

/// Everything but the secret that determines the key of a packet, for a cache of derived keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    sdi: u32,
    an: bool,
    /// The label; `None` if the key of the domain is used as it is.
    label: Option<[u8; 2]>,
    context: [u8; 26],
    context_length: u8,
}

impl KeyId {
    pub(super) fn underived(tss: &Tss<'_>) -> Self {
        let head = tss.head();
        KeyId { sdi: head.sdi(), an: head.an(), label: None, context: [0; 26], context_length: 0 }
    }

    pub(super) fn derived(tss: &Tss<'_>, label: [u8; 2], rekey_index: u32, identity: Identity) -> Self {
        let mut context = [0; 26];
        let mut at = context.iter_mut();
        let mut put = |bytes: &[u8]| at.by_ref().zip(bytes).for_each(|(to, from)| *to = *from);
        if let Identity::Long(_) = identity {
            put(&[0; 4]);
        }
        put(&tss.tsc().epoch().to_be_bytes());
        put(&rekey_index.to_be_bytes());
        let context_length = match identity {
            Identity::Short(identity) => {
                put(&identity.to_be_bytes());
                10
            }
            Identity::Long(identity) => {
                put(&identity.to_be_bytes());
                26
            }
        };
        KeyId { label: Some(label), context, context_length, ..KeyId::underived(tss) }
    }

    /// Returns the context of the key derivation; it is empty if the key of the domain is used as it is.
    pub fn context(&self) -> &[u8] {
        self.context.get(..self.context_length.into()).unwrap_or(&[])
    }

    /// Derives the key of the packet.
    ///
    /// # Errors
    ///
    /// Fails if a client's key is to be derived from, because it already is a derived key.
    pub fn derive(&self, key: &DomainKey) -> Result<PacketKey, TssError> {
        match (&key.0, self.label) {
            (Secret::Domain(key), None) => Ok(PacketKey::new(key, None)),
            (Secret::Client(key), None) => PacketKey::split(&**key),
            (Secret::Domain(key), Some(label)) => PacketKey::split(&*self.kdf(key, label)),
            (Secret::Client(_), Some(_)) => Err(TssError::KeyKind),
        }
    }

    /// Derives the bytes that a client of the domain holds: its key and its IV mask, for one epoch.
    pub fn client_bytes(&self, key: &DomainKey) -> Result<Zeroizing<[u8; DERIVED]>, TssError> {
        match (&key.0, self.label) {
            (Secret::Domain(key), Some(label)) => {
                let derived = self.kdf(key, label);
                let bytes = derived.first_chunk().copied().ok_or(TssError::KeyLength)?;
                Ok(Zeroizing::new(bytes))
            }
            _ => Err(TssError::KeyKind),
        }
    }

    /// NIST SP 800-108 in counter mode, with CMAC and a length of two bytes (section 3.7.8.4). Each block of 16 bytes
    /// is the CMAC of its number, the label, a zero, the context and the length in bits.
    fn kdf(&self, key: &[u8; 32], label: [u8; 2]) -> Zeroizing<[u8; 48]> {
        let mut derived = Zeroizing::new([0; 48]);
        for (number, block) in (1..).zip(derived.chunks_exact_mut(16)) {
            let mut mac = Cmac::<aes::Aes256>::new(key.into());
            mac.update(&[number]);
            mac.update(&label);
            mac.update(&[0]);
            mac.update(self.context());
            mac.update(&(8 * DERIVED as u16).to_be_bytes());
            block.copy_from_slice(&mac.finalize().into_bytes());
        }
        derived
    }
}

/// The key of one packet, or of several with the same [`KeyId`], ready for use. Its memory is cleared when it is
/// dropped.
#[derive(Clone)]
pub struct PacketKey {
    cipher: Aes256Gcm,
    fingerprint: KeyFingerprint,
    /// Combined with every IV.
    mask: Zeroizing<[u8; 12]>,
}

impl PacketKey {
    fn new(key: &[u8; 32], mask: Option<&[u8; 12]>) -> Self {
        PacketKey {
            cipher: Aes256Gcm::new(key.into()),
            fingerprint: KeyFingerprint::of(key),
            mask: Zeroizing::new(mask.copied().unwrap_or_default()),
        }
    }

    /// Takes the key and the mask off the start of `bytes`.
    fn split(bytes: &[u8]) -> Result<Self, TssError> {
        let parts = bytes.split_first_chunk::<32>();
        let parts = parts.and_then(|(key, rest)| Some((key, rest.first_chunk::<12>()?)));
        parts.map(|(key, mask)| PacketKey::new(key, Some(mask))).ok_or(TssError::KeyLength)
    }

    pub(super) fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    pub(super) fn masked(&self, mut iv: [u8; 12]) -> [u8; 12] {
        iv.iter_mut().zip(self.mask.iter()).for_each(|(byte, mask)| *byte ^= mask);
        iv
    }

    pub(super) fn seal(&self, iv: &[u8; 12], aad: &[u8], body: &mut [u8]) -> Result<[u8; ICV], TssError> {
        is_short(body)?;
        let sealed = self.cipher.encrypt_inout_detached(&Nonce::from(*iv), aad, body.into());
        sealed.map(Into::into).map_err(|_| TssError::TooLong)
    }

    /// The tag is compared in constant time, before anything is decrypted.
    pub(super) fn open(
        &self,
        iv: &[u8; 12],
        aad: &[u8],
        body: &mut [u8],
        icv: &[u8; ICV],
    ) -> Result<(), TssError> {
        is_short(body)?;
        let opened =
            self.cipher.decrypt_inout_detached(&Nonce::from(*iv), aad, body.into(), &Tag::from(*icv));
        opened.map_err(|_| TssError::NotAuthentic)
    }
}

/// AES-GCM stops the program if a packet exceeds its limit of 64 GiB. No IP packet comes near it.
fn is_short(body: &[u8]) -> Result<(), TssError> {
    if body.len() > usize::from(u16::MAX) { Err(TssError::TooLong) } else { Ok(()) }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketKey(secret)")
    }
}

/// A cache of `N` derived keys. A new key replaces the one in its place, so packets that nobody has authenticated
/// cannot make it grow.
///
/// ```
/// use uet_wire::tss::KeyCache;
///
/// let cache = KeyCache::<64>::new();
/// assert!(cache.is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct KeyCache<const N: usize> {
    entries: [Option<(KeyId, PacketKey)>; N],
}

impl<const N: usize> KeyCache<N> {
    /// Returns an empty cache.
    pub const fn new() -> Self {
        KeyCache { entries: [const { None }; N] }
    }

    /// Returns the key with this id.
    pub fn get(&self, id: &KeyId) -> Option<&PacketKey> {
        let (stored, key) = self.entries.get(Self::place(id))?.as_ref()?;
        (stored == id).then_some(key)
    }

    /// Stores a key. Call it after the key has opened a packet.
    pub fn put(&mut self, id: KeyId, key: PacketKey) {
        if let Some(entry) = self.entries.get_mut(Self::place(&id)) {
            *entry = Some((id, key));
        }
    }

    /// Forgets all keys. Call it when a key of a domain is replaced.
    pub fn clear(&mut self) {
        self.entries.iter_mut().for_each(|entry| *entry = None);
    }

    /// Returns true if the cache holds no key.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(Option::is_none)
    }

    /// Returns the place of an id, by a hash (FNV-1a).
    fn place(id: &KeyId) -> usize {
        let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(id.sdi << 1 | u32::from(id.an));
        let hash = id
            .context()
            .iter()
            .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        // The low bits of the product depend on few bits of the input.
        ((hash ^ hash >> 32) as usize).checked_rem(N).unwrap_or(0)
    }
}

impl<const N: usize> Default for KeyCache<N> {
    fn default() -> Self {
        Self::new()
    }
}
