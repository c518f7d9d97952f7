-- The entry points for Wireshark. The dissector of a port only records where in the frame UET starts. The real work
-- happens in the post-dissector, which has the whole frame: the outer headers are needed to recognize trimming, trailer
-- and padding, and to check a CRC.
local proto, settings, MESSAGE = U.proto, U.settings, U.A.MESSAGE
local byte, min = string.byte, math.min
local gui = gui_enabled()
-- A method of a class takes half the time of one that is looked up in an object.
local offset_of, len, reported_len, raw = Tvb.offset, Tvb.len, Tvb.reported_len, Tvb.raw

-- The offset of the payload of UDP, or of IP in the native encapsulation, in this frame, for each call.
local places, count = {}, 0
-- The packet as read in that first call, and its line.
local early, early_text
-- The frame, and a part of it that is read without its outer headers.
local whole, part = {}, { number = 0, learns = false }

-- Since 4.4 the columns can be fields, and get their values before what runs behind all others: they have to be
-- there at the first call.
local major, minor = get_version():match("^(%d+)%.(%d+)")
local columns_first = tonumber(major) * 100 + tonumber(minor) >= 402
local function set_columns(tvb, pinfo)
  local native = pinfo.match_uint == settings.ip_proto and not settings.ports[settings.ip_proto]
  local caught = len(tvb)
  early = U.packet(raw(tvb, 0, min(caught, U.LONGEST)), native and min(4, caught) or 0, caught, reported_len(tvb), part)
  -- The lengths of the frame tell the missing bytes.
  if early.wire > caught then early.caught, early.wire = pinfo.caplen, pinfo.len end
  early_text = U.summary(early)
  local columns = pinfo.cols
  columns.protocol = "UET"
  columns.info = early_text
end

-- Another dissector may have the packet by its source port, which is the entropy value: any number. UET is
-- then found from the front of the frame, behind the headers of the usual link types.
local IP_AT = { 14, 18, 22, 16, 20, 0, 4 }
local UDP, UDP_ENDPOINT = 17, 3
local function claimed_by_another(tvb, pinfo)
  local port = pinfo.dst_port
  if not settings.ports[port] or pinfo.port_type ~= UDP_ENDPOINT or pinfo.in_error_pkt then return nil end
  local s = tvb:raw(0, min(tvb:len(), 160))
  for _, at in ipairs(IP_AT) do
    local udp = U.udp_behind(s, at)
    if udp and #s >= udp + 8 and U.u16(s, udp) == pinfo.src_port and U.u16(s, udp + 2) == port
      and U.u16(s, udp + 4) >= 8 then
      return udp + 8
    end
  end
end

-- Returns true if there is a tree. Even without requested fields of ours it takes expert items. Since 4.6 only the text
-- of the root tells; it is read only where an unneeded CRC check would cost more.
local function has_tree(root, p)
  return root.text or p.trailer_kind == "crc" and tostring(root):find("has item=true", 1, true)
end

local remember, collects

local function payload_of(p, tvb)
  if p.opened then tvb = ByteArray.new(p.opened, true):tvb("Message") end
  return tvb:range(p.payload, p.payload_bytes)
end

local function dissect(tvb, pinfo, root, place)
  local caught = len(tvb)
  if place > caught then return end
  local q, text = early, early_text
  early, early_text = nil, nil
  local number, visited = pinfo.number, pinfo.visited
  local learns = not (visited or pinfo.in_error_pkt)
  whole.tvb, whole.number, whole.learns = tvb, number, learns
  local p = U.packet(raw(tvb, 0, min(caught, place + U.LONGEST)), place, caught, reported_len(tvb), whole, q)
  whole.tvb = nil
  local columns = pinfo.cols
  if not q or p.opened or p.payload_bytes ~= q.payload_bytes or p.trimmed or p.malformed or q.malformed or caught < p.wire then
    text = U.summary(p)
    columns.protocol = "UET"
    columns.info = text
  end

  local looked_at, visible = U.look_at(root, visited)
  local tree, a = root, nil
  p.number = number
  if settings.analysis then
    if visited then
      a = U.frames[number]
    elseif learns then
      p.time = pinfo.rel_ts
      -- When nothing of the first packet is shown, all will be looked at again.
      if remember == nil then
        remember = gui or not visible and tostring(columns.info) ~= text
        U.shows_again = remember
      end
      a = U.follow(p)
      if remember then U.frames[number] = a end
      if collects == nil then
        collects = settings.reassemble and (remember or visible or U.asks_for_data(root))
      end
      if collects and a and a[MESSAGE] then U.collect(p, a, p.opened and ByteArray.new(p.opened, true) or tvb) end
    end
  end

  if looked_at or has_tree(root, p) then
    U.check_crc(p, tvb)
    -- An expert item needs something to stand at.
    tree = root:add(proto, tvb:range(place, min(p.ip_end or caught, caught) - place))
  end
  if looked_at then
    if visible then tree:append_text(", " .. text) end
    U.add_packet(tree, tvb, p)
    if a then U.add_analysis(tree, p, a, function() return payload_of(p, tvb) end) end
  end
  local message = a and a[MESSAGE]
  if message and message.data and not remember then U.drop_message(message) end
  U.add_findings(tree, p)
  U.add_oddities(tree, p, a)
end

function proto.dissector(tvb, pinfo, root)
  local offset = offset_of(tvb)
  if offset > 0 then
    -- Called for a port, or for the protocol number of the native encapsulation.
    count = count + 1
    places[count] = offset
    if columns_first and count == 1 then set_columns(tvb, pinfo) end
    return reported_len(tvb)
  end
  -- Called behind all others, for the frame.
  if count == 0 then
    local place = settings.take_over and claimed_by_another(tvb, pinfo)
    if place then
      -- The other dissector may have fenced the text in.
      pinfo.cols.info:clear_fence()
      dissect(tvb, pinfo, root, place)
    end
    return
  end
  for i = 1, count do dissect(tvb, pinfo, root, places[i]) end
  count = 0
end

function proto.init()
  count, early, remember, collects = 0, nil, nil, nil
  U.forget_all()
  U.forget_trailers()
  U.forget_data()
  U.forget_what_is_wanted()
  U.dissector = Dissector.get(proto.name:lower())
end

-- The ports are ours while the preferences say so; whose they were before is kept, to be given back.
local tables = { DissectorTable.get("udp.port"), DissectorTable.get("ip.proto") }
local held = {}
local function take(where, number)
  local before = where:get_dissector(number)
  where:add(number, proto)
  held[#held + 1] = { where, number, before }
end
local function hold()
  for _, entry in ipairs(held) do
    local where, number, before = entry[1], entry[2], entry[3]
    where:remove(number, proto)
    if before then where:add(number, before) end
  end
  held = {}
  if not U.name_is_ours and not settings.take_over then return end
  for port in pairs(settings.ports) do take(tables[1], port) end
  if settings.ip_proto ~= UDP then take(tables[2], settings.ip_proto) end
end

function proto.prefs_changed()
  U.read_settings()
  U.load_keys(settings.keys)
  hold()
  U.listen_for_the_end()
end
hold()
register_postdissector(proto)
