-- A packet as a sentence: the Info column, and the lines of the layers in the tree.
local format, concat = string.format, table.concat
local psn_add = U.psn_add
local registries = U.registries
local types, controls = registries.PdsType.names, registries.CtlType.names
local nack_codes, opcodes = registries.NackCode.names, registries.Opcode.names
local responses, return_codes = registries.ResponseOpcode.names, registries.ReturnCode.names
local requests, states = registries.AckRequest.names, registries.CcType.names
local atomics, datatypes = registries.AtomicOpcode.names, registries.AtomicDatatype.names

local function name(names, code)
  return names[code] or format("0x%02x", code)
end
U.name_of = name

-- Who to whom, by the identifiers of the context.
local function ends(pds)
  local other = pds["pds.dpdcid"]
  if other then return format(" 0x%04x > 0x%04x", pds["pds.spdcid"], other) end
  return format(" SYN 0x%04x > ?", pds["pds.spdcid"])
end

local function of_request(pds, kind)
  local text = name(types, kind) .. " PSN " .. format("%d", pds["pds.psn"])
  if pds["pds.flags.retx"] == 1 then text = text .. " RETX" end
  return text .. ends(pds)
end

local function of_ack(p, pds, kind)
  local cack, offset = pds["pds.cack_psn"], pds["pds.ack_psn_offset"]
  local text = name(types, kind) .. format(" up to %d", cack)
  if not offset then
    text = text .. " PROBED"
  elseif offset ~= 0 then
    text = text .. format(" for %d", psn_add(cack, offset))
  end
  if pds["pds.flags.retx"] == 1 then text = text .. " RETX" end
  text = text .. ends(pds)
  if pds["pds.flags.m"] == 1 then text = text .. " ECN" end
  if pds["pds.flags.req"] ~= 0 then text = text .. " " .. name(requests, pds["pds.flags.req"]) end
  if pds["pds.sack_psn_offset"] and U.has_sack(p) then
    local runs, parts = U.sacked(p), {}
    for i = 1, math.min(#runs, 8), 2 do
      parts[#parts + 1] = runs[i] == runs[i + 1] and format("%d", runs[i]) or format("%d-%d", runs[i], runs[i + 1])
    end
    if #runs > 8 then parts[#parts + 1] = "..." end
    text = text .. " SACK " .. concat(parts, " ")
  end
  if pds["pds.credit"] then text = text .. format(" credit %d B", pds["pds.credit"] * 256) end
  return text
end

local function of_nack(pds, kind)
  local psn = pds["pds.nack_psn"]
  local text = name(types, kind) .. " " .. name(nack_codes, pds["pds.nack_code"])
  if not psn then return text .. format(" of packet 0x%08x", pds["pds.nack_pkt_id"]) end
  return text .. format(" of PSN %d", psn) .. ends(pds)
end

local function of_control(pds)
  local kind, payload = pds["pds.ctl_type"], pds["pds.payload"]
  local text = "CP " .. name(controls, kind)
  if kind == 2 or kind == 3 or kind == 6 then
    text = text .. format(" %d", payload)
  elseif kind == 7 then
    text = text .. format(" %d B", payload % 0x1000000 * 256)
  elseif kind ~= 8 then
    text = text .. format(" PSN %d", pds["pds.psn"])
  end
  if pds["pds.flags.retx"] == 1 then text = text .. " RETX" end
  return text .. ends(pds)
end

-- The packet delivery header.
function U.pds_summary(p)
  local pds, kind, layout = p.pds, p.kind, p.pds_layout.name
  if layout == "request" or layout == "request_cc" then return of_request(pds, kind) end
  if layout == "ack" or layout == "ack_cc" or layout == "ack_ccx" then return of_ack(p, pds, kind) end
  if layout == "nack" or layout == "nack_ccx" then return of_nack(pds, kind) end
  if layout == "control" then return of_control(pds) end
  if layout == "rudi" then
    return name(types, kind) .. format(" packet 0x%08x", pds["pds.pkt_id"]) .. (pds["pds.flags.retx"] == 1 and " RETX" or "")
  end
  if layout == "uud" then return name(types, kind) end
  return "type " .. name(types, kind)
end

local PLACES = { [0] = "", " [SOM]", " [EOM]", " [SOM EOM]" }

-- The semantic header.
function U.ses_summary(p)
  local ses = p.ses
  if not p.opcode then
    local text = name(responses, ses["ses.opcode"]) .. " " .. name(return_codes, ses["ses.return_code"])
    if ses["ses.message_id"] then text = text .. format(" message %d", ses["ses.message_id"]) end
    local of = ses["ses.read_request_message_id"]
    if of then text = text .. format(" of read %d", of) end
    if ses["ses.payload_length"] then
      text = text .. format(" %d B", ses["ses.payload_length"])
      if ses["ses.message_offset"] then text = text .. format(" at %d", ses["ses.message_offset"]) end
    elseif ses["ses.modified_length"] > 0 then
      text = text .. format(" %d B", ses["ses.modified_length"])
    end
    return text
  end
  local text = name(opcodes, p.opcode)
  local ext = p.ext
  if ext and ext["ses.atomic_opcode"] then
    text = text .. " " .. name(atomics, ext["ses.atomic_opcode"]) .. " " .. name(datatypes, ext["ses.atomic_datatype"])
  end
  local offset = ses["ses.message_offset"]
  if offset then
    text = text .. format(" %d+%d of %d B", offset, ses["ses.payload_length"], ses["ses.request_length"])
  else
    text = text .. format(" %d B", ses["ses.request_length"])
  end
  text = text .. PLACES[ses["ses.som"] + 2 * ses["ses.eom"]]
  if ses["ses.ie"] == 1 then text = text .. " GIVEN UP" end
  return text
end

function U.tss_summary(p)
  local tss = p.tss
  local text = format("TSS sdi %d an %d", tss["tss.sdi"], tss["tss.an"])
  if tss["tss.ssi"] then text = text .. format(" ssi 0x%08x", tss["tss.ssi"]) end
  return text
end

-- The whole packet.
function U.summary(p)
  local text
  if p.pds then text = U.pds_summary(p) end
  if p.tss then text = U.tss_summary(p) .. (text and " " .. text or format(" %d B encrypted", p.payload_bytes)) end
  if p.ses then text = text .. " " .. U.ses_summary(p) end
  text = text or "UET"
  if p.trimmed then text = text .. (p.last_hop and " [trimmed at the last hop]" or " [trimmed]") end
  if p.malformed then text = text .. " [malformed]" end
  return text
end
