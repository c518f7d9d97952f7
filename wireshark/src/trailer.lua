-- Recognizes the trailer of a packet, which no field announces. Four last bytes that are a right CRC are a trailer. After
-- two such packets of a sender, all its packets have one, so that a wrong CRC is an error. Only the first packets of a
-- sender are tried, because a CRC takes long.
local byte, rshift = string.byte, U.rshift
local u16, u32 = U.u16, U.u32
local TSS = U.registries.PdsType.codes.TSS
local PROLOGUE = U.layouts.prologue

local TRIED, SENDERS = 16, 65536

-- Each sender by port and address. An entry has the number of packets tried, the frame with the first right CRC, and the
-- frame from which on the sender is known to append one.
local senders, count = {}, 0
function U.forget_trailers()
  senders, count = {}, 0
end

local function sender_of(p, s)
  local port = p.udp and u16(s, p.udp + 2) or 0
  local of_port = senders[port]
  if not of_port then
    of_port = {}
    senders[port] = of_port
  end
  local ip = p.ip
  local address = p.version == 4 and s:sub(ip + 13, ip + 16) or s:sub(ip + 9, ip + 24)
  local sender = of_port[address]
  if not sender then
    sender = { tried = 0 }
    -- A further sender is judged packet by packet.
    if count < SENDERS then of_port[address], count = sender, count + 1 end
  end
  return sender
end

-- Returns the CRC at `at`, and the right one: over the packet from the IP source address on. Sources leave open whether a
-- UDP checksum other than 0 counts as it is or as 0, so both are right.
function U.crc_at(p, tvb, at)
  local source = p.ip + (p.version == 4 and 12 or 8)
  local covered = tvb:raw(source, at - source)
  local stated, right = u32(tvb:raw(at, 4), 0), U.crc32c(covered)
  local checksum = p.udp and p.udp + 6 - source
  if stated ~= right and checksum and u16(covered, checksum) ~= 0 then
    local zeroed = U.crc32c(covered:sub(1, checksum) .. "\0\0" .. covered:sub(checksum + 3))
    if stated == zeroed then right = zeroed end
  end
  return stated, right
end

-- Returns the kind of the trailer of a packet that ends at `last`, of which `gone` bytes are missing.
function U.recognize_trailer(p, s, last, gone, frame)
  local uet = p.uet
  local first = last > uet and byte(s, uet + 1) or 0
  local kind = rshift(first, 3)
  if kind == TSS then
    local layout = first % 8 >= 4 and U.layouts.tss_ssi or U.layouts.tss
    return last - uet >= layout.bytes and "icv" or nil
  end
  if not p.ip or last - uet < (U.pds_layouts[kind] or PROLOGUE).bytes then return nil end
  local sender, number = sender_of(p, s), frame.number
  if sender.known and number >= sender.known or sender.first == number then return "crc" end
  if not frame.learns or sender.tried == TRIED or p.trimmed or p.wire > p.caught then return nil end
  sender.tried = sender.tried + 1
  if gone > 0 or last - 4 < uet then return nil end
  local stated, right = U.crc_at(p, frame.tvb, last - 4)
  if stated ~= right then return nil end
  if sender.first then sender.known = number else sender.first = number end
  return "crc"
end
