-- Puts the data of messages together from their packets: of requests that carry data, and of read responses. Memory is
-- bounded, and nothing is kept unless somebody will see it.
local format = string.format
local READ, PLAIN = U.registries.Opcode.codes.UET_READ, U.plain
local settings, A, M = U.settings, U.A, U.M
-- The memory that a part takes besides its bytes, about.
local PART = 128

-- The number of bytes that are kept, and the messages to print at the end.
local stored, followed, told
function U.forget_data()
  stored, followed, told = 0, {}, false
end
U.forget_data()

-- Returns where in its message the payload of a packet belongs; nil if it is no data of the message.
local function place_of(p, message)
  local ses = p.ses
  if not ses or p.payload_bytes <= 0 or not message[M.LENGTH] then return nil end
  if p.opcode then
    if p.opcode == READ or not PLAIN[p.opcode] then return nil end
  elseif message[M.OPCODE] ~= READ or not ses["ses.payload_length"] then
    return nil
  end
  local offset = ses["ses.message_offset"] or 0
  return offset + p.payload_bytes <= message[M.LENGTH] and offset or nil
end

local function warn(text)
  if not told then io.stderr:write("uet: ", text, "\n") end
  told = true
end

local function export(message, data)
  local path = format("%s/message-%d.bin", settings.export, message[M.START][A.FRAME])
  local file = io.open(path, "wb")
  local written = file and file:write(data)
  if file then file:close() end
  if not written then warn("cannot write " .. path) end
end

-- Frees the data of a message that no further packet will complete, or that is not shown again.
function U.drop_message(message)
  stored = stored - (message.kept or 0)
  message.parts, message.data, message.kept = nil, nil, 0
end

-- Returns true if there is no room for so many further bytes.
local function is_full(length)
  if stored + length <= settings.reassembly_limit * 2 ^ 20 then return false end
  warn("the data of some messages is not shown; raise the preference reassembly_limit")
  return true
end

local function complete(p, a, message, data)
  message.reassembled_in = p.number
  if settings.export ~= "" then export(message, data) end
  if settings.follow == tostring(U.pdc_of(a[A.HALF])) and not is_full(#data) then
    stored = stored + #data
    followed[#followed + 1] = { message = message, data = data, back = U.direction_of(a[A.HALF]) == "return" }
  end
end

-- Takes the data of a packet. `bytes` has the whole frame.
function U.collect(p, a, bytes)
  local message = a[A.MESSAGE]
  local offset = place_of(p, message)
  if not offset or p.trimmed or p.wire > p.caught or p.malformed then return end
  a.has_data = true
  if message.reassembled_in or message.given_up then return end
  local length = p.payload_bytes
  if length == message[M.LENGTH] then
    message.whole = true
    return complete(p, a, message, bytes:raw(p.payload, length))
  end
  if not message.parts then message.parts, message.present, message.kept = {}, 0, 0 end
  local parts = message.parts
  if parts[offset] then return end
  if is_full(length + PART) then
    message.given_up = true
    return U.drop_message(message)
  end
  parts[offset] = { bytes:raw(p.payload, length), p.number }
  message.present = message.present + length
  message.kept, stored = message.kept + length + PART, stored + length + PART
  if message.present < message[M.LENGTH] then return end
  local data, segments, at = {}, {}, 0
  while at < message[M.LENGTH] do
    local part = parts[at]
    -- The packets overlap. Each further one would walk all parts again.
    if not part then
      message.given_up = true
      return U.drop_message(message)
    end
    data[#data + 1] = part[1]
    segments[#segments + 1] = { part[2], at, #part[1] }
    at = at + #part[1]
  end
  message.parts, message.segments, message.data = nil, segments, table.concat(data)
  complete(p, a, message, message.data)
end

-- Adds the data to the packet that completes the message, and to the others a link to it. `payload` is the range of the
-- packet's payload.
function U.add_data(tree, p, a, payload)
  local message, f = a[A.MESSAGE], U.f
  if not message or not a.has_data or not message.reassembled_in then return end
  if message.reassembled_in ~= p.number then
    U.generated(tree, f.message_reassembled_in, message.reassembled_in)
  elseif message.whole then
    if U.wants(f.message_data) then tree:add(f.message_data, payload()):set_generated() end
  elseif message.data then
    local item = tree
    if U.wants(f.message_data) then
      local range = ByteArray.new(message.data, true):tvb("Message")
      item = tree:add(f.message_data, range())
      item:set_generated()
      item:append_text(format(" (%d bytes from %d packets)", #message.data, #message.segments))
    end
    for _, segment in ipairs(message.segments) do
      local link = U.generated(item, f.message_segment, segment[1])
      if link then link:append_text(format(" (%d bytes at %d)", segment[3], segment[2])) end
    end
  end
end

-- Returns true if an output or a filter of a single pass needs the data.
function U.asks_for_data(root)
  if settings.follow ~= "" or settings.export ~= "" then return true end
  local f = U.f
  return root:referenced(f.message_data) or root:referenced(f.message_segment)
    or root:referenced(f.message_reassembled_in)
end

local function hex_dump(data, indent)
  local lines = {}
  for at = 1, #data, 16 do
    local row = data:sub(at, at + 15)
    local hex = row:gsub(".", function(c) return format("%02x ", c:byte()) end)
    lines[#lines + 1] = format("%s%08x  %-48s %s", indent, at - 1, hex, (row:gsub("[^\32-\126]", ".")))
  end
  return table.concat(lines, "\n")
end

-- The messages of the followed context as text; data from the target is indented.
function U.follow_text()
  local all = { format("UET: context %s, %d messages with data", settings.follow, #followed) }
  for _, entry in ipairs(followed) do
    local message, indent = entry.message, entry.back and "    " or ""
    local names = U.registries.Opcode.names
    all[#all + 1] = format("%s%s %d B, frames %d to %d", indent, U.name_of(names, message[M.OPCODE]), #entry.data,
      message[M.START][A.FRAME], message.reassembled_in)
    all[#all + 1] = hex_dump(entry.data, indent)
  end
  return table.concat(all, "\n")
end
