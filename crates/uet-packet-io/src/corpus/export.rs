//! Writes the corpus to files.

use super::{dictionary, packets};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;
use uet_wire::FrameBuilder;

/// Writes the dictionaries, each packet to its own file, and all packets to captures. Returns the number of packets.
pub fn export(directory: &Path) -> io::Result<usize> {
    for start in ["eth", "ip", "udp", "uet"] {
        fs::create_dir_all(directory.join(start))?;
    }
    fs::write(directory.join("uet.dict"), dictionary::packets())?;
    fs::write(directory.join("json.dict"), dictionary::json())?;
    let mut eth = Capture::new(&directory.join("eth.pcap"), DataLink::ETHERNET)?;
    let mut ip = Capture::new(&directory.join("ip.pcap"), DataLink::RAW)?;
    let mut uet = Capture::new(&directory.join("uet.pcap"), DataLink::ETHERNET)?;
    let mut count = 0;
    for (index, (start, bytes)) in packets().enumerate() {
        fs::write(directory.join(start).join(format!("{index:04}")), &bytes)?;
        match start {
            "eth" => eth.write(&bytes)?,
            "ip" => ip.write(&bytes)?,
            "uet" => uet.write(&framed(&bytes)?)?,
            _ => {}
        }
        count = index + 1;
    }
    Ok(count)
}

/// Wraps a packet that starts with UET in UDP, IPv4 and Ethernet.
fn framed(packet: &[u8]) -> io::Result<Vec<u8>> {
    let frame = FrameBuilder::opaque(packet).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]);
    let frame = frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

struct Capture {
    writer: PcapWriter<BufWriter<File>>,
    packets: u32,
}

impl Capture {
    fn new(path: &Path, datalink: DataLink) -> io::Result<Self> {
        let header = PcapHeader { datalink, ..PcapHeader::default() };
        let file = BufWriter::new(File::create(path)?);
        let writer = PcapWriter::with_header(file, header).map_err(io::Error::other)?;
        Ok(Capture { writer, packets: 0 })
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<()> {
        // Each packet gets its own time, for tools that sort by time.
        let time = Duration::from_micros(self.packets.into());
        self.packets += 1;
        let packet = PcapPacket::new(time, packet.len() as u32, packet);
        self.writer.write_packet(&packet).map(|_| ()).map_err(io::Error::other)
    }
}
