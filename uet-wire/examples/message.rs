//! Cuts a write into packets with a CRC and puts it together again: `cargo run -p uet-wire --example message`.

use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::{Ses, Std};
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, Start, TrailerKind, Version};

/// The payload of every packet but the last.
const PAYLOAD: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message = [0x5a; 10_000];
    let mut memory = [0; 10_000];
    // PSNs wrap.
    let first = Psn(0xffff_ffff);
    let options = Options::default().trailer(TrailerKind::Crc);

    let (mut psn, mut offset) = (first, 0);
    for payload in message.chunks(PAYLOAD) {
        // Packets carry SYN until the first answer, which tells the identifier of the peer.
        let request = Request::rud()
            .ar(true)
            .syn(true)
            .psn(psn)
            .clear_psn(first - 1)
            .spdcid(PdcId(0x4001))
            .start_psn(first)
            .done()?;

        // The first packet has header data in place of the payload's length and offset.
        let (som, eom) = (offset == 0, offset + payload.len() == message.len());
        let write = Std::build(Opcode::UET_WRITE)
            .head(|head| head.som(som).eom(eom))
            .message_id(1)
            .address(|address| address.job_id(101).pid_on_fep(2).resource_index(10))
            .memory_key(0xacce5);
        let write = match som {
            true => write,
            false => {
                write.payload_length(u16::try_from(payload.len())?).message_offset(u32::try_from(offset)?)
            }
        };
        let write = write.request_length(u32::try_from(message.len())?).done()?;

        let mut buffer = [0; 4200];
        let length = FrameBuilder::new(request)
            .ses(write)
            .payload(payload)
            .udp(0xbeef)
            .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
            .crc()
            .emit(&mut buffer)?;
        receive(&buffer[..length], &options, &mut memory)?;
        (psn, offset) = (psn + 1, offset + payload.len());
    }
    assert_eq!(memory, message);
    Ok(())
}

fn receive(bytes: &[u8], options: &Options, memory: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
    let packet = Packet::parse(Start::Ip, bytes, options)?;
    println!("{packet}");
    assert!(packet.crc_check().ok_or("no CRC")?.ok());
    assert_eq!(packet.validate(Version::default()).next(), None);

    let Some(Ses::Std(write)) = packet.uet.ses else { return Err("not a standard request".into()) };
    let start = usize::try_from(write.message_offset().unwrap_or(0))?;
    let end = start.checked_add(packet.uet.payload.len()).ok_or("the payload is outside the memory")?;
    memory
        .get_mut(start..end)
        .ok_or("the payload is outside the memory")?
        .copy_from_slice(packet.uet.payload);
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
