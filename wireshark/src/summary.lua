-- A packet as a sentence: the Info column, and the lines of the layers in the tree. The words are those of the
-- codec's `Display`, which `wireshark/test` holds against them.
local byte, format, concat = string.byte, string.format, table.concat
local psn_add, u16, u32 = U.psn_add, U.u16, U.u32
local registries = U.registries
local types, controls = registries.PdsType.names, registries.CtlType.names
local nack_codes, opcodes = registries.NackCode.names, registries.Opcode.names
local responses, return_codes = registries.ResponseOpcode.names, registries.ReturnCode.names
local requests = registries.AckRequest.names
local atomics, datatypes = registries.AtomicOpcode.names, registries.AtomicDatatype.names

local function name(names, code)
  return names[code] or format("0x%02x", code)
end
U.name_of = name

-- Words in brackets, those whose field is 1. `pairs` are fields and their words, in turn.
local function flags(record, pairs)
  local text
  for i = 1, #pairs, 2 do
    if record[pairs[i]] == 1 then text = text and text .. " " .. pairs[i + 1] or pairs[i + 1] end
  end
  return text and " [" .. text .. "]" or ""
end
local RETX, M_RETX = { "pds.flags.retx", "RETX" }, { "pds.flags.m", "M", "pds.flags.retx", "RETX" }
local ROD_RETX = { "pds.flags.isrod", "ROD", "pds.flags.retx", "RETX" }
local OF_MESSAGE = { "ses.som", "SOM", "ses.eom", "EOM", "ses.hd", "HD", "ses.dc", "DC", "ses.ie", "IE" }

-- The two ends of the context.
local function ends(pds)
  local other = pds["pds.dpdcid"]
  if other then return format(" 0x%04x > 0x%04x", pds["pds.spdcid"], other) end
  return format(" SYN 0x%04x > ?", pds["pds.spdcid"])
end

local function of_request(pds)
  local text = format(" PSN %d", pds["pds.psn"]) .. ends(pds) .. flags(pds, RETX)
  if pds["pds.ccc_id"] then
    text = text .. format(" CCC 0x%02x wants %d B", pds["pds.ccc_id"], pds["pds.credit_target"] * 256)
  end
  return text
end

local function of_rudi(pds)
  return format(" 0x%08x", pds["pds.pkt_id"]) .. flags(pds, M_RETX)
end

local function sack(p)
  if not U.has_sack(p) then return "" end
  local runs, parts = U.sacked(p), {}
  for i = 1, #runs, 2 do
    parts[#parts + 1] = runs[i] == runs[i + 1] and format("%d", runs[i]) or format("%d-%d", runs[i], runs[i + 1])
  end
  return " SACK " .. concat(parts, ",")
end

local function of_ack(pds, p)
  local cack, offset = pds["pds.cack_psn"], pds["pds.ack_psn_offset"]
  local text = offset and format(" PSN %d", psn_add(cack, offset)) or format(" probe 0x%04x", pds["pds.probe_opaque"])
  text = text .. format(" CACK %d", cack) .. ends(pds)
  if pds["pds.flags.req"] ~= 0 then text = text .. " " .. name(requests, pds["pds.flags.req"]) end
  text = text .. flags(pds, M_RETX)
  if pds["pds.sack_psn_offset"] then text = text .. sack(p) end
  if pds["pds.credit"] then text = text .. format(" credit %d B", pds["pds.credit"] * 256) end
  return text
end

local function of_nack(pds)
  local psn, payload = pds["pds.nack_psn"], pds["pds.payload"]
  local text = " " .. name(nack_codes, pds["pds.nack_code"])
  if psn then
    text = text .. format(" PSN %d", psn) .. ends(pds)
  else
    text = text .. format(" 0x%08x", pds["pds.nack_pkt_id"])
  end
  if payload ~= 0 then text = text .. format(" payload %d", payload) end
  return text .. flags(pds, M_RETX)
end

local codes = registries.CtlType.codes
local CLEAR_COMMAND, CLEAR_REQUEST, PROBE = codes.CLEAR_COMMAND, codes.CLEAR_REQUEST, codes.PROBE
local CREDIT, CREDIT_REQUEST = codes.CREDIT, codes.CREDIT_REQUEST
local ACK_REQUEST, TAKES_PSN = codes.ACK_REQUEST, U.takes_psn

local function of_control(pds)
  local kind, payload = pds["pds.ctl_type"], pds["pds.payload"]
  local units = payload % 0x1000000 * 256
  local text = " " .. name(controls, kind)
  if TAKES_PSN[kind] or kind == ACK_REQUEST or kind == PROBE then text = text .. format(" PSN %d", pds["pds.psn"]) end
  text = text .. ends(pds)
  if kind == CLEAR_COMMAND or kind == CLEAR_REQUEST then
    text = text .. format(" up to PSN %d", payload)
  elseif kind == PROBE then
    text = text .. format(" probe 0x%04x", pds["pds.probe_opaque"])
  elseif kind == CREDIT then
    text = text .. format(" %d B", units)
  elseif kind == CREDIT_REQUEST then
    text = text .. format(" CCC 0x%02x wants %d B", (payload - payload % 0x1000000) / 0x1000000, units)
  end
  return text .. flags(pds, ROD_RETX)
end

local OF = {
  request = of_request, request_cc = of_request, rudi = of_rudi, uud = function() return "" end,
  ack = of_ack, ack_cc = of_ack, ack_ccx = of_ack, nack = of_nack, nack_ccx = of_nack, control = of_control,
}

-- The packet delivery header.
function U.pds_summary(p)
  local of = OF[p.pds_layout.name]
  return name(types, p.kind) .. (of and of(p.pds, p) or format(" (reserved type), %d B", p.payload_bytes))
end

-- The part of a message that a packet carries, unless it is the start.
local function part(length, offset, whole)
  if offset then return format(" %d B at %d of %d B", length, offset, whole) end
  return format(" %d B", whole)
end

-- A number of 128 bits.
local function wide(s, at)
  local digits = {}
  for i = 1, 16 do digits[i] = format("%02x", byte(s, at + i)) end
  local number = concat(digits):gsub("^0+", "")
  return "0x" .. (number == "" and "0" or number)
end

local function extension(p)
  local ext = p.ext
  if not ext then return "" end
  if ext["ses.eager_length"] then return format(" with the first %d B", ext["ses.eager_length"]) end
  local text = " " .. name(atomics, ext["ses.atomic_opcode"]) .. " " .. name(datatypes, ext["ses.atomic_datatype"])
  if p.ext_layout.name == "compare_swap" then
    text = text .. " " .. wide(p.s, p.ext_at + 4) .. " to " .. wide(p.s, p.ext_at + 20)
  end
  return text
end

-- The form of a request's header, if it is not the standard one.
local FORMS = { medium = " MEDIUM", small = " SMALL" }

-- The semantic header.
function U.ses_summary(p)
  local ses = p.ses
  local length, offset = ses["ses.payload_length"], ses["ses.message_offset"]
  if p.opcode then
    return name(opcodes, p.opcode) .. (FORMS[p.ses_layout.name] or "")
      .. part(length, offset, ses["ses.request_length"]) .. extension(p) .. flags(ses, OF_MESSAGE)
  end
  local text = name(responses, ses["ses.opcode"]) .. " " .. name(return_codes, ses["ses.return_code"])
  if offset then return text .. part(length, offset, ses["ses.modified_length"]) end
  if length then return text .. format(" %d B for PSN %d", length, ses["ses.original_request_psn"]) end
  if ses["ses.modified_length"] == 0 then return text end
  return text .. format(" %d B", ses["ses.modified_length"])
end

function U.tss_summary(p)
  local tss, counter = p.tss, p.tss_at + p.tss_layout.bytes - 8
  local text = format("TSS SDI 0x%06x", tss["tss.sdi"])
  if tss["tss.ssi"] then text = text .. format(" SSI 0x%08x", tss["tss.ssi"]) end
  return text .. format(" AN %d epoch %d counter %.0f", tss["tss.an"], u16(p.s, counter),
    u16(p.s, counter + 2) * 4294967296 + u32(p.s, counter + 4))
end

-- The summary of the whole packet. Only this dissector reads the cleartext headers of a secured packet.
function U.summary(p)
  local text
  if p.pds then text = U.pds_summary(p) end
  if p.tss then text = U.tss_summary(p) .. (text and " " .. text or format(", %d B encrypted", p.payload_bytes)) end
  if p.ses then text = text .. " " .. U.ses_summary(p) end
  text = text or "UET"
  if p.trimmed then
    text = text .. ", trimmed" .. (p.last_hop and " at the last hop" or "") .. " in " .. p.trimmed_layer
    if p.missing then text = text .. format(" by %d B", p.missing) end
  end
  if p.wire > p.caught then text = text .. format(", %d of %d B captured", p.caught, p.wire) end
  return p.malformed and text .. ", malformed" or text
end
