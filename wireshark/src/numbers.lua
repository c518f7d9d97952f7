-- Numbers, in whichever Lua Wireshark was built with: from 5.3 on there are operators on bits, which 5.2 cannot
-- even read; it has a library instead.
local byte, floor = string.byte, math.floor

if load("return 1 & 1") then
  U.bxor = load("return function(a, b) return a ~ b end")()
  U.band = load("return function(a, b) return a & b end")()
  U.rshift = load("return function(a, n) return a >> n end")()
else
  local bits = bit32 or bit
  U.bxor, U.band, U.rshift = bits.bxor, bits.band, bits.rshift
end

function U.u16(s, p)
  local a, b = byte(s, p + 1, p + 2)
  return a * 256 + b
end

function U.u32(s, p)
  local a, b, c, d = byte(s, p + 1, p + 4)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

-- Sequence numbers count modulo 2^32: `psn_add` moves one, `psn_ahead` says how far `a` is ahead of `b`.
local RING, HALF = 4294967296, 2147483648

function U.psn_add(psn, by)
  return (psn + by) % RING
end

function U.psn_ahead(a, b)
  local distance = (a - b) % RING
  return distance < HALF and distance or distance - RING
end

-- The value of a field of up to 32 bits, from the row that describes it; nil when it is not all there.
function U.value_of(s, at, row)
  local first, bits_first, width = row[2], row[4], row[5]
  local value = 0
  for i = first, first + row[3] - 1 do
    local b = byte(s, at + i + 1)
    if not b then return nil end
    value = value * 256 + b
  end
  local shift = (first + row[3]) * 8 - bits_first - width
  if shift > 0 then value = floor(value / 2 ^ shift) end
  value = value % 2 ^ width
  return floor(value)
end

-- Returns true if a row exists in a header with the fields `record`.
function U.exists(row, record)
  local name = row[7]
  if not name then return true end
  local value = record[name]
  if value == nil then return false end
  return (row[8][value] or false) ~= row[9]
end

-- Returns the offset of a field in bytes from the start of its header.
function U.at(layout, name)
  for _, row in ipairs(U.layouts[layout].rows) do
    if row[1] == name then return row[2] end
  end
  error("no field " .. name .. " in " .. layout)
end

-- Returns the set of numbers in a text like "4793,49152-49155".
function U.numbers_in(text)
  local set = {}
  for lo, hi in tostring(text or ""):gmatch("(%d+)%-?(%d*)") do
    lo, hi = tonumber(lo), tonumber(hi) or tonumber(lo)
    for number = lo, math.min(hi, 65535) do set[number] = true end
  end
  return set
end

local crc_table
local function make_crc_table()
  crc_table = {}
  for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
      c = c % 2 == 1 and U.bxor(floor(c / 2), 0x82F63B78) % RING or floor(c / 2)
    end
    crc_table[i] = c
  end
end

-- CRC-32C of a string.
function U.crc32c(s)
  if not crc_table then make_crc_table() end
  local bxor, tab, c = U.bxor, crc_table, 0xFFFFFFFF
  for i = 1, #s do
    c = bxor(tab[bxor(c % 256, byte(s, i))], floor(c / 256)) % RING
  end
  return bxor(c, 0xFFFFFFFF) % RING
end
