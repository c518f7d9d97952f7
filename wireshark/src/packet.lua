-- From the bytes of a frame to a packet: where each header lies, and what its fields say. The lengths of the
-- layers around UET are read here too: only they tell padding, a trailer and a trimmed packet apart.
local byte = string.byte
local u16, rshift = U.u16, U.rshift
local settings = U.settings
local TSS = U.registries.PdsType.codes.TSS

-- Enough for the longest headers behind the start of UET.
U.LONGEST = 4 + 16 + 40 + 44 + 36

-- Returns true if the chain of extension headers of the IPv6 header at `at` ends at `goal` with `proto`.
local function leads_to(s, at, goal, proto)
  local next_header, place = byte(s, at + 7), at + 40
  if not next_header then return false end
  while place < goal and next_header ~= proto do
    local unit = next_header == 51 and 4 or 8
    local length = next_header == 44 and 8 or (byte(s, place + 2) or 0) * unit + 8
    next_header, place = byte(s, place + 1), place + length
  end
  return place == goal and next_header == proto
end

-- Returns the offset of UDP behind an IP header at `at`, or nil.
function U.udp_behind(s, at)
  local first = byte(s, at + 1) or 0
  if first >= 0x45 and first < 0x50 and byte(s, at + 10) == 17 then return at + first % 16 * 4 end
  if first < 0x60 or first >= 0x70 then return nil end
  for udp = at + 40, #s - 8, 4 do
    if leads_to(s, at, udp, 17) then return udp end
  end
end

-- The IP header whose payload, or whose UDP payload, starts at `place`: where it is, its version, and whether
-- there is UDP.
local function find_ip(s, place)
  if place < 20 then return nil end
  -- The usual case: IPv4 without options, and UDP.
  if place >= 28 and byte(s, place - 27) == 0x45 and byte(s, place - 18) == 17 then return place - 28, 4, true end
  for udp = 1, 0, -1 do
    local start, proto = place - udp * 8, udp == 1 and 17 or settings.ip_proto
    for words = 5, 15 do
      local at = start - words * 4
      if at >= 0 and byte(s, at + 1) == 0x40 + words and byte(s, at + 10) == proto then return at, 4, udp == 1 end
    end
    -- IPv6, with extension headers that lead here.
    for at = start - 40, math.max(start - 40 - 512, 0), -4 do
      local first = byte(s, at + 1)
      if first >= 0x60 and first < 0x70 and leads_to(s, at, start, proto) then return at, 6, udp == 1 end
    end
  end
end

-- Sets where the packet ends, what of it is missing, and whether a switch cut it.
local function bound(p, s, caught, wire, frame)
  local gone, last = wire - caught, caught
  local ip, uet = p.ip, p.uet
  if ip then
    local room = caught - ip
    local total = p.version == 4 and u16(s, ip + 2) or u16(s, ip + 4) + 40
    p.dscp = p.version == 4 and rshift(byte(s, ip + 2), 2) or rshift(u16(s, ip), 6) % 64
    if total == 0 then
      -- Captured before a network card filled it in.
      gone = wire - caught
    elseif total <= room then
      last, gone = ip + total, 0
    else
      local missing = total - room
      if missing > wire - caught then p.overrun, p.ip_short = { "ip.total_length", total, room + wire - caught }, true end
      gone = missing
    end
    p.ip_end = last
    if p.udp then
      local length, there = u16(s, p.udp + 4) - 8, last - uet
      if length < 0 then
        p.overrun = { "udp.length", length + 8, 8 }
      elseif length <= there then
        last, gone = uet + length, 0
        p.ip_end = last
      else
        local absent = length - there
        if absent > gone then p.trimmed, p.missing = true, absent - gone end
        gone = absent
      end
    end
    if settings.by_dscp then
      local last_hop = settings.trimmed_lasthop[p.dscp] or false
      if last_hop or settings.trimmed[p.dscp] then
        p.trimmed, p.last_hop = true, last_hop
        -- Many switches leave the IP length as it was. It then tells the missing bytes, and is no error.
        if p.ip_short and p.overrun[1] == "ip.total_length" then p.overrun = nil end
        if not p.missing and gone > wire - caught then p.missing = gone - (wire - caught) end
      end
    end
  end
  local kind = settings.trailer_kind
  if kind == "auto" then kind = U.recognize_trailer(p, s, last, gone, frame) end
  if p.trimmed and not p.missing then
    -- The end of the packet is unknown, so it counts as having no trailer.
    gone = math.huge
  elseif kind then
    p.trailer_kind = kind
    local bytes = U.layouts[kind].bytes
    local start = last - uet + gone - bytes
    if start < 0 then
      p.cut, p.cut_at, p.present = U.layouts[kind], uet, last - uet
    elseif start > last - uet then
      gone = start - (last - uet)
    elseif gone == 0 then
      p.trailer, p.trailer_bytes = uet + start, last - uet - start
      last = uet + start
    else
      -- The rest of a cut trailer.
      p.partial = last - uet - start
      last, gone = uet + start, 0
    end
  end
  p.last, p.gone = last, gone
end

-- Notes that a header is not all there.
local function cut(p, layout, at)
  p.cut, p.cut_at, p.present = layout, at, math.max(p.last - at, 0)
end

-- Reads the UET headers between `p.uet` and `p.last`.
local function headers(p, s)
  local at, last = p.uet, p.last
  -- One byte is enough to know what the packet is, and so what is cut.
  local first = last > at and byte(s, at + 1) or 0
  local kind = rshift(first, 3)
  if kind == TSS then
    local layout = first % 8 >= 4 and U.layouts.tss_ssi or U.layouts.tss
    if last - at < layout.bytes then return cut(p, layout, at) end
    p.tss, p.tss_layout, p.tss_at = layout.read(s, at), layout, at
    at = at + layout.bytes
    p.payload, p.payload_bytes = at, last - at
    if not p.opened then
      local readable = U.readable_bytes(p)
      p.encrypted = math.min(last, at + readable)
      if readable < 2 or last - at < 2 then return end
      -- Reads the cleartext headers. Their end inside a header is no error.
      p.clear = true
      last = p.encrypted
    end
    first = byte(s, at + 1) or 0
    kind = rshift(first, 3)
  end
  local layout = U.pds_layouts[kind] or U.layouts.prologue
  if last - at < layout.bytes then
    if not p.clear then cut(p, layout, at) end
    return
  end
  local pds = layout.read(s, at)
  p.pds, p.pds_layout, p.pds_at, p.kind = pds, layout, at, kind
  at = at + layout.bytes
  p.payload, p.payload_bytes = at, p.last - at
  layout = layout ~= U.layouts.prologue and U.ses_layouts[pds["pds.next_hdr"]]
  if not layout then return end
  if last - at < layout.bytes then
    if p.clear then return end
    p.payload = nil
    return cut(p, layout, at)
  end
  local ses = layout.read(s, at)
  p.ses, p.ses_layout, p.ses_at = ses, layout, at
  at = at + layout.bytes
  p.payload, p.payload_bytes = at, p.last - at
  if ses["ses.list"] then return end
  local opcode = ses["ses.opcode"]
  p.opcode = opcode
  if U.rendezvous[opcode] then
    layout = U.layouts.rendezvous
  elseif U.atomic[opcode] then
    layout = U.layouts.atomic
    if last - at >= layout.bytes and U.compare_and_swap[byte(s, at + 1)] then layout = U.layouts.compare_swap end
  else
    return
  end
  if last - at < layout.bytes then
    if p.clear then return end
    p.payload = nil
    return cut(p, layout, at)
  end
  p.ext, p.ext_layout, p.ext_at = layout.read(s, at), layout, at
  p.payload, p.payload_bytes = at + layout.bytes, p.last - at - layout.bytes
end

-- Copies the result of `headers` for the same bytes in another string.
local function same_headers(p, q)
  local by = p.uet - q.uet
  p.tss, p.tss_layout, p.tss_at = q.tss, q.tss_layout, q.tss and q.tss_at + by
  p.pds, p.pds_layout, p.pds_at = q.pds, q.pds_layout, q.pds and q.pds_at + by
  p.ses, p.ses_layout, p.ses_at = q.ses, q.ses_layout, q.ses and q.ses_at + by
  p.ext, p.ext_layout, p.ext_at = q.ext, q.ext_layout, q.ext and q.ext_at + by
  p.kind, p.opcode, p.clear, p.payload_bytes = q.kind, q.opcode, q.clear, q.payload_bytes
  p.payload, p.encrypted = q.payload and q.payload + by, q.encrypted and q.encrypted + by
end

-- Returns true if a header ends early only because the end of the packet is missing. If IP promises more bytes than
-- were sent, this excuses only a missing trailer.
local function explained(p)
  local absent = p.gone
  if p.overrun and not p.trimmed and p.cut.layer ~= "trailer" then absent = p.wire - p.caught end
  return p.cut.bytes - p.present <= absent
end

-- The packet of which a dissector was called at `place`, in a frame of which `caught` bytes of `wire` were kept.
-- `s` is the start of the frame. `q` is the packet as read without its outer headers, or nil. `frame` has the bytes of
-- the whole frame in `tvb`, its `number`, and `learns` on the first pass.
function U.packet(s, place, caught, wire, frame, q)
  -- With room for what most packets have: a table that grows costs more than all of its fields.
  local p = {
    s = s, uet = place, caught = caught, wire = wire, payload_bytes = 0, ip = nil, version = nil, udp = nil, ip_end = nil,
    dscp = nil, last = nil, gone = nil, pds = nil, pds_layout = nil, pds_at = nil, kind = nil, payload = nil, ses = nil,
  }
  local ip, version, has_udp = find_ip(s, place)
  if ip then
    p.ip, p.version = ip, version
    if has_udp then
      p.udp = place - 8
    else
      p.entropy, p.uet = place, place + U.layouts.entropy.bytes
    end
  end
  bound(p, s, caught, wire, frame)
  if p.entropy and p.ip and p.last < p.uet then
    p.uet = p.entropy
    p.entropy = nil
    cut(p, U.layouts.entropy, p.uet)
  end
  if not p.cut then
    if q and not q.cut and q.last - q.uet == p.last - p.uet then
      same_headers(p, q)
    else
      headers(p, s)
    end
    if frame.tvb and p.tss and U.open(p, frame.tvb) then
      p.s = p.opened
      p.clear, p.encrypted = nil, nil
      headers(p, p.s)
    end
    if p.trimmed then p.trimmed_layer = p.cut and p.cut.layer or "payload" end
    if not p.cut and p.partial and p.partial > 0 then
      local layout = U.layouts[p.trailer_kind]
      p.cut, p.cut_at, p.present, p.gone = layout, p.last, p.partial, layout.bytes
    end
  elseif p.trimmed then
    p.trimmed_layer = "payload"
  end
  p.unexplained = p.cut and not explained(p)
  p.malformed = p.overrun ~= nil or p.unexplained
  -- Only the start of a secured packet is readable, so its lengths are unknown.
  p.whole = not p.trimmed and wire <= caught and not p.cut and not p.clear
  return p
end

-- Notes that the packet breaks a requirement; `row` says which reserved bits are set.
function U.found(p, id, field, value, row)
  local findings = p.findings
  if not findings then
    findings = {}
    p.findings = findings
  end
  findings[#findings + 1] = { id, field, value, row }
end
