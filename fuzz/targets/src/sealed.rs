//! Secure domains, headers and payloads from entropy: sealed, opened, and changed by one bit.

use arbitrary::{Arbitrary, Unstructured};
use core::net::IpAddr;
use uet_wire::tss::{
    Direction, Domain, DomainKey, ICV, Ipv6SsiContext, Mode, Outer, OuterLayer, PacketKey, Tss, TssError,
    TssLong, TssShort,
};

#[derive(Arbitrary)]
struct Scene {
    settings: Settings,
    outside: Surroundings,
    header: Header,
    key: [u8; 32],
    mask: [u8; 12],
    body: Vec<u8>,
    flip: u32,
}

#[derive(Arbitrary)]
struct Settings {
    mode: u8,
    ssi: bool,
    rekey_mask: u64,
    rekey_shift: u8,
    confidentiality_offset: Option<u8>,
    short_context: bool,
    sending: bool,
}

#[derive(Arbitrary)]
struct Surroundings {
    v6: bool,
    udp: bool,
    addresses: [[u8; 16]; 2],
    layer: [u8; 6],
}

#[derive(Arbitrary)]
struct Header {
    an: bool,
    reserved: bool,
    sdi: u32,
    ssi: u32,
    epoch: u16,
    counter: u64,
}

pub(super) fn run(data: &[u8]) {
    // Missing bytes become zeros, not an error.
    let Ok(scene) = Unstructured::new(data).arbitrary::<Scene>() else { return };
    let domain = scene.domain();
    let direction = if scene.settings.sending { Direction::Outgoing } else { Direction::Incoming };
    let outer = scene.outside.outer();
    let mut packet = scene.header.bytes(&domain);
    let header = packet.len();
    packet.extend_from_slice(&scene.body);
    packet.extend([0; ICV]);

    let key = |outer: &Outer, packet: &[u8]| -> Result<PacketKey, TssError> {
        let (tss, _) = Tss::parse(packet).map_err(|_| TssError::TooShort)?;
        domain.key_id(outer, &tss, direction)?.derive(&scene.secret())
    };
    let unsafe_prefix = scene.outside.v6 && !domain.ssi && domain.mode != Mode::Cluster;
    let right = match key(&outer, &packet) {
        Ok(key) => key,
        Err(error) => return assert_eq!((error, unsafe_prefix), (TssError::NeedsSsi, true)),
    };
    assert!(!unsafe_prefix);

    let mut sealed = packet.clone();
    domain.seal(&right, &outer, &mut sealed).expect("it is not too long");
    let clear = usize::from(domain.confidentiality_offset.unwrap_or(0)).clamp(header, packet.len() - ICV);
    assert_eq!(sealed[..clear], packet[..clear], "the part in the clear");
    let mut opened = sealed.clone();
    domain.open(&right, &outer, &mut opened).expect("it is authentic");
    let end = packet.len() - ICV;
    assert_eq!(opened[..end], packet[..end]);
    assert_eq!(opened[end..], sealed[end..], "the ICV stays");
    domain.seal(&right, &outer, &mut opened).expect("it is not too long");
    assert_eq!(opened, sealed, "the ICV is the same again");

    // One authenticated bit, outside or inside.
    let (mut outer, mut changed) = (outer, sealed);
    let inside = 8 * changed.len();
    match (scene.flip as usize) % (inside + 8 * 40) {
        bit if bit < inside => changed[bit / 8] ^= 1 << (bit % 8),
        bit => flip(&mut outer, bit - inside),
    }
    let before = changed.clone();
    assert!(domain.open(&right, &outer, &mut changed).is_err(), "a changed bit, with the key of the packet");
    if let Ok(key) = key(&outer, &changed) {
        assert!(domain.open(&key, &outer, &mut changed).is_err(), "a changed bit, with its own key");
    }
    assert_eq!(changed, before, "nothing is decrypted");
}

impl Scene {
    fn domain(&self) -> Domain {
        let Settings { rekey_mask, rekey_shift, confidentiality_offset, .. } = self.settings;
        let mode =
            [Mode::Direct, Mode::Cluster, Mode::Client, Mode::Server][usize::from(self.settings.mode & 3)];
        let plain = Domain { ssi: self.settings.ssi, ..Domain::new(self.header.sdi & 0xff_ffff, mode) };
        let context =
            if self.settings.short_context { Ipv6SsiContext::Ssi } else { Ipv6SsiContext::Address };
        let plain = Domain { ipv6_ssi_context: context, ..plain };
        let rekeyed = Domain { rekey_mask: rekey_mask & 0xffff_ffff_ffff, rekey_shift, ..plain };
        let rekeyed = if rekeyed.check().is_ok() { rekeyed } else { plain };
        let offset = Domain { confidentiality_offset, ..rekeyed };
        if offset.check().is_ok() { offset } else { rekeyed }
    }

    /// The key of the domain, or that of a client.
    fn secret(&self) -> DomainKey {
        let client = [&self.key[..], &self.mask].concat();
        let bytes = if self.settings.mode & 3 == 2 { &client } else { &self.key[..] };
        DomainKey::new(bytes).expect("the length is right")
    }
}

impl Surroundings {
    fn outer(&self) -> Outer {
        let [src, dst] = self.addresses.map(|bytes| match self.v6 {
            true => IpAddr::from(bytes),
            false => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
        });
        let [a, b, c, d, e, f] = self.layer;
        let layer = match self.udp {
            true => OuterLayer::Udp {
                src_port: u16::from_be_bytes([a, b]),
                dst_port: u16::from_be_bytes([c, d]),
                length: u16::from_be_bytes([e, f]),
            },
            false => OuterLayer::Native { header: [a, b, c, d] },
        };
        Outer { src, dst, layer }
    }
}

impl Header {
    fn bytes(&self, domain: &Domain) -> Vec<u8> {
        let (epoch, counter) = (self.epoch, self.counter & 0xffff_ffff_ffff);
        let mut bytes = if domain.ssi {
            let header = TssLong::build()
                .head(|head| head.an(self.an).sdi(domain.sdi))
                .ssi(self.ssi)
                .tsc(|tsc| tsc.epoch(epoch).counter(counter));
            header.done().expect("the values fit").bytes().to_vec()
        } else {
            let header = TssShort::build()
                .head(|head| head.an(self.an).sdi(domain.sdi))
                .tsc(|tsc| tsc.epoch(epoch).counter(counter));
            header.done().expect("the values fit").bytes().to_vec()
        };
        // A receiver ignores the reserved bit, but it is authenticated.
        bytes[0] |= u8::from(self.reserved) << 1;
        bytes
    }
}

/// Flips a bit of an address, or of the header after IP.
fn flip(outer: &mut Outer, bit: usize) {
    let change = |address: IpAddr, bit: usize| match address {
        IpAddr::V4(address) => IpAddr::from((address.to_bits() ^ 1 << (bit % 32)).to_be_bytes()),
        IpAddr::V6(address) => IpAddr::from((address.to_bits() ^ 1 << (bit % 128)).to_be_bytes()),
    };
    match bit / 128 {
        0 => outer.src = change(outer.src, bit),
        1 => outer.dst = change(outer.dst, bit),
        _ => match &mut outer.layer {
            OuterLayer::Native { header } => header[bit / 8 % 4] ^= 1 << (bit % 8),
            OuterLayer::Udp { src_port, dst_port, length } => {
                *[src_port, dst_port, length][bit / 16 % 3] ^= 1 << (bit % 16);
            }
        },
    }
}
