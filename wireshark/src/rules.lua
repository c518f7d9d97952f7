-- What the specification forbids in a single packet: the rules of uet-wire's `validate`, once more. Reserved
-- bits, code points and what may follow what come from the tables; the rest is written here by hand, and a
-- test compares the findings with those of `validate`.
local byte = string.byte
local u16, u32, band = U.u16, U.u32, U.band
local settings = U.settings

-- The fields of each header whose code points have to be assigned ones.
for _, layout in pairs(U.layouts) do
  layout.codes, layout.runs = {}, {}
  for _, row in ipairs(layout.rows) do
    local id, field = U.assigned[row[1]], U.fields[row[6]]
    if id and field[5] then layout.codes[#layout.codes + 1] = { row[1], id, field[5] } end
    if row[1] == "reserved" then layout.runs[#layout.runs + 1] = row end
  end
end
for _, registry in pairs(U.registries) do
  registry.bad = {}
  for version, runs in ipairs(registry.unassigned) do
    local set = {}
    for _, run in ipairs(runs) do
      for code = run[1], run[2] do set[code] = true end
    end
    registry.bad[version] = set
  end
end

local function add(p, id, field, value, more)
  local findings = p.findings
  if not findings then
    findings = {}
    p.findings = findings
  end
  findings[#findings + 1] = { id, field, value, more }
end

local function by_field(p, layout, record, at)
  if record.reserved then
    for _, row in ipairs(layout.runs) do
      if U.exists(row, record) then
        local value = U.value_of(p.s, at, row)
        if value ~= 0 then add(p, "WIRE-RSVD-001", layout.name, value, row) end
      end
    end
  end
  local version, codes = settings.version, layout.codes
  for i = 1, #codes do
    local code = codes[i]
    local value = record[code[1]]
    if code[3].bad[version][value] then add(p, code[2], code[1], value) end
  end
end

local RESERVED_AT = U.at("entropy", "reserved")

-- Rules about the layers around UET.
local function outer(p)
  local s, ip = p.s, p.ip
  if not ip then return end
  if p.version == 4 then
    if band(byte(s, ip + 7), 0x40) == 0 then add(p, "WIRE-IP-001", "ip.df", 0) end
    local sum = 0
    for at = ip, ip + byte(s, ip + 1) % 16 * 4 - 2, 2 do sum = sum + u16(s, at) end
    local stated = u16(s, ip + 10)
    -- 0 and 0xffff are both zero in this arithmetic; only one of them is what a sender computes.
    local computed = sum - stated
    computed = 65535 - (computed % 65535 == 0 and computed > 0 and 65535 or computed % 65535)
    if computed ~= stated then add(p, "WIRE-IP-002", "ip.checksum", stated) end
  end
  if p.entropy and u16(s, p.entropy + RESERVED_AT) ~= 0 then
    add(p, "WIRE-RSVD-001", "entropy", u16(s, p.entropy + RESERVED_AT), U.layouts.entropy.runs[1])
  end
  if p.udp and u16(s, p.udp + 6) ~= 0 then add(p, "WIRE-UDP-001", "udp.checksum", u16(s, p.udp + 6)) end
end

local LARGEST, DEFAULT_WINDOW = 8192, 1024
-- The NACKs that say that there is no context.
local WITHOUT_CONTEXT = { [0x04] = true, [0x05] = true, [0x06] = true, [0x0E] = true, [0x0F] = true }

local function opening(p, pds)
  local offset = pds["pds.psn_offset"]
  if not offset then return end
  if offset >= DEFAULT_WINDOW then add(p, "WIRE-SYN-001", "pds.psn_offset", offset) end
  -- Which bit it is, the figure says in its own words.
  if pds["pds.pdc_info"] > 1 then add(p, "WIRE-RSVD-003", "pds.pdc_info", pds["pds.pdc_info"]) end
end

local function spdcid_is_set(p, pds)
  if pds["pds.spdcid"] == 0 then add(p, "WIRE-PDCID-001", "pds.spdcid", 0) end
end

local function dpdcid_is_set(p, pds)
  if pds["pds.dpdcid"] == 0 then add(p, "WIRE-PDCID-002", "pds.dpdcid", 0) end
end

local function request(p, pds)
  spdcid_is_set(p, pds)
  dpdcid_is_set(p, pds)
  opening(p, pds)
  local clear = pds["pds.clear_psn_offset"]
  if clear >= 0 then add(p, "WIRE-CLEAR-001", "pds.clear_psn_offset", clear) end
end

local function ack(p, pds)
  spdcid_is_set(p, pds)
  dpdcid_is_set(p, pds)
  local flags = pds["pds.cc_flags"]
  if flags and flags ~= 0 then add(p, "WIRE-RSVD-002", "pds.cc_flags", flags) end
end

local function nack(p, pds)
  if pds["pds.flags.nt"] == 0 then
    dpdcid_is_set(p, pds)
    if WITHOUT_CONTEXT[pds["pds.nack_code"]] and pds["pds.spdcid"] ~= 0 then
      add(p, "WIRE-NACK-003", "pds.spdcid", pds["pds.spdcid"])
    end
  elseif pds["pds.spdcid"] ~= 0 then
    add(p, "WIRE-NACK-002", "pds.spdcid", pds["pds.spdcid"])
  elseif pds["pds.dpdcid"] ~= 0 then
    add(p, "WIRE-NACK-002", "pds.dpdcid", pds["pds.dpdcid"])
  end
end

local NOOP, CLEAR_COMMAND, CLEAR_REQUEST, CLOSE_COMMAND, CLOSE_REQUEST = 0, 2, 3, 4, 5
local CREDIT, CREDIT_REQUEST, NEGOTIATION = 7, 8, 9
local TAKES_NO_PSN = { [CLEAR_COMMAND] = true, [CLEAR_REQUEST] = true, [CREDIT] = true, [CREDIT_REQUEST] = true }
local NO_PAYLOAD = { [NOOP] = true, [CLOSE_COMMAND] = true, [CLOSE_REQUEST] = true }

local function control(p, pds)
  local kind, payload = pds["pds.ctl_type"], pds["pds.payload"]
  spdcid_is_set(p, pds)
  dpdcid_is_set(p, pds)
  opening(p, pds)
  local may_open = kind == NOOP or kind == NEGOTIATION or not U.registries.CtlType.names[kind]
  if not may_open then
    if pds["pds.flags.syn"] == 1 then add(p, "WIRE-SYN-002", "pds.flags.syn", 1) end
    if pds["pds.flags.isrod"] == 1 then add(p, "WIRE-CTL-006", "pds.flags.isrod", 1) end
  end
  if kind == CLEAR_COMMAND and pds["pds.flags.ar"] == 1 then add(p, "WIRE-CTL-002", "pds.flags.ar", 1) end
  if (kind == CLOSE_COMMAND or kind == CLOSE_REQUEST) and pds["pds.flags.ar"] == 0 then
    add(p, "WIRE-CTL-003", "pds.flags.ar", 0)
  end
  if TAKES_NO_PSN[kind] and pds["pds.psn"] ~= 0 then add(p, "WIRE-CTL-004", "pds.psn", pds["pds.psn"]) end
  if NO_PAYLOAD[kind] and payload ~= 0 then add(p, "WIRE-CTL-005", "pds.payload", payload) end
  if kind == CREDIT and payload >= 0x1000000 then add(p, "WIRE-CTL-007", "pds.payload", payload) end
  if kind ~= NEGOTIATION and p.payload_bytes > 0 then add(p, "WIRE-LEN-001", "payload", p.payload_bytes) end
end

local of_pds = {
  request = request, request_cc = request, ack = ack, ack_cc = ack, ack_ccx = ack,
  nack = nack, nack_ccx = nack, control = control,
}

local UUD = 6
local function delivery(p, pds)
  local next_header = pds["pds.next_hdr"]
  if next_header and p.pds_layout ~= U.layouts.prologue then
    local may = U.may_follow[p.kind]
    if may and not may[next_header] and U.registries.NextHdr.names[next_header] then
      add(p, "WIRE-NEXT-002", "pds.next_hdr", next_header)
    end
    if p.kind == UUD and (next_header == 1 or next_header == 2) then
      add(p, "WIRE-NEXT-003", "pds.next_hdr", next_header)
    end
    if p.payload_bytes > 0 and (next_header == 0 or p.ses_layout == U.layouts.response) then
      add(p, "WIRE-LEN-001", "payload", p.payload_bytes)
    end
  end
  local rule = of_pds[p.pds_layout.name]
  if rule then rule(p, pds) end
end

local WRITE, READ, SEND, DATAGRAM, TAGGED, MSG_ERROR = 1, 2, 5, 7, 9, 15
local PLAIN = { [WRITE] = true, [SEND] = true, [DATAGRAM] = true, [TAGGED] = true }
local W_DATA = 2

-- The bits of a memory key that are reserved, of its halves; `0x40000000` of the upper one says optimised.
local function key_reserved(p)
  local layout = p.ses_layout.name
  if layout == "small" or p.opcode < 1 or p.opcode > 4 then return end
  local at = p.ses_at + U.key_at[layout]
  local high, low = u32(p.s, at), u32(p.s, at + 4)
  local odd = band(high, 0x3f000000) ~= 0
  if band(high, 0x40000000) ~= 0 then odd = odd or band(high, 0xffff) ~= 0 or band(low, 0xfffff000) ~= 0 end
  if odd then add(p, "WIRE-SES-013", "ses.memory_key", string.format("0x%08x%08x", high, low)) end
end
U.key_at = { std = U.at("std", "ses.memory_key"), medium = U.at("medium", "ses.memory_key") }

local function within_request(p, ses, opcode, plain)
  local offset, length, total = ses["ses.message_offset"], ses["ses.payload_length"], ses["ses.request_length"]
  local last = ses["ses.eom"] == 1
  local field, value, ending
  if offset then
    field, value, ending = "ses.message_offset", offset, offset + length
  elseif p.whole and plain and not last then
    field, value, ending = "ses.request_length", total, p.payload_bytes
  else
    return
  end
  local right = true
  if opcode == READ or plain then
    if last then right = ending == total else right = ending < total end
  elseif U.rendezvous[opcode] then
    right = ending <= total
  end
  if not right and ses["ses.ie"] == 0 then add(p, "WIRE-SES-008", field, value) end
end

local function ses_request(p, ses)
  local opcode, layout, length = p.opcode, p.ses_layout.name, ses["ses.request_length"]
  local plain = PLAIN[opcode]
  local open = ses["ses.som"] == 0 and "ses.som" or ses["ses.eom"] == 0 and "ses.eom"
  if open then
    if layout ~= "std" then add(p, "WIRE-SES-003", open, 0) end
    if opcode == DATAGRAM then add(p, "WIRE-SES-005", open, 0) end
    if U.atomic[opcode] then add(p, "WIRE-AMO-003", open, 0) end
  elseif plain and p.whole and ses["ses.ie"] == 0 and length ~= p.payload_bytes then
    add(p, "WIRE-SES-007", "ses.request_length", length)
  end
  if layout == "std" then
    if opcode == DATAGRAM and ses["ses.message_id"] ~= 0 then
      add(p, "WIRE-SES-004", "ses.message_id", ses["ses.message_id"])
    end
    within_request(p, ses, opcode, plain)
  end
  key_reserved(p)
  if opcode == READ and p.payload_bytes > 0 then add(p, "WIRE-SES-009", "payload", p.payload_bytes) end
  if U.atomic[opcode] and p.pds_layout == U.layouts.rudi then add(p, "WIRE-AMO-004", "ses.opcode", opcode) end
end

local function ses_response(p, ses)
  local opcode, layout = ses["ses.opcode"], p.ses_layout.name
  local data = layout ~= "response"
  if U.registries.ResponseOpcode.names[opcode] and data ~= (opcode == W_DATA) then
    add(p, "WIRE-SES-010", "ses.opcode", opcode)
  end
  if layout == "response_data" and ses["ses.message_offset"] + ses["ses.payload_length"] > ses["ses.modified_length"] then
    add(p, "WIRE-SES-012", "ses.message_offset", ses["ses.message_offset"])
  end
end

local function semantics(p, ses)
  if ses["ses.version"] ~= 0 then add(p, "WIRE-SES-001", "ses.version", ses["ses.version"]) end
  local stated = ses["ses.payload_length"]
  if stated and p.whole and stated ~= p.payload_bytes and p.opcode ~= READ and p.opcode ~= MSG_ERROR then
    add(p, "WIRE-SES-006", "ses.payload_length", stated)
  end
  if p.payload_bytes > LARGEST then add(p, "WIRE-LEN-002", "payload", p.payload_bytes) end
  if p.opcode then ses_request(p, ses) else ses_response(p, ses) end
  local ext = p.ext
  if not ext then return end
  local eager, control_bits = ext["ses.eager_length"], ext["ses.semantic_control"]
  if eager and eager > ses["ses.request_length"] then add(p, "WIRE-SES-014", "ses.eager_length", eager) end
  if control_bits and control_bits > 3 then add(p, "WIRE-RSVD-004", "ses.semantic_control", control_bits) end
end

-- Puts what is forbidden in the packet into `p.findings`, which stays nil when nothing is.
function U.judge(p)
  outer(p)
  if p.tss then by_field(p, p.tss_layout, p.tss, p.tss_at) end
  if p.pds then
    by_field(p, p.pds_layout, p.pds, p.pds_at)
    delivery(p, p.pds)
  end
  if p.ses then
    by_field(p, p.ses_layout, p.ses, p.ses_at)
    semantics(p, p.ses)
  end
  if p.ext then by_field(p, p.ext_layout, p.ext, p.ext_at) end
end
