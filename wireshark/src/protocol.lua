-- The protocol as Wireshark registers it: name, fields, expert items, preferences.

-- A built-in protocol may have the short name. Then this one takes another, and keeps the names of its fields.
local ok, proto = pcall(Proto, "uet", "Ultra Ethernet Transport")
if not ok then
  proto = Proto("uet_wire", "Ultra Ethernet Transport (uet-wire)")
end
U.proto, U.name_is_ours = proto, ok

local all = {}
local function register(field)
  all[#all + 1] = field
  return field
end

-- The fields of the headers, as the table says.
U.proto_fields = {}
for i, f in ipairs(U.fields) do
  local name, label, constructor, shown, registry, mask, meaning = f[1], f[2], f[3], f[4], f[5], f[6], f[7]
  local values = registry and registry.names
  local field
  if constructor == "bytes" then
    field = ProtoField.bytes("uet." .. name, label, base.NONE, meaning)
  else
    field = ProtoField[constructor]("uet." .. name, label, shown, values, mask, meaning)
  end
  U.proto_fields[i] = register(field)
end

local function number(name, label, meaning)
  return register(ProtoField.uint32("uet." .. name, label, base.DEC, nil, nil, meaning))
end
local function wide(name, label, meaning)
  return register(ProtoField.uint64("uet." .. name, label, base.DEC, nil, nil, meaning))
end
local function frame(name, label, meaning)
  return register(ProtoField.framenum("uet." .. name, label, base.NONE, frametype.NONE, 0, meaning))
end
local function text(name, label, meaning)
  return register(ProtoField.string("uet." .. name, label, base.UNICODE, meaning))
end
local function truth(name, label, meaning)
  return register(ProtoField.bool("uet." .. name, label, base.NONE, nil, nil, meaning))
end
local function seconds(name, label, meaning)
  return register(ProtoField.relative_time("uet." .. name, label, meaning))
end
local function layer(name, label)
  return register(ProtoField.none("uet." .. name, label, base.NONE, label))
end

U.f = {
  -- layers
  entropy = layer("entropy", "Entropy header"),
  tss = layer("tss", "Security"),
  pds = layer("pds", "Packet delivery"),
  ses = layer("ses", "Semantics"),
  ext = layer("ext", "Extension"),
  payload = layer("payload", "Payload"),
  opaque = layer("tss.opaque", "Encrypted"),
  readable = layer("tss.readable", "Readable"),
  authenticated = truth("tss.authenticated", "Authenticated", "whether the ICV is right; absent without a key"),
  payload_bytes = number("payload.length", "Payload length", "bytes of payload in this packet"),
  crc_expected = register(ProtoField.uint32("uet.crc.expected", "Expected CRC", base.HEX, nil, nil,
    "the CRC that the packet should have")),
  crc_ok = truth("crc.ok", "CRC is right", "whether the CRC trailer is right"),
  trimmed = truth("trimmed", "Trimmed", "a switch cut the packet"),
  trimmed_missing = number("trimmed.missing", "Bytes trimmed", "bytes that the switch took away"),
  trimmed_layer = text("trimmed.layer", "Trimmed in", "the layer that the first missing byte belonged to"),
  trimmed_last_hop = truth("trimmed.last_hop", "Trimmed at the last hop", "the traffic class says so"),
  sliced = truth("sliced", "Cut by the capture", "the capture kept only the start of the packet"),
  finding = text("finding", "Finding", "requirement that the packet breaks"),
  error_layer = text("error.layer", "Malformed layer", "the layer at which reading stopped"),
  error_field = text("error.field", "Malformed field", "the first field that is not all there"),
  -- what follows from the fields
  ["pds.ack_psn"] = number("pds.ack_psn", "ACK PSN", "the PSN that an ACK answers"),
  ["pds.sack_psn"] = number("pds.sack_psn", "SACK PSN", "the PSN of bit 0 of the bitmap"),
  ["pds.sacked"] = text("pds.sacked", "SACKed PSNs", "PSNs that the bitmap says have been received"),
  sacked_first = number("pds.sacked.first", "First", "first PSN of a run that has been received"),
  sacked_last = number("pds.sacked.last", "Last", "last PSN of a run that has been received"),
  ["pds.clear_psn"] = number("pds.clear_psn", "CLEAR PSN", "the highest PSN cleared"),
  ["pds.start_psn"] = number("pds.start_psn", "Start PSN", "the first PSN of the context"),
  ["pds.mp_range"] = number("pds.mp_range", "Receive range", "how many PSNs above the cumulative one may be sent"),
  ["pds.service_time_ns"] = number("pds.service_time_ns", "Service time (ns)", "time at the destination in nanoseconds"),
  service_time_us = register(ProtoField.double("uet.pds.service_time_us", "Service time (us)",
    "time at the destination in microseconds")),
  ["pds.rcvd_bytes_bytes"] = wide("pds.rcvd_bytes_bytes", "Bytes received", "bytes received, cumulative"),
  ["pds.credit_bytes"] = wide("pds.credit_bytes", "Credit in bytes", "credit granted, cumulative"),
  ["ses.end_offset"] = wide("ses.end_offset", "End offset", "where in the message the payload ends"),
  -- contexts
  pdc = number("pdc", "PDC", "index of the context in the capture"),
  pdc_direction = text("pdc.direction", "Direction", "forward: from the initiator; return: from the target"),
  acked_in = frame("acked_in", "Acknowledged in", "the frame that acknowledges this one"),
  acks = frame("acks", "Acknowledges", "a frame that this one acknowledges for the first time"),
  acks_count = number("acks.count", "Packets acknowledged", "packets that this one acknowledges for the first time"),
  response_time = seconds("response_time", "Response time", "from the packet to its acknowledgment"),
  retransmission_of = frame("retransmission_of", "Retransmission of", "the frame that carried this PSN first"),
  retransmission = truth("retransmission", "Retransmission", "the packet has been sent before"),
  duplicate_of = frame("duplicate_of", "Duplicate of", "the frame that carried this PSN first"),
  duplicate = truth("duplicate", "Duplicate", "a copy that is not marked as a retransmission"),
  gap = number("gap", "PSNs skipped", "PSNs between the highest seen before and this one"),
  outside_window = truth("outside_window", "Outside the window", "the PSN is outside the receive window"),
  nack_for = frame("nack_for", "NACK for", "the frame that this one refuses"),
  nacked_in = frame("nacked_in", "Refused in", "the NACK that refuses this frame"),
  answers_nack = frame("answers_nack", "Sent again because of", "the NACK that this retransmission answers"),
  retransmitted_in = frame("retransmitted_in", "Sent again in", "the frame that carries this PSN again"),
  answer_in = frame("answer_in", "Answered in", "the response to this idempotent request"),
  answer_to = frame("answer_to", "Answer to", "the idempotent request that this one answers"),
  -- messages
  message_first = frame("message.first", "First frame of the message", "the first frame of the message"),
  message_last = frame("message.last", "Last frame of the message", "the last frame of the message so far"),
  message_bytes = wide("message.bytes", "Bytes of the message", "bytes of the message seen"),
  message_packets = number("message.packets", "Packets of the message", "packets of the message seen"),
  message_data = register(ProtoField.bytes("uet.message.data", "Data of the message", base.NONE,
    "the data of the message, in the frame that completes it")),
  message_segment = frame("message.segment", "Segment", "a frame with a part of the data"),
  message_reassembled_in = frame("message.reassembled_in", "Data of the message in", "the frame that completes the data"),
  message_time = seconds("message.completion_time", "Completion time of the message",
    "from the first packet to the acknowledgment of all, or to the last data of a read"),
}
proto.fields = all

-- One expert item for each requirement, with its identifier, and some for what several packets show.
local severities = { error = expert.severity.ERROR, warning = expert.severity.WARN, note = expert.severity.NOTE }
local items = {}
local function expert_item(id, sentence, group, severity)
  local item = ProtoExpert.new("uet." .. id, sentence, group, severity)
  items[#items + 1] = item
  return { item, sentence, id }
end

U.findings = {}
for _, requirement in ipairs(U.requirements) do
  local id, severity, sentence = requirement[1], requirement[2], requirement[3]
  U.findings[id] = expert_item(id, sentence, expert.group.PROTOCOL, severities[severity])
end
U.malformed = expert_item("malformed", "The packet ends early, or its lengths contradict each other",
  expert.group.MALFORMED, expert.severity.ERROR)
U.encrypted = expert_item("tss.encrypted", "The packet is encrypted", expert.group.DECRYPTION, expert.severity.CHAT)
U.forged = expert_item("tss.forged", "The packet is not authentic", expert.group.SECURITY, expert.severity.ERROR)
local function oddity(id, sentence, severity)
  return expert_item("analysis." .. id, sentence, expert.group.SEQUENCE, severity)
end
U.oddities = {
  retransmission = oddity("retransmission", "Retransmission", expert.severity.NOTE),
  duplicate = oddity("duplicate", "Duplicate: this PSN was seen before, and retx is 0", expert.severity.NOTE),
  gap = oddity("gap", "PSNs before this one have not been seen", expert.severity.NOTE),
  outside_window = oddity("outside_window", "The PSN is outside the receive window", expert.severity.WARN),
  ack_unseen = oddity("ack_unseen", "Acknowledges a PSN that was not seen", expert.severity.WARN),
  nack = oddity("nack", "Refused", expert.severity.WARN),
  nack_fatal = oddity("nack_fatal", "Refused: the context cannot go on", expert.severity.ERROR),
  trimmed = oddity("trimmed", "Trimmed by a switch", expert.severity.NOTE),
  failed = oddity("failed", "The request failed", expert.severity.WARN),
}
proto.experts = items

-- Settings of a deployment, which no packet carries.
local prefs = proto.prefs
prefs.ports = Pref.range("UDP ports", tostring(U.udp_port), "UDP destination ports of UET", 65535)
prefs.ip_proto = Pref.uint("IP protocol", U.ip_proto, "IP protocol number of the native encapsulation")
prefs.trailer = Pref.enum("Trailer", 3, "What ends every packet; auto: a CRC where it is right, or an ICV with a security header",
  { { 1, "auto", 3 }, { 2, "none", 0 }, { 3, "crc", 1 }, { 4, "icv", 2 } }, false)
prefs.keys = Pref.string("Key file", "", "Keys of secured packets, in the TOML that uet decode --keys reads")
prefs.tss_clear = Pref.uint("Clear bytes behind TSS", 0,
  "How many bytes behind the security header are not encrypted: headers within them are shown")
prefs.trimmed_dscp = Pref.range("DSCPs of trimmed packets", "", "Traffic classes of packets that a switch trimmed", 63)
prefs.trimmed_lasthop_dscp = Pref.range("DSCPs of packets trimmed at the last hop", "",
  "Traffic classes of packets trimmed at the last hop", 63)
local versions = {}
for i, name in ipairs(U.versions) do versions[i] = { i, name, i } end
prefs.version = Pref.enum("Version of the specification", U.version, "What packets are judged by", versions, false)
prefs.take_over = Pref.bool("Take over the ports", true,
  "Read the packets even where another dissector has the ports")
prefs.analysis = Pref.bool("Follow contexts and messages", true,
  "Link packets to their acknowledgments, NACKs and retransmissions")
prefs.reassemble = Pref.bool("Reassemble messages", true, "Show the data of a message as one field")
prefs.reassembly_limit = Pref.uint("Memory for reassembly (MiB)", 256, "How many bytes of data to keep")
prefs.follow = Pref.string("Follow a context (tshark)", "", "Print the messages of the context with this uet.pdc at the end")
prefs.export = Pref.string("Export messages to", "", "A folder for the data of each message, as message-FRAME.bin")
prefs.statistics = Pref.bool("Print statistics (tshark)", false, "Print the table of contexts when the capture ends")

-- The preferences, as the rest of the code reads them.
U.settings = {}
function U.read_settings()
  local settings = U.settings
  settings.ports = U.numbers_in(prefs.ports)
  settings.ip_proto = prefs.ip_proto
  settings.trailer_kind = ({ "crc", "icv", "auto" })[prefs.trailer]
  settings.keys = prefs.keys
  settings.tss_clear = prefs.tss_clear
  settings.trimmed = U.numbers_in(prefs.trimmed_dscp)
  settings.trimmed_lasthop = U.numbers_in(prefs.trimmed_lasthop_dscp)
  settings.by_dscp = next(settings.trimmed) ~= nil or next(settings.trimmed_lasthop) ~= nil
  settings.version = prefs.version
  settings.take_over = prefs.take_over
  settings.analysis = prefs.analysis
  settings.statistics = prefs.statistics
  settings.reassemble = prefs.reassemble
  settings.reassembly_limit = prefs.reassembly_limit
  settings.follow, settings.export = prefs.follow, prefs.export
end
U.read_settings()
