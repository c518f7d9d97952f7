//! Writes the seeds of a target, made from the vectors: `cargo run -p uet-fuzz --example seeds TARGET DIRECTORY`.
//! `fuzz/run minimize` keeps those that add coverage.

mod services;

use flate2::Compression;
use flate2::write::GzEncoder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use uet_fuzz::{Input, Kind, target};
use uet_packet_io::hex::Hex;
use uet_packet_io::json::Decoded;
use uet_vectors::families;
use uet_wire::Version;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, directory] = &arguments[..] else { return Err("usage: seeds TARGET DIRECTORY".into()) };
    let target = target(name).ok_or("no such target")?;
    std::fs::create_dir_all(directory)?;
    let seeds = match target.kind {
        Kind::Packet => packets(),
        Kind::Json => lines()?,
        Kind::Capture => captures()?,
        Kind::Text => texts(),
        Kind::Keys => key_files()?,
        Kind::Settings => settings(),
        Kind::Control => services::control(if target.name == "control_client" { &[0, 7] } else { &[3] }),
        Kind::Sequence => services::sequences()?,
        // Arbitrary bytes work as well: the fuzzer explores their meaning.
        Kind::Values => packets().into_iter().step_by(40).collect(),
    };
    for (index, seed) in seeds.iter().enumerate() {
        std::fs::write(Path::new(directory).join(format!("vector-{index:04}")), seed)?;
    }
    Ok(())
}

/// Returns every packet of the vectors; long payloads are shortened, since they add no coverage.
fn packets() -> Vec<Vec<u8>> {
    let families = families::all();
    let cases = families.iter().flat_map(|family| &family.vectors).flat_map(|vector| vector.cases());
    let inputs = cases.filter(|case| case.bytes.len() <= 512).map(|case| {
        let wire = case.wire.unwrap_or(case.bytes.len());
        Input { start: case.start, options: case.options, wire, bytes: &case.bytes }.join()
    });
    inputs.collect()
}

/// Returns all names.
fn texts() -> Vec<Vec<u8>> {
    let registries = uet_wire::registry::ALL.iter().flat_map(|registry| registry.entries);
    let mut names: Vec<String> = registries.map(|entry| entry.name.to_owned()).collect();
    names.extend(uet_wire::catalogue::ALL.iter().map(|requirement| requirement.id.to_owned()));
    for layout in uet_wire::layout::ALL {
        names.extend(layout.places().map(|place| layout.key(&place).to_string()));
    }
    names.extend(Version::ALL.iter().map(|version| version.name().to_owned()));
    // Growing space for a figure.
    names.extend((0..400).step_by(7).map(|length| " ".repeat(length)));
    names.iter().enumerate().map(|(index, name)| [&[index as u8], name.as_bytes()].concat()).collect()
}

/// Returns impairments and connection matrices.
fn settings() -> Vec<Vec<u8>> {
    let impairments = [
        "drop 5%",
        "drop request 3..5",
        "duplicate every 3",
        "delay 20us ack every 4",
        "jitter 1.5ms nack",
        "reorder 3 3% control",
        "mark after 1ms before 2s",
        "trim 64 first 2 to 10.0.0.2",
        "trim-last-hop 24 packet from ::1",
        "corrupt retransmission 50%",
        "blackout 500ns request 3",
    ];
    let matrices = [
        "Nodes 4\nConnections 2\n0->3 start 0 size 2000000\n1->3 id 2 start 5000000 size 4096 prio 1\n",
        "# all kinds\nNodes 3\nConnections 3\nTriggers 3\nFailures 0\n0->1 id 1 start 0 size 5000 send_done_trigger 1\n\
         1->2 id 2 trigger 1 size 9000 recv_done_trigger 2\n2->0 msg 3 trigger 2 size 1 recv_done_trigger 3\n\
         trigger id 1 oneshot\ntrigger id 2 multishot\ntrigger id 3 barrier count 2\n",
    ];
    let of = |language: u8| move |text: &&str| [&[language], text.as_bytes()].concat();
    impairments.iter().map(of(0)).chain(matrices.iter().map(of(1))).collect()
}

/// Returns the packets as JSON, with and without their bytes.
fn lines() -> Result<Vec<Vec<u8>>> {
    let families = families::all();
    let cases = families.iter().flat_map(|family| &family.vectors).flat_map(|vector| vector.cases());
    let mut seeds = Vec::new();
    for (index, case) in cases.step_by(3).filter(|case| case.bytes.len() <= 256).enumerate() {
        let mut decoder = case.decoder();
        let decoded = case.decoded(&mut decoder);
        let decoded = Decoded::new(decoded.record, &case.options, index % 4 == 0);
        let mut line = Input { start: case.start, options: case.options, wire: 0, bytes: &[] }.join();
        decoded.write(&mut line);
        seeds.push(line);
    }
    Ok(seeds)
}

/// Returns a key file with all domains of the target `secured`, files with one each, and files with a mistake.
fn key_files() -> Result<Vec<Vec<u8>>> {
    let all = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/secured.toml"))?;
    let mut files: Vec<String> = all.split("[[domain]]").map(|one| format!("[[domain]]{one}")).collect();
    let wrong = [
        ("0 = ", "2 = "),
        ("mode", "modes"),
        ("sdi = ", "sdi = 0x1"),
        ("cluster", "ring"),
        ("= \"", "= \"0"),
    ];
    files.extend(wrong.map(|(right, wrong)| all.replace(right, wrong)));
    files.push(all);
    Ok(files.into_iter().map(String::into_bytes).collect())
}

/// Returns small captures of each kind and link type, texts, and compressed ones.
fn captures() -> Result<Vec<Vec<u8>>> {
    let frame: Vec<u8> = packets().into_iter().find(|seed| seed[0] & 7 == 0).ok_or("no frame")?.split_off(2);
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for (link, lead) in [
        (DataLink::ETHERNET, &[][..]),
        (DataLink::RAW, &[]),
        (DataLink::IPV4, &[]),
        (DataLink::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0]),
        (DataLink::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]),
        (DataLink::NULL, &[2, 0, 0, 0]),
    ] {
        let data = if link == DataLink::ETHERNET { frame.clone() } else { [lead, &frame[14..]].concat() };
        for endianness in [Endianness::Little, Endianness::Big] {
            for ts_resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
                let header =
                    PcapHeader { datalink: link, endianness, ts_resolution, ..PcapHeader::default() };
                let mut file = Vec::new();
                let mut writer = PcapWriter::with_header(&mut file, header)?;
                let length = data.len() as u32;
                writer.write_packet(&PcapPacket::new(Duration::from_millis(1_500), length, &data))?;
                writer.write_packet(&PcapPacket::new(Duration::from_millis(2_500), length, &data[..40]))?;
                seeds.push(file);
            }
            seeds.push(pcapng(link, endianness, &data)?);
        }
    }
    seeds.push(format!("# a frame\n{}\n\n0x38 00:ff-fe\n", Hex(&frame)).into_bytes());
    seeds.push(b"3800\nnot hexadecimal\n".to_vec());
    for plain in [seeds[0].clone(), seeds[4].clone(), b"3800\n".to_vec()] {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&plain)?;
        seeds.push(packed.finish()?);
    }
    Ok(seeds)
}

fn pcapng(link: DataLink, endianness: Endianness, data: &[u8]) -> Result<Vec<u8>> {
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::{
        InterfaceDescriptionBlock, InterfaceDescriptionOption as Say,
    };
    use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness)?;
    for options in [vec![Say::IfTsResol(9)], vec![Say::IfTsResol(0x8a), Say::IfTsOffset(1)], vec![]] {
        writer.write_pcapng_block(InterfaceDescriptionBlock { linktype: link, snaplen: 96, options })?;
    }
    for interface_id in 0..3 {
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_millis(1_500),
            original_len: data.len() as u32 + interface_id,
            data: data.into(),
            options: vec![],
        })?;
    }
    writer.write_pcapng_block(SimplePacketBlock { original_len: data.len() as u32, data: data.into() })?;
    Ok(writer.into_inner())
}
