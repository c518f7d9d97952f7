//! The reasons for requirements: the harm that a violation does to a correct peer.

use super::Requirement;

impl Requirement {
    /// Returns the reason: the harm that a violation does to a correct peer.
    ///
    /// The reason of the requirement itself, or else that of its topic.
    pub fn rationale(&self) -> &'static str {
        let topic = self.id.rsplit_once('-').map_or(self.id, |(topic, _)| topic);
        let of = |name: &str| REASONS.iter().find(|(key, _)| *key == name).map(|(_, reason)| *reason);
        of(self.id).or_else(|| of(topic)).unwrap_or_default()
    }
}

/// A topic or a requirement, and its reason.
const REASONS: &[(&str, &str)] = &[
    ("WIRE-RSVD", "A later version may give these bits a meaning, which old packets must not claim."),
    ("WIRE-TYPE", "A peer cannot delimit a packet of an unknown type, so it drops the packet."),
    (
        "WIRE-NEXT",
        "The peer reads the following bytes by this number, and a wrong one turns data into headers.",
    ),
    (
        "WIRE-NEXT-003",
        "A datagram has no context, so a target knows the request from a standard header alone.",
    ),
    ("WIRE-LEN", "Surplus or oversized data fits no buffer of the peer and has no defined meaning."),
    ("WIRE-PDCID", "A peer addresses its answers with this number, and 0 reaches no context."),
    ("WIRE-SYN", "A packet that opens a context by mistake occupies resources that no one closes."),
    (
        "WIRE-CLEAR",
        "A clear of an unanswered PSN lets the target discard a response that the source still needs.",
    ),
    ("WIRE-ACK", "A receiver cannot act on a request that no version defines."),
    ("WIRE-CC", "A source that cannot read the congestion state loses its feedback."),
    (
        "WIRE-NACK",
        "The source chooses its reaction by this code and these identifiers, and may retransmit forever.",
    ),
    ("WIRE-NACK-003", "A PDCID in this NACK would name a context that does not exist."),
    (
        "WIRE-CTL",
        "The peer reacts by type, flags and payload, and ignores a control packet that it cannot read.",
    ),
    ("WIRE-CTL-002", "The peer would wait for an ACK that no target sends."),
    ("WIRE-CTL-003", "Without an ACK, the closing side never learns that the close arrived."),
    ("WIRE-SES", "The target locates and delimits the message by these fields, and misreads its data."),
    ("WIRE-SES-003", "These headers have no message_offset, so the target cannot place a second packet."),
    ("WIRE-SES-011", "An initiator that cannot read the code cannot report the result of its operation."),
    ("WIRE-AMO", "A target that misreads an atomic changes memory in a way that nobody requested."),
    (
        "WIRE-AMO-004",
        "A target executes RUDI requests again on each arrival, and would apply the atomic twice.",
    ),
    ("WIRE-IP", "Fragments and damaged headers do not reach the transport of the peer as packets."),
    ("WIRE-UDP", "Receivers do not verify this checksum, and the CRC already covers the packet."),
    ("WIRE-CRC", "A receiver drops a packet with a wrong CRC, so the packet never arrives."),
    ("PDS-PDC", "Both ends must agree on the context of a packet, or data reaches the wrong conversation."),
    ("PDS-PDC-002", "Operations with different needs would delay each other on one context."),
    (
        "PDS-SYN",
        "Both ends derive the numbering of a context from its first packets, which can be lost or reordered.",
    ),
    ("PDS-SYN-003", "The source may send only a small window until it learns the PDCID of the target."),
    ("PDS-SYN-005", "A second context for the same packets would deliver their data twice."),
    (
        "PDS-SYN-007",
        "Late packets of the previous context would otherwise fall into the window of the new one.",
    ),
    ("PDS-SYN-011", "The pool is reserved for packets that the peer needs to make progress under load."),
    (
        "PDS-OPEN",
        "Without this answer, the source retransmits until it gives up, and does not learn the cause.",
    ),
    (
        "PDS-OPEN-001",
        "A silent refusal costs the source a timeout, and state for refused contexts exhausts the target.",
    ),
    ("PDS-OPEN-003", "A stranger could otherwise inject data into the context of another peer."),
    ("PDS-OPEN-006", "The source learns from the answer that its window is wrong; silence looks like loss."),
    ("PDS-OPEN-009", "An answer to an unreadable packet goes to a peer that cannot know the reason."),
    ("PDS-PSN", "Acknowledgment, duplicate detection and clearing all rest on one shared numbering."),
    (
        "PDS-PSN-002",
        "The source discards packets up to this PSN: a gap below it loses data, and it waits for one left out.",
    ),
    ("PDS-PSN-003", "The source has discarded what an earlier ACK covered, and cannot send it again."),
    ("PDS-PSN-004", "An ACK of an unsent PSN would complete operations whose data never left."),
    ("PDS-PSN-006", "A long-lived context passes 2^32, and a plain comparison then stalls or loses data."),
    (
        "PDS-WIN",
        "Source and receiver share the size of the receive window; a packet outside is refused or misplaced.",
    ),
    ("PDS-WIN-003", "Packets that the receiver permitted before may already be on their way."),
    ("PDS-ACK", "The source frees buffers and completes operations by ACKs, and retransmits without them."),
    ("PDS-ACK-002", "The source measures marks and round trips by these bits."),
    ("PDS-ACK-003", "A lost ACK caused the retransmission, so another delay repeats the timeout."),
    ("PDS-ACK-004", "The source asks if it cannot go on without the answer."),
    ("PDS-ACK-008", "A late mark lets the queue grow before the source slows down."),
    ("PDS-ACK-011", "A packet without an ACK times out at the source and fails its context in the end."),
    ("PDS-ACK-016", "The source would assign the result to another operation."),
    (
        "PDS-SACK",
        "The source decides by the bitmap which packets to retransmit, and treats set bits as received.",
    ),
    ("PDS-SACK-001", "The source does not retransmit a packet whose bit is set, so the data is lost."),
    ("PDS-SACK-003", "The source retransmits packets that have arrived if no bitmap ever covers them."),
    ("PDS-SACK-004", "A bit carries no response, so an error of the request would stay unknown."),
    ("PDS-DUP", "Networks and retransmissions duplicate packets; their effect must stay that of one packet."),
    ("PDS-DUP-001", "A second delivery changes memory again, or consumes another receive."),
    ("PDS-DUP-002", "The first ACK may be lost, and the source repeats the packet until it gets one."),
    ("PDS-RUD", "An operation without order must not wait for the loss of another one."),
    ("PDS-ROD", "Applications on an ordered context rely on the order of delivery."),
    ("PDS-ROD-005", "Several paths would reorder the packets, and a receiver drops what overtakes."),
    ("PDS-UUD", "The source of a datagram keeps no state to which an answer could belong."),
    ("PDS-RUDI", "RUDI has no context: pkt_id alone connects a request with its answer."),
    ("PDS-RUDI-003", "The first answer may be lost, and the target keeps no copy of it."),
    ("PDS-MSG", "A target assembles a message from one context, without gaps by other messages."),
    (
        "PDS-GTD",
        "The response exists once: if it is lost and not kept, the initiator never learns the result.",
    ),
    ("PDS-GTD-003", "Repeating a read has no side effect, so keeping the data costs memory without benefit."),
    (
        "PDS-CLR",
        "A target keeps responses until the source clears them, and runs out of space without clears.",
    ),
    ("PDS-CLR-001", "The target discards cleared responses, so an early clear loses a result."),
    ("PDS-CLR-002", "The target has already discarded what an earlier clear covered."),
    ("PDS-RTO", "A lost packet or ACK must neither stall the operation nor flood the network."),
    ("PDS-RTO-002", "Constant timeouts add load to a congested network."),
    ("PDS-RTO-004", "The application waits forever if nobody reports that the operation failed."),
    (
        "PDS-RTO-005",
        "A receiver takes a different PSN or payload for new data, and acknowledges late without retx.",
    ),
    (
        "PDS-NACK",
        "The reaction to a NACK decides if the refused packet arrives, fails, or repeats without end.",
    ),
    ("PDS-NACK-002", "A late or forged NACK would end a context that works."),
    ("PDS-NACK-006", "An immediate retry meets the same shortage and adds load."),
    ("PDS-NACK-010", "Two endpoints that answer errors with errors never stop."),
    ("PDS-NACK-011", "The source sends a refused packet again; a receiver that counted it drops the data."),
    (
        "PDS-TRIM",
        "A trimmed packet has lost its payload, and its header lets the source repair that without a timeout.",
    ),
    ("PDS-TRIM-002", "The payload is missing, so delivery would corrupt memory."),
    ("PDS-CTL", "Both ends must count the same packets, or all later PSNs disagree."),
    ("PDS-ASK", "The source asks because an answer was lost, and continues according to the reply."),
    (
        "PDS-PRB",
        "A probe finds out the state of a receiver without data, and its answer must not look like one to data.",
    ),
    ("PDS-CLASS", "An answer that waits behind data delays the reaction to congestion and loss."),
    ("PDS-SEC", "A repeated counter or Start_PSN breaks the protection against replay."),
    (
        "PDS-CLOSE",
        "Both ends free a context together, or one keeps resources and the other reuses the number.",
    ),
    ("PDS-CLOSE-001", "Closing early discards data and results that are still on their way."),
    ("PDS-CLOSE-009", "Late data would change memory that now belongs to another operation."),
    ("PDS-CLOSE-010", "The first ACK may be lost, and the initiator would never finish the close."),
    ("SES-ADDR", "A request at the wrong process or index reads or overwrites the memory of others."),
    ("SES-ADDR-004", "The initiator learns from the code which part of its address is wrong."),
    ("SES-ADDR-005", "The initiator learns from the code which part of its address is wrong."),
    ("SES-ADDR-006", "The initiator learns from the code which part of its address is wrong."),
    ("SES-GEN", "The generation separates sends before a restart of a queue from those after it."),
    (
        "SES-IDX",
        "A sender must stop when the queue has no buffers, or its messages arrive out of order later.",
    ),
    ("SES-MEM", "Keys and permissions are the only protection of memory against remote access."),
    ("SES-MEM-005", "The initiator learns from the code why its access failed."),
    ("SES-CUT", "The target places and completes a message by these fields of its packets."),
    ("SES-ORDER", "Interleaved messages make the receiver hold several incomplete ones."),
    ("SES-PLACE", "Packets take different paths, and the place of their data must not depend on the order."),
    ("SES-RESP", "The response is the only report of the result to the initiator."),
    ("SES-RESP-005", "A reader that sees the completion expects to see the data."),
    ("SES-DONE", "Applications reuse buffers after a completion; an early or second one corrupts them."),
    ("SES-MATCH", "The matching rules decide which buffer receives a message."),
    ("SES-MATCH-007", "A target whose overflow list leaks refuses all later messages."),
    ("SES-GTD", "A lost error or result cannot be computed again."),
    ("SES-ERR", "Both ends must agree that a message ended and with which result."),
    ("SES-ERR-002", "An initiator that gets no answer cannot distinguish a missing feature from loss."),
    ("SES-MODE", "The delivery mode limits what a target may answer and repeat."),
    ("SES-READ", "The initiator places read data by the fields of the answer, and waits for all of it."),
    ("SES-AMO", "Several initiators share the memory of an atomic, and each relies on exact, single steps."),
    ("SES-AMO-002", "The initiator needs the code to choose another way."),
    ("SES-AMO-003", "The initiator needs the code to choose another way."),
    ("SES-AMO-004", "The initiator needs the code to choose another way."),
    ("SES-AMO-005", "The initiator needs the code to choose another way."),
    ("SES-AMO-006", "The initiator needs the code to choose another way."),
    ("SES-RNDV", "Target and initiator divide the message at the same byte, or a part is missing."),
    ("SES-DEFER", "The tokens connect the repeated message with the buffer that waits for it."),
    (
        "CC-RCVD",
        "The source derives the bytes in flight from this count; a wrong one stalls it or overloads the network.",
    ),
    (
        "CC-SERVICE",
        "The source subtracts this time from the round trip to see the delay of the network alone.",
    ),
    (
        "CC-OOO",
        "The source sees by this count if packets are still missing, or only arrived in another order.",
    ),
    ("CC-RTT", "A wrong sample looks like congestion, or hides it."),
    ("CC-WINDOW", "The window bounds the queues of the fabric, and a window of zero stops the source."),
    ("CC-WINDOW-004", "Bytes of a dead context would occupy the window forever."),
    (
        "CC-ACKREQ",
        "Without an ACK a full or small window does not open until the destination sends one late.",
    ),
    ("CC-QUAD", "All sources share the link fairly only if each follows the same four cases."),
    ("CC-QUAD-005", "Without it, a window that marks hold would stay as it is, however unfair its share."),
    ("CC-NACK", "A destination without buffers says nothing about the queues of the network."),
    ("CC-TRIM", "A trim is the clearest sign of a full queue, and its place tells who must slow down."),
    ("CC-LOSS", "A source that ignores loss keeps the queue full."),
    ("CC-PENALTY", "The receiver limits its senders with this signal when its own resources run out."),
    ("CC-PROBE", "The answer shows the round trip before the source fills the path."),
    ("CC-PATH", "The source balances its load by the paths on which packets and marks return."),
    ("RCCC-TYPE", "The destination grants credit only for demand that it has seen."),
    (
        "RCCC-COUNT",
        "Credit is a running total: a wrong unit, wrap or order stops the source or overloads the receiver.",
    ),
    (
        "RCCC-CREDIT",
        "The receiver schedules its link by credit, and uncredited data collides with that of others.",
    ),
    ("RCCC-START", "The receiver has not seen the source yet and cannot protect its last hop."),
    ("RCCC-GRANT", "A source without credit waits forever."),
    ("RCCC-PACE", "More credit than the link carries queues at the last hop, less leaves it idle."),
    ("RCCC-TRIM", "The demand is in the header that arrived, and the source waits for credit."),
    ("TSS-KEY", "A peer that derives another key cannot read a single packet."),
    ("TSS-IV", "A peer cannot read the packet, and one IV for two packets gives both away."),
    ("TSS-AAD", "A peer that authenticates other bytes drops every packet."),
    ("TSS-HDR", "The receiver finds the key of a packet by this header alone."),
    ("TSS-HDR-002", "A later version may give the bit a meaning, and its packets would be lost."),
    ("TSS-HDR-003", "A later version may give this bit a meaning, which old packets must not claim."),
    ("TSS-HDR-004", "Without its source identifier, a packet could have the IV of another sender."),
    ("TSS-LEN", "A peer that counts other lengths places data wrongly or refuses whole messages."),
    ("TSS-START-006", "An initiator that gets a new number each time renumbers without end."),
    ("TSS-START-007", "The initiator trusts the number, and loses a round trip with each context."),
    ("TSS-START-008", "The target takes the packet for the copy of one that it has never seen."),
    ("TSS-ICV", "Anyone on the path could change memory or contexts, or use the endpoint to attack others."),
    ("TSS-CTR", "Two packets under one key and IV give away both texts and the means to forge more."),
    ("TSS-SDI", "An answer would tell strangers about the endpoint, and could be aimed at others."),
    ("TSS-AN", "Packets are lost while keys rotate, or an old key stays good for whoever has stolen it."),
    ("TSS-EPOCH", "A recorded packet of an earlier life of the key could be played again."),
    ("TSS-CLEAR", "An attacker would need no key at all."),
    ("TSS-BIND", "A member of one domain could speak in the contexts of another."),
    (
        "TSS-START",
        "A recorded opening packet would execute its request a second time, or a peer could never open a context.",
    ),
    ("TSS-TRIM", "A packet without an ICV may come from anyone, and its loss would go unnoticed."),
    ("ROB-LIFE", "One wrong packet of any peer would otherwise end the service for all."),
    ("ROB-STATE", "Anybody can send such a packet, so its effect would corrupt the data of others."),
    ("ROB-RSVD", "A peer of a later version may set these bits, and must still be understood."),
    ("ROB-CRC", "Damaged bytes would reach memory, or end operations that have not happened."),
    ("ROB-FLOOD", "Anybody can send packets that open contexts, and must not stop those who work."),
    ("NET-FWD", "An endpoint finds context, path and class in these bytes, and places the payload by them."),
    ("NET-DUP", "An endpoint discards the copy, and its link carried it for nothing."),
    ("NET-LOSS-001", "Each lost packet costs its sender a timeout, and looks like congestion."),
    ("NET-LOSS-002", "A trimmed packet brings a NACK at once, a lost one only a timeout."),
    ("NET-ORDER", "A target of ROD refuses what overtakes, and a source takes gaps on one path for losses."),
    ("NET-SPRAY", "The fullest path limits a message that all of them carry."),
    ("NET-ECN", "A source sets its rate by these marks: it slows down for nothing, or not when it has to."),
    ("NET-TRIM-001", "The receiver of another class does not expect cut packets."),
    ("NET-TRIM-002", "The receiver answers with the context and the PSN in these bytes."),
    ("NET-TRIM-003", "Without this DSCP, a receiver takes the rest of a packet for all of it."),
    ("NET-TRIM-004", "A receiver that expects the other length drops the packet as damaged."),
    ("NET-TRIM-005", "Nobody repeats an acknowledgment, and no NACK answers a trimmed one."),
    ("NET-TRIM-006", "Behind the data that waits, a trimmed packet tells its receiver too late."),
    ("NET-PRIO", "A source that waits for these packets slows down, or sends again what has arrived."),
];

#[cfg(test)]
mod tests {
    use super::super::{ALL, NETWORK};
    use super::*;

    #[test]
    fn every_requirement_has_a_reason_and_every_reason_a_requirement() {
        for requirement in ALL.iter().chain(NETWORK) {
            assert!(requirement.rationale().ends_with('.'), "{}", requirement.id);
        }
        for (index, (key, reason)) in REASONS.iter().enumerate() {
            let is_of = |requirement: &&&Requirement| {
                requirement.id == *key
                    || requirement.id.rsplit_once('-').is_some_and(|(topic, _)| topic == *key)
            };
            assert!(ALL.iter().chain(NETWORK).any(|requirement| is_of(&requirement)), "{key}");
            assert!(REASONS[..index].iter().all(|(before, _)| before != key), "{key}");
            assert!(reason.split(' ').count() <= 25, "{key}");
        }
    }

    #[test]
    fn reason_of_a_requirement_precedes_that_of_its_topic() {
        assert_ne!(super::super::PDS_DUP_001.rationale(), super::super::PDS_DUP_003.rationale());
    }
}
