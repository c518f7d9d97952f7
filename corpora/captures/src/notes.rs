//! Comments on packets. Numbers in them are checked by the text that selects the packet.

use crate::Notes;

pub(crate) const WRITE: Notes = &[
    (
        "PSN 11000 SYN 0x1010 > ?",
        "The first packet of the message (SOM). SYN opens a context: the initiator tells its PDCID 0x1010, and does not know \
         the PDCID of the target.",
    ),
    (
        "12288 of 16384 B [EOM]",
        "The last packet of the message (EOM). It still has SYN, because no ACK has arrived.",
    ),
    ("CACK 11000 0x1020 > 0x1010", "The first ACK tells the PDCID of the target, 0x1020."),
    (
        "CACK 11003",
        "The response to the last packet carries the length of the message. The write is complete.",
    ),
];

pub(crate) const LOSS: Notes = &[
    ("PSN 21003 SYN", "The network loses this packet after the capture."),
    ("PSN 21011 SYN", "Lost, too. No later packet can show this gap."),
    ("CACK 21002 0x2020 > 0x2010 SACK 21004 ", "The gap: CACK stays at 21002, and the bitmap reports 21004."),
    (
        "SACK 21004-21006",
        "Three packets above the gap have arrived. The initiator now treats 21003 as lost: fast_loss_packets is 3.",
    ),
    (
        "PSN 21003 0x2010 > 0x2020 [RETX]",
        "The retransmission has the PSN and the payload of packet 4. It has the PDCID of the target instead of SYN.",
    ),
    ("CACK 21010", "The retransmission fills the gap, and CACK jumps to 21010."),
    ("PSN 21011 0x2010 > 0x2020 [RETX]", "The timer of 21011 expired after RTO_Init_Time, 100 us."),
    (
        "CACK 21011",
        "The write is complete. The loss of the last packet cost 100 us, and that of 21003 cost 6 us.",
    ),
];

pub(crate) const TRIMMING: Notes = &[
    (
        "PSN 31002 SYN",
        "A switch in the fabric trimmed this packet to 80 bytes behind the IP header. Its DSCP is 12, and it passes the \
         packets in the queue.",
    ),
    ("NACK TRIMMED PSN 31002", "The target reports the trim. Without it, only a gap would show the loss."),
    ("PSN 31005 SYN", "Trimmed by the last switch before the target: DSCP 14."),
    ("NACK TRIMMED_LASTHOP PSN 31005", "The code tells the initiator that the queue was at the target."),
    (
        "PSN 31002 0x3010 > 0x3020 [RETX]",
        "The retransmission arrives 4.2 us after the NACK. No timer was involved.",
    ),
    ("CACK 31007", "The write is complete."),
];

pub(crate) const INCAST: Notes = &[
    (
        "PSN 41000 SYN",
        "Four sources start at once, each at the rate of the target's link. Three of four packets must wait in the switch.",
    ),
    ("PSN 43009 SYN", "The queue is longer than 120 KB: from here on, the switch trims packets."),
    ("NACK TRIMMED_LASTHOP PSN 43009", "The NACK makes the source reduce its window and retransmit."),
    (
        "[M] UET_DEFAULT_RESPONSE",
        "M: the acknowledged packet arrived with an ECN mark, because its queue was longer than 40 KB.",
    ),
    ("PSN 44012 0x4040 > 0x4093 [RETX]", "A retransmission meets the full queue and is trimmed again."),
    ("PSN 41015 0x4010", "The last packet of 10.4.0.1, of which no packet was trimmed."),
    ("PSN 44015 0x4040 > 0x4093 [RETX]", "The last packet of all. The link to the target was never idle."),
];

pub(crate) const CLOSE: Notes = &[
    ("PSN 51000 SYN", "The first context. Its initiator is 10.5.0.1."),
    (
        "CLOSE_REQUEST",
        "The target was idle for 50 us, its idle_time. A target cannot close a context by itself, so it asks the initiator.",
    ),
    ("0x5010 > 0x5020 SACK 51000", "CLOSE_REQUEST takes a PSN of the return direction, and gets an ACK."),
    ("CLOSE_COMMAND PSN 51001", "All requests of the initiator are acknowledged, so it may close."),
    ("CACK 51001", "The target acknowledges the close and frees the context."),
    ("PSN 52000 SYN", "The second context. Its initiator is 10.5.0.2."),
    ("CLOSE_COMMAND PSN 52001", "An idle initiator closes without a request."),
];

pub(crate) const RENDEZVOUS: Notes = &[
    (
        "UET_RENDEZVOUS_TSEND",
        "The send carries the first 4096 bytes (the eager part), the match bits, and the address of the rest.",
    ),
    ("CACK 61000", "The request has arrived. The message has not: its rest follows."),
    (
        "UET_READ 12288 B",
        "The send matched a receive. The target opens a context of its own and reads the rest.",
    ),
    (
        "UET_RESPONSE_W_DATA",
        "Read data that do not fit an ACK travel as requests of the return direction, with PSNs and ACKs.",
    ),
    ("CACK 62002 0x6021", "The target has all data, and the sender may use its memory again."),
];

pub(crate) const SECURED: Notes = &[
    (
        "counter 0",
        "Everybody can read the security header: domain, association number, epoch and counter. The rest is encrypted. The \
         key is in this capture.",
    ),
    ("counter 1", "Each packet takes the next counter, also a retransmission."),
    ("counter 0", "The target counts by itself. In cluster mode, each sender derives a key of its own."),
];
