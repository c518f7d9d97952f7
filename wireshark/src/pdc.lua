-- Tracks contexts (PDCs) in both directions on the first pass, and relates packets to ACKs, NACKs and retransmissions.
-- Memory grows with the number of contexts and of unacknowledged packets. Results for a frame are kept only if
-- Wireshark will show the frame again (see dissector.lua).
local psn_add, psn_ahead, abs, min = U.psn_add, U.psn_ahead, math.abs, math.min

local DEFAULT_RANGE = 1024
-- The least distance of two PSNs that cannot belong to the same context. No window reaches so far. When an identifier
-- is reused, the first PSN lies at least 2^16 from the last one (3.5.8).
local FAR = 32768
-- The number of contexts to look at for one identifier. Late packets may still belong to the older ones.
local LIVES = 4
-- Unacknowledged packets are forgotten after this many PSNs.
local FORGET = 65536
-- The unacknowledged packets of a half are counted in blocks of this many PSNs. An ACK skips empty blocks: one that
-- acknowledges 65,536 PSNs looks up 256 blocks, and only then the PSNs of those blocks that hold a packet.
local BLOCK = 256

-- The facts of a packet that most packets have are in an array: names would take twice the memory. MESSAGE is false
-- without a message. Rarer facts have names.
local A = { HALF = 1, FRAME = 2, TIME = 3, MESSAGE = 4 }
U.A = A
local HALF, FRAME, TIME, MESSAGE = A.HALF, A.FRAME, A.TIME, A.MESSAGE

local function set(registry, ...)
  local codes = {}
  for _, name in ipairs({ ... }) do codes[registry.codes[name]] = true end
  return codes
end

local types, next_headers = U.registries.PdsType, U.registries.NextHdr
local REQUEST = set(types, "RUD_REQ", "ROD_REQ", "RUD_CC_REQ", "ROD_CC_REQ")
local ACK = set(types, "ACK", "ACK_CC", "ACK_CCX")
local NACK = set(types, "NACK", "NACK_CCX")
local CONTROL, UUD, CLOSE_COMMAND = types.codes.CP, types.codes.UUD_REQ, U.registries.CtlType.codes.CLOSE_COMMAND
local RUDI_REQ, RUDI_RESP = types.codes.RUDI_REQ, types.codes.RUDI_RESP
local TAKES_PSN = U.takes_psn
local RESPONSE_DATA = set(next_headers, "UET_HDR_RESPONSE_DATA", "UET_HDR_RESPONSE_DATA_SMALL")

-- A context is a number from 1. The packets of one end are its half: the initiator's half has the same number, the
-- target's half has it negated. Their facts are in one table for each kind of fact: a table for each context would take
-- several times the memory. `U.ends` maps the addresses of a packet to its sender. `U.sent` maps the half and the PSN of an
-- unacknowledged packet to its facts. `U.in_block` maps the half and the first PSN of a block to the number of such packets.
local C, H = {}, {}
U.contexts, U.halves = C, H
-- While the garbage collector runs, memory grows. Larger steps end sooner and take no more time in all: with 100,000
-- contexts they save 5 % of the memory.
collectgarbage("setstepmul", 1000)
function U.forget_all()
  for _, fact in ipairs { "ends", "start", "closed", "nacks", "times", "measured", "messages" } do C[fact] = {} end
  for _, fact in ipairs { "id", "earlier", "packets", "bytes", "highest", "oldest", "cack", "range",
    "retransmissions", "duplicates" } do H[fact] = {} end
  U.ends, U.frames, U.messages, U.sent, U.in_block = {}, {}, {}, {}, {}
  U.totals = { packets = 0, rudi = 0, uud = 0, tss = 0, malformed = 0 }
end
U.forget_all()

-- Returns the sender with these addresses: its halves by its own identifiers, and its peer in `back`.
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
  local this = { address = ip and addresses:sub(1, half), contexts = {}, rudi = {} }
  this.back = U.ends[back] or { address = ip and addresses:sub(half + 1), contexts = {}, rudi = {} }
  this.back.back = this
  U.ends[back], U.ends[addresses] = this.back, this
  return this
end

-- The number of a half's context, from 0, and its direction as text.
function U.pdc_of(half)
  return abs(half) - 1
end
function U.direction_of(half)
  return half < 0 and "return" or "forward"
end

-- Names a half with an identifier of its sender, which an earlier half may have had.
local function name(ends, half, id)
  local earlier = ends.contexts[id]
  if earlier then H.earlier[half] = earlier end
  ends.contexts[id], H.id[half] = half, id
end

local function new_context(ends, from_initiator)
  local context = #C.ends + 1
  C.ends[context] = from_initiator and ends or ends.back
  return from_initiator and context or -context
end

local function near(psn, known)
  return known and abs(psn_ahead(psn, known)) < FAR
end

-- Returns true if a PSN may belong to a half. The first one is near Start_PSN.
local function reaches(half, psn)
  local highest, cack, start = H.highest[half], H.cack[half], C.start[abs(half)]
  if highest or cack then return near(psn, highest) or near(psn, cack) end
  return not start or near(psn, start)
end

-- Returns true if a half can have sent a packet with these identifiers, Start_PSN, and PSN of its own or of the other
-- half. Any of them may be missing.
local function fits(half, own, other, start, psn, answered)
  local context = abs(half)
  if own and (H.id[half] or own) ~= own or other and (H.id[-half] or other) ~= other then return false end
  if start and (C.closed[context] or not near(start, C.start[context] or start)) then return false end
  return (not psn or reaches(half, psn)) and (not answered or reaches(-half, answered))
end

-- Returns the newest half that fits, of those whose sender (`side` 1) or receiver (`side` -1) has an identifier.
local function newest(ends, id, side, ...)
  local half = id and ends.contexts[id]
  for _ = 1, LIVES do
    if not half or fits(side * half, ...) then return half and side * half end
    half = H.earlier[half]
  end
end

-- Returns the half of a context that sent a packet with these identifiers and PSNs.
local function find(ends, own, other, ...)
  return newest(ends, own, 1, own, other, ...) or newest(ends.back, other, -1, own, other, ...)
end

local function count(counts, half, by)
  counts[half] = (counts[half] or 0) + (by or 1)
end

-- The place of a packet in `U.sent`: exact for the first two million contexts.
local function place(half, psn)
  return half * 4294967296 + psn
end

-- Keeps the facts of an unacknowledged packet.
local function keep(half, psn, a)
  local block = place(half, psn - psn % BLOCK)
  U.sent[place(half, psn)], U.in_block[block] = a, (U.in_block[block] or 0) + 1
end

-- Forgets a packet that is kept.
local function forget(half, psn)
  local block = place(half, psn - psn % BLOCK)
  local left = U.in_block[block] - 1
  U.sent[place(half, psn)], U.in_block[block] = nil, left > 0 and left or nil
end

-- The PSN before the first one that is not acknowledged, if known.
local function base_of(half)
  local start = not H.cack[half] and C.start[abs(half)]
  return H.cack[half] or start and psn_add(start, -1)
end

-- Returns the message that waits for the acknowledgment of a request: not the message that its response data answers.
local function part_of(e)
  return e.part or not e.answers and e[MESSAGE]
end

-- Handles a packet with a PSN of its own. Its facts `a` are kept until its ACK.
local function on_request(p, a, half, psn, retx)
  local sent, cack, key = U.sent, H.cack[half], place(half, psn)
  local e = sent[key]
  count(H.packets, half)
  count(H.bytes, half, p.payload_bytes)
  if e or cack and psn_ahead(psn, cack) <= 0 then
    if retx == 1 then
      a.retransmission, a.retransmission_of = true, e and e[FRAME]
      count(H.retransmissions, half)
    else
      a.duplicate, a.duplicate_of = true, e and e[FRAME]
      count(H.duplicates, half)
    end
    if e then
      if retx == 1 then
        e.again = true
        e.retransmitted_in = e.retransmitted_in or p.number
        local refused = e.refused
        if refused then
          a.answers_nack, refused.retransmitted_in, e.refused = refused.number, p.number, nil
        end
      end
      local part = part_of(e)
      if not part and p.ses then U.message_packet(p, a, half, e, psn) else a[MESSAGE] = part end
    end
    return
  end
  if retx == 1 then
    a.retransmission, a.again = true, true
    count(H.retransmissions, half)
  end
  local highest = H.highest[half]
  local ahead = highest and psn_ahead(psn, highest) or 1
  if ahead > 0 then
    if ahead > 1 then a.gap = ahead - 1 end
    H.highest[half] = psn
  end
  local base = base_of(half)
  if base then
    if psn_ahead(psn, base) > (H.range[half] or DEFAULT_RANGE) then a.outside_window = true end
  elseif psn_ahead(psn, H.oldest[half] or psn) <= 0 then
    H.oldest[half] = psn
  end
  keep(half, psn, a)
  -- Even nil for a new key would take a place in the table.
  local old = psn_add(psn, -FORGET)
  if sent[place(half, old)] then forget(half, old) end
  if p.ses then U.message_packet(p, a, half, a, psn) end
end

-- Only a second pass needs further facts of a `forgotten` packet. Without one, its table need not grow for them.
local function acknowledged(p, a, e, half, forgotten)
  if e.acked_in then return end
  if e.closes then C.closed[abs(half)] = true end
  if U.shows_again or not forgotten then e.acked_in, e.response_time = p.number, p.time - e[TIME] end
  local nth = (a.acks_count or 0) + 1
  a.acks_count = nth
  if nth == 1 then a.acks = { e[FRAME] } elseif nth <= 8 then a.acks[nth] = e[FRAME] end
  if not e.again then U.measure(abs(half), p.time - e[TIME]) end
  local part = part_of(e)
  if part then U.message_acknowledged(p, part, half) end
end

-- Marks all packets up to `cack` as acknowledged and forgets them.
local function advance(p, a, half, cack)
  local old, sent = base_of(half), U.sent
  local ahead = old and psn_ahead(cack, old)
  if ahead and ahead <= 0 then
    H.cack[half] = H.cack[half] or cack
    return ahead == 0
  end
  H.cack[half] = cack
  local first = old and psn_add(old, 1) or H.oldest[half] or cack
  local step = -min(psn_ahead(cack, first), FORGET)
  while step <= 0 do
    local psn = psn_add(cack, step)
    local e = sent[place(half, psn)]
    if e then
      acknowledged(p, a, e, half, true)
      forget(half, psn)
    end
    local is_empty = not U.in_block[place(half, psn - psn % BLOCK)]
    step = step + (is_empty and BLOCK - psn % BLOCK or 1)
  end
  return true
end

local function on_ack(p, a, half, pds)
  local of, sent = -half, U.sent
  -- The reply to a probe reports received packets; its cumulative PSN is ignored.
  local offset = pds["pds.ack_psn_offset"]
  local cack = pds["pds.cack_psn"]
  local named = offset and sent[place(of, psn_add(cack, offset))]
  if named then
    a.response_time = p.time - named[TIME]
    acknowledged(p, a, named, of)
  end
  if offset then
    local highest = H.highest[of]
    if highest and psn_ahead(cack, highest) > 0 then a.ack_unseen = true end
    local newest = advance(p, a, of, cack)
    local mpr = pds["pds.mpr"]
    if mpr and newest then H.range[of] = mpr == 0 and math.huge or mpr * 128 end
  end
  if pds["pds.sack_psn_offset"] and U.has_sack(p) then
    local runs = U.sacked(p)
    for i = 1, #runs, 2 do
      for step = 0, psn_ahead(runs[i + 1], runs[i]) do
        local e = sent[place(of, psn_add(runs[i], step))]
        if e then acknowledged(p, a, e, of) end
      end
    end
  end
  if p.ses and p.ses["ses.list"] then U.message_response(p, a, half) end
end

local function on_nack(p, a, half, pds)
  local code = pds["pds.nack_code"]
  a.nack = code
  local context = abs(half)
  local nacks = C.nacks[context] or {}
  C.nacks[context] = nacks
  count(nacks, code)
  local e = U.sent[place(-half, pds["pds.nack_psn"])]
  if e then
    a.nack_for, e.nacked_in, a.number = e[FRAME], p.number, p.number
    e.refused = a
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
  if kind == RUDI_REQ or kind == RUDI_RESP then
    local a = {}
    on_rudi(p, a, ends, pds)
    return a
  end
  local own, other = pds["pds.spdcid"], pds["pds.dpdcid"]
  if not own or pds["pds.flags.nt"] == 1 then return {} end
  own, other = own ~= 0 and own, other ~= 0 and other
  local request = REQUEST[kind]
  local psn = (request or kind == CONTROL and TAKES_PSN[pds["pds.ctl_type"]]) and pds["pds.psn"]
  local offset = psn and pds["pds.psn_offset"]
  local start = offset and psn_add(psn, -offset)
  local answered = pds["pds.nack_psn"] or pds["pds.ack_psn_offset"] and pds["pds.cack_psn"]
  local half = find(ends, own, other, start, psn, answered)
  if not half and answered then
    -- A target may refuse a PSN because it lies far outside the window. An ACK of such a PSN contradicts the open
    -- context that it names (PDS-PSN-002). Without Start_PSN, it may belong to another one.
    local named = find(ends, own, other)
    if NACK[kind] then
      half = named
    elseif named and C.start[abs(named)] and not C.closed[abs(named)] then
      return { ack_unseen = true }
    end
  end
  half = half or new_context(ends, request and not RESPONSE_DATA[pds["pds.next_hdr"]] or kind == CONTROL)
  if own and not H.id[half] then name(ends, half, own) end
  if other and not H.id[-half] then name(ends.back, -half, other) end
  local context = abs(half)
  if start then C.start[context] = C.start[context] or start end
  -- An ACK gets names for which there is room from the start.
  local a = ACK[kind] and { half, p.number, p.time, false, response_time = nil, acks = nil, acks_count = nil }
    or { half, p.number, p.time, false }
  if request then
    on_request(p, a, half, psn, pds["pds.flags.retx"])
    if p.ses and p.ses["ses.list"] then
      if a.retransmission or a.duplicate then
        local first = U.sent[place(half, psn)]
        a[MESSAGE] = a[MESSAGE] or first and first.answers
      else
        U.message_response(p, a, half)
        a.answers = a[MESSAGE]
      end
    end
  elseif kind == CONTROL then
    if pds["pds.ctl_type"] == CLOSE_COMMAND then a.closes = true end
    if psn then on_request(p, a, half, psn, pds["pds.flags.retx"]) else count(H.packets, half) end
  else
    count(H.packets, half)
    if ACK[kind] then on_ack(p, a, half, pds) elseif NACK[kind] then on_nack(p, a, half, pds) end
  end
  return a
end
