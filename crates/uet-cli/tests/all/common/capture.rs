//! Builds captures byte by byte.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// The byte order of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Big,
    Little,
}

impl Order {
    pub(crate) fn two(self, value: u16) -> [u8; 2] {
        match self {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        }
    }

    pub(crate) fn four(self, value: u32) -> [u8; 4] {
        match self {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        }
    }
}

/// Builds a pcap file. A packet has its seconds, its fraction, its length on the wire, and its bytes.
pub(crate) fn pcap(order: Order, nano: bool, link: u32, packets: &[(u32, u32, usize, &[u8])]) -> Vec<u8> {
    let four = |value| order.four(value);
    let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = four(magic).to_vec();
    file.extend([order.two(2), order.two(4)].concat());
    file.extend([four(0), four(0), four(262_144), four(link)].concat());
    for (seconds, fraction, wire, bytes) in packets {
        file.extend([four(*seconds), four(*fraction), four(bytes.len() as u32), four(*wire as u32)].concat());
        file.extend_from_slice(bytes);
    }
    file
}

/// Builds a pcap file of Ethernet frames, a microsecond apart.
pub(crate) fn simple(frames: &[Vec<u8>]) -> Vec<u8> {
    let packets: Vec<_> =
        frames.iter().zip(0..).map(|(frame, at)| (1_767_322_985, at, frame.len(), &frame[..])).collect();
    pcap(Order::Little, false, 1, &packets)
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Builds a block of a pcapng file.
pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let body = padded(body);
    let length = order.four(12 + body.len() as u32);
    [&order.four(kind)[..], &length, &body, &length].concat()
}

/// Builds a section header block.
pub(crate) fn section(order: Order) -> Vec<u8> {
    block(
        order,
        0x0a0d_0d0a,
        &[&order.four(0x1a2b_3c4d)[..], &order.two(1), &order.two(0), &[0xff; 8]].concat(),
    )
}

/// Builds an interface description block.
pub(crate) fn interface(order: Order, link: u16, tsresol: Option<u8>, tsoffset: Option<i64>) -> Vec<u8> {
    let mut body = [&order.two(link)[..], &order.two(0), &order.four(0)].concat();
    if let Some(resolution) = tsresol {
        body.extend([&order.two(9)[..], &order.two(1), &[resolution, 0, 0, 0]].concat());
    }
    if let Some(offset) = tsoffset {
        let offset = match order {
            Order::Big => offset.to_be_bytes(),
            Order::Little => offset.to_le_bytes(),
        };
        body.extend([&order.two(14)[..], &order.two(8), &offset].concat());
    }
    body.extend([0; 4]);
    block(order, 1, &body)
}

/// Builds an enhanced packet block.
pub(crate) fn enhanced(order: Order, interface: u32, ticks: u64, wire: usize, bytes: &[u8]) -> Vec<u8> {
    let four = |value| order.four(value);
    let head = [
        four(interface),
        four((ticks >> 32) as u32),
        four(ticks as u32),
        four(bytes.len() as u32),
        four(wire as u32),
    ];
    block(order, 6, &[&head.concat()[..], &padded(bytes)].concat())
}

/// Compresses a file.
pub(crate) fn gzip(file: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(file).unwrap();
    encoder.finish().unwrap()
}
