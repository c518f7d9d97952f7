-- Values that a packet does not carry but says.
local byte = string.byte
local u32, psn_add = U.u32, U.psn_add
local codes = U.registries.CtlType.codes
local CLEAR_COMMAND, CLEAR_REQUEST, CREDIT = codes.CLEAR_COMMAND, codes.CLEAR_REQUEST, codes.CREDIT
local SACK_AT = U.at("ack_cc", "pds.sack_bitmap")

-- The runs of PSNs that a bitmap says have been received, as a list of first, last, first, last. The summary, the context
-- and the tree of a packet share it.
function U.sacked(p)
  if p.runs then return p.runs end
  local runs, base = {}, psn_add(p.pds["pds.cack_psn"], p.pds["pds.sack_psn_offset"])
  local first
  for bit = 0, 63 do
    local place = p.pds_at + SACK_AT + 7 - (bit - bit % 8) / 8
    if U.rshift(byte(p.s, place + 1), bit % 8) % 2 == 1 then
      first = first or bit
    elseif first then
      runs[#runs + 1], runs[#runs + 2] = psn_add(base, first), psn_add(base, bit - 1)
      first = nil
    end
  end
  if first then runs[#runs + 1], runs[#runs + 2] = psn_add(base, first), psn_add(base, 63) end
  p.runs = runs
  return runs
end

-- Returns true if the bitmap has a bit set.
function U.has_sack(p)
  local at = p.pds_at + SACK_AT
  return u32(p.s, at) ~= 0 or u32(p.s, at + 4) ~= 0
end

-- Calls `give(name, value)` for each derived value but the runs.
function U.each_derived(p, give)
  local pds, ses = p.pds, p.ses
  if pds then
    local cack, psn = pds["pds.cack_psn"], pds["pds.psn"]
    if pds["pds.ack_psn_offset"] then give("pds.ack_psn", psn_add(cack, pds["pds.ack_psn_offset"])) end
    if pds["pds.sack_psn_offset"] then
      give("pds.sack_psn", psn_add(cack, pds["pds.sack_psn_offset"]))
      if pds["pds.mpr"] > 0 then give("pds.mp_range", 128 * pds["pds.mpr"]) end
    end
    local kind = pds["pds.ctl_type"]
    if pds["pds.clear_psn_offset"] then
      give("pds.clear_psn", psn_add(psn, pds["pds.clear_psn_offset"]))
    elseif kind == CLEAR_COMMAND or kind == CLEAR_REQUEST then
      give("pds.clear_psn", pds["pds.payload"])
    end
    if pds["pds.psn_offset"] then give("pds.start_psn", psn_add(psn, -pds["pds.psn_offset"])) end
    local service = pds["pds.service_time"]
    if service and service > 0 then give("pds.service_time_ns", service * 128) end
    if pds["pds.rcvd_bytes"] then give("pds.rcvd_bytes_bytes", pds["pds.rcvd_bytes"] * 256) end
    local credit = pds["pds.credit"] or kind == CREDIT and pds["pds.payload"] % 0x1000000
    if credit then give("pds.credit_bytes", credit * 256) end
  end
  if ses and ses["ses.message_offset"] then
    give("ses.end_offset", ses["ses.message_offset"] + ses["ses.payload_length"])
  end
end
