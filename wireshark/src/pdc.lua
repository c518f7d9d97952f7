-- Tracks contexts (PDCs) in both directions on the first pass, and relates packets to ACKs, NACKs and retransmissions.
-- Memory grows with the number of contexts and of unacknowledged packets. Results for a frame are kept only if
-- Wireshark will show the frame again (see dissector.lua).
local psn_add, psn_ahead = U.psn_add, U.psn_ahead

local DEFAULT_RANGE = 1024
-- Unacknowledged packets are forgotten after this many PSNs.
local FORGET = 65536

local function set(registry, ...)
  local codes = {}
  for _, name in ipairs({ ... }) do codes[registry.codes[name]] = true end
  return codes
end

local types, next_headers = U.registries.PdsType, U.registries.NextHdr
local REQUEST = set(types, "RUD_REQ", "ROD_REQ", "RUD_CC_REQ", "ROD_CC_REQ")
local ACK = set(types, "ACK", "ACK_CC", "ACK_CCX")
local NACK = set(types, "NACK", "NACK_CCX")
local CONTROL, UUD = types.codes.CP, types.codes.UUD_REQ
local RUDI_REQ, RUDI_RESP = types.codes.RUDI_REQ, types.codes.RUDI_RESP
local TAKES_PSN = U.takes_psn
local RESPONSE_DATA = set(next_headers, "UET_HDR_RESPONSE_DATA", "UET_HDR_RESPONSE_DATA_SMALL")

-- `U.pdcs` holds all contexts; `U.ends` maps the addresses of a packet to its sender.
function U.forget_all()
  U.pdcs, U.ends, U.frames = {}, {}, {}
  U.totals = { packets = 0, rudi = 0, uud = 0, tss = 0, malformed = 0 }
end
U.forget_all()

-- Returns the sender with these addresses: its contexts by its own identifiers, and its peer in `back`.
local function sender(p)
  local addresses, back
  local s, ip = p.s, p.ip
  if not ip then
    addresses, back = "", ""
  elseif p.version == 4 then
    addresses = s:sub(ip + 13, ip + 20)
  else
    addresses = s:sub(ip + 9, ip + 40)
  end
  local found = U.ends[addresses]
  if found then return found end
  local half = #addresses / 2
  back = addresses:sub(half + 1) .. addresses:sub(1, half)
  local this = { contexts = {}, rudi = {} }
  this.back = U.ends[back] or { contexts = {}, rudi = {} }
  this.back.back = this
  U.ends[back], U.ends[addresses] = this.back, this
  return this
end

local function new_half(pdc, direction)
  return {
    pdc = pdc, direction = direction, sent = {}, messages = {}, reads = {}, range = DEFAULT_RANGE,
    packets = 0, bytes = 0, retransmissions = 0, duplicates = 0,
  }
end

local function new_pdc(p, ends, id, from_initiator)
  local pdc = { index = #U.pdcs, first = p.number, nacks = {}, times = {}, measured = 0 }
  U.pdcs[#U.pdcs + 1] = pdc
  pdc.forward, pdc.back = new_half(pdc, "forward"), new_half(pdc, "return")
  pdc.forward.peer, pdc.back.peer = pdc.back, pdc.forward
  local half = from_initiator and pdc.forward or pdc.back
  local s, ip = p.s, p.ip
  if ip then
    local width = p.version == 4 and 4 or 16
    local source = p.version == 4 and ip + 12 or ip + 8
    local a, b = s:sub(source + 1, source + width), s:sub(source + width + 1, source + 2 * width)
    if not from_initiator then a, b = b, a end
    pdc.initiator, pdc.target = a, b
  end
  if id and id ~= 0 then
    ends.contexts[id], half.id = half, id
  end
  return half
end

-- Returns the half of a context that sent this packet.
local function find(p, ends, own, other, from_initiator)
  local half = own ~= 0 and ends.contexts[own]
  local peers = ends.back.contexts
  if half and (not other or not half.peer.id or half.peer.id == other) then
    if other and not half.peer.id and other ~= 0 then
      peers[other], half.peer.id = half.peer, other
    end
    return half
  end
  local peer = other and other ~= 0 and peers[other]
  if peer and (not peer.peer.id or peer.peer.id == own or own == 0) then
    half = peer.peer
    if own ~= 0 then
      ends.contexts[own], half.id = half, own
    end
    return half
  end
  half = new_pdc(p, ends, own, from_initiator)
  if other and other ~= 0 then
    peers[other], half.peer.id = half.peer, other
  end
  return half
end

-- Handles a packet with a PSN of its own.
local function on_request(p, a, half, psn, retx)
  local sent, pdc = half.sent, half.pdc
  local e = sent[psn]
  half.packets, half.bytes = half.packets + 1, half.bytes + p.payload_bytes
  if e or half.cack and psn_ahead(psn, half.cack) <= 0 then
    if retx == 1 then
      a.retransmission, a.retransmission_of = true, e and e.frame
      half.retransmissions = half.retransmissions + 1
    else
      a.duplicate, a.duplicate_of = true, e and e.frame
      half.duplicates = half.duplicates + 1
    end
    if e then
      if retx == 1 then
        e.again = true
        e.a.retransmitted_in = e.a.retransmitted_in or p.number
        local refused = e.nack
        if refused then
          a.answers_nack, refused.retransmitted_in, e.nack = refused.number, p.number, nil
        end
      end
      if not e.message and p.ses then U.message_packet(p, a, half, e, psn) else a.message = e.message end
    end
    return
  end
  if retx == 1 then
    a.retransmission = true
    half.retransmissions = half.retransmissions + 1
  end
  local highest = half.highest
  local ahead = highest and psn_ahead(psn, highest) or 1
  if ahead > 0 then
    if ahead > 1 then a.gap = ahead - 1 end
    half.highest = psn
  end
  local base = half.cack or pdc.start and psn_add(pdc.start, -1)
  if base and psn_ahead(psn, base) > half.range then a.outside_window = true end
  e = { frame = p.number, time = p.time, a = a, again = retx == 1 }
  sent[psn] = e
  sent[psn_add(psn, -FORGET)] = nil
  if p.ses then U.message_packet(p, a, half, e, psn) end
end

local function acknowledged(p, a, e, half)
  if e.acked then return end
  e.acked = true
  local of, count = e.a, (a.acks_count or 0) + 1
  of.acked_in, of.response_time = p.number, p.time - e.time
  a.acks_count = count
  if count <= 8 then
    local acks = a.acks
    if not acks then
      acks = {}
      a.acks = acks
    end
    acks[count] = e.frame
  end
  if not e.again then U.measure(half.pdc, p.time - e.time) end
  if e.message then U.message_acknowledged(p, e.message, half) end
end

-- Marks all packets up to `cack` as acknowledged and forgets them.
local function advance(p, a, half, cack)
  local old = half.cack or half.pdc.start and psn_add(half.pdc.start, -1)
  local sent = half.sent
  local ahead = old and psn_ahead(cack, old)
  if ahead and ahead <= 0 then
    half.cack = half.cack or cack
    return ahead == 0
  end
  half.cack = cack
  if ahead and ahead <= FORGET then
    for step = 1, ahead do
      local psn = psn_add(old, step)
      local e = sent[psn]
      if e then
        acknowledged(p, a, e, half)
        sent[psn] = nil
      end
    end
  else
    local done = {}
    for psn, e in pairs(sent) do
      if psn_ahead(psn, cack) <= 0 then done[#done + 1] = psn end
    end
    table.sort(done)
    for _, psn in ipairs(done) do
      acknowledged(p, a, sent[psn], half)
      sent[psn] = nil
    end
  end
  return true
end

local function on_ack(p, a, half, pds)
  local of = half.peer
  -- The reply to a probe reports received packets; its cumulative PSN is ignored.
  local offset = pds["pds.ack_psn_offset"]
  local cack = pds["pds.cack_psn"]
  local named = offset and of.sent[psn_add(cack, offset)]
  if named then
    a.response_to, a.response_time = named.frame, p.time - named.time
    acknowledged(p, a, named, of)
  end
  if offset then
    if of.highest and psn_ahead(cack, of.highest) > 0 then a.ack_unseen = true end
    local newest = advance(p, a, of, cack)
    local mpr = pds["pds.mpr"]
    if mpr and newest then of.range = mpr == 0 and math.huge or mpr * 128 end
  end
  if pds["pds.sack_psn_offset"] and U.has_sack(p) then
    local runs = U.sacked(p)
    for i = 1, #runs, 2 do
      for step = 0, psn_ahead(runs[i + 1], runs[i]) do
        local e = of.sent[psn_add(runs[i], step)]
        if e then acknowledged(p, a, e, of) end
      end
    end
  end
  if p.ses and p.ses["ses.list"] then U.message_response(p, a, half) end
end

local function on_nack(p, a, half, pds)
  local code = pds["pds.nack_code"]
  a.nack = code
  half.pdc.nacks[code] = (half.pdc.nacks[code] or 0) + 1
  local e = half.peer.sent[pds["pds.nack_psn"]]
  if e then
    a.nack_for, e.a.nacked_in, a.number = e.frame, p.number, p.number
    e.nack = a
  end
end

local function on_rudi(p, a, ends, pds)
  local id = pds["pds.pkt_id"]
  U.totals.rudi = U.totals.rudi + 1
  if p.kind == RUDI_REQ then
    local e = ends.rudi[id]
    if e then
      if pds["pds.flags.retx"] == 1 then
        a.retransmission, a.retransmission_of = true, e.frame
      else
        a.duplicate, a.duplicate_of = true, e.frame
      end
    else
      ends.rudi[id] = { frame = p.number, time = p.time, a = a }
    end
  else
    local e = ends.back.rudi[id]
    if e then
      a.answer_to, a.response_time = e.frame, p.time - e.time
      e.a.answer_in, e.a.response_time = p.number, p.time - e.time
      ends.back.rudi[id] = nil
    end
  end
end

-- Updates the contexts with this packet and returns the facts to show with it.
function U.follow(p)
  local pds, kind = p.pds, p.kind
  local totals = U.totals
  totals.packets = totals.packets + 1
  if p.malformed then totals.malformed = totals.malformed + 1 end
  if not pds then
    if p.tss then totals.tss = totals.tss + 1 end
    return nil
  end
  if kind == UUD then totals.uud = totals.uud + 1 end
  local ends = sender(p)
  local a = {}
  if kind == RUDI_REQ or kind == RUDI_RESP then
    on_rudi(p, a, ends, pds)
    return a
  end
  local own, other = pds["pds.spdcid"], pds["pds.dpdcid"]
  if not own or pds["pds.flags.nt"] == 1 then return a end
  local request = REQUEST[kind]
  local from_initiator = request and not RESPONSE_DATA[pds["pds.next_hdr"]] or kind == CONTROL
  local half = find(p, ends, own, other, from_initiator)
  local offset = pds["pds.psn_offset"]
  if offset and (request or kind == CONTROL) then
    local start = psn_add(pds["pds.psn"], -offset)
    local pdc = half.pdc
    if pdc.start and pdc.start ~= start and half == pdc.forward then
      -- The initiator reuses the identifier for a new context.
      half = new_pdc(p, ends, own, true)
      pdc = half.pdc
    end
    pdc.start = start
  end
  a.pdc, a.direction = half.pdc.index, half.direction
  if request then
    on_request(p, a, half, pds["pds.psn"], pds["pds.flags.retx"])
    if p.ses and p.ses["ses.list"] then
      local e = half.sent[pds["pds.psn"]]
      if a.retransmission or a.duplicate then
        a.message = a.message or e and e.answers
      else
        U.message_response(p, a, half)
        if e then e.answers = a.message end
      end
    end
  elseif kind == CONTROL then
    if TAKES_PSN[pds["pds.ctl_type"]] then on_request(p, a, half, pds["pds.psn"], pds["pds.flags.retx"])
    else half.packets = half.packets + 1 end
  else
    half.packets = half.packets + 1
    if ACK[kind] then on_ack(p, a, half, pds) elseif NACK[kind] then on_nack(p, a, half, pds) end
  end
  return a
end
