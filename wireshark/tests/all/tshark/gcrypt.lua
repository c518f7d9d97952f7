-- A slow GcryptCipher for tests: AES-256 in the modes ECB and GCM, for a Wireshark that offers none. It takes and gives
-- byte arrays as the real one does, and fails where the real one fails: without a key, or with other parameters.
if GcryptCipher then return end

-- Each script has its own globals, so these go where all scripts find them.
_G.GCRY_CIPHER_AES256, _G.GCRY_CIPHER_MODE_ECB, _G.GCRY_CIPHER_MODE_GCM = 9, 1, 9

local bits = bit32 or { bxor = load("return function(a, b) return a ~ b end")() }
local bxor, char = bits.bxor, string.char

local function xtime(b)
  b = b * 2
  return b > 255 and bxor(b, 0x11b) or b
end

local function product(a, b)
  local sum = 0
  while b > 0 do
    if b % 2 == 1 then sum = bxor(sum, a) end
    a, b = xtime(a), (b - b % 2) / 2
  end
  return sum
end

-- The S-box: inverses in the field, each mixed with four rotations of itself.
local SBOX = {}
for value = 0, 255 do
  local inverse = 0
  for other = 1, 255 do
    if product(value, other) == 1 then inverse = other end
  end
  local mixed, rotated = bxor(0x63, inverse), inverse
  for _ = 1, 4 do
    rotated = rotated * 2 % 256 + (rotated >= 128 and 1 or 0)
    mixed = bxor(mixed, rotated)
  end
  SBOX[value] = mixed
end

-- Returns 15 round keys of 16 bytes, as one list.
local function expand(key)
  local w, round = { key:byte(1, 32) }, 1
  for at = 33, 240, 4 do
    local t = { w[at - 4], w[at - 3], w[at - 2], w[at - 1] }
    if (at - 1) % 32 == 0 then
      t = { bxor(SBOX[t[2]], round), SBOX[t[3]], SBOX[t[4]], SBOX[t[1]] }
      round = xtime(round)
    elseif (at - 1) % 32 == 16 then
      for i = 1, 4 do t[i] = SBOX[t[i]] end
    end
    for i = 0, 3 do w[at + i] = bxor(w[at + i - 32], t[i + 1]) end
  end
  return w
end

local function encrypt(w, block)
  local s = { block:byte(1, 16) }
  for i = 1, 16 do s[i] = bxor(s[i], w[i]) end
  for round = 1, 14 do
    local t = {}
    for i = 0, 15 do t[i + 1] = SBOX[s[(i + i % 4 * 4) % 16 + 1]] end
    for column = 1, 13, 4 do
      local a, b, c, d = t[column], t[column + 1], t[column + 2], t[column + 3]
      if round < 14 then
        local all = bxor(bxor(a, b), bxor(c, d))
        t[column] = bxor(a, bxor(all, xtime(bxor(a, b))))
        t[column + 1] = bxor(b, bxor(all, xtime(bxor(b, c))))
        t[column + 2] = bxor(c, bxor(all, xtime(bxor(c, d))))
        t[column + 3] = bxor(d, bxor(all, xtime(bxor(d, a))))
      end
    end
    for i = 1, 16 do s[i] = bxor(t[i], w[round * 16 + i]) end
  end
  return char((table.unpack or unpack)(s))
end

local function xor(a, b)
  local out = {}
  for i = 1, #a do out[i] = char(bxor(a:byte(i), b:byte(i))) end
  return table.concat(out)
end

-- The product of two blocks in the field of GCM, where the first bit is the lowest power.
local function multiply(x, y)
  local z, v = ("\0"):rep(16), y
  for i = 0, 127 do
    local byte = x:byte((i - i % 8) / 8 + 1)
    if (byte - byte % 2 ^ (7 - i % 8)) / 2 ^ (7 - i % 8) % 2 == 1 then z = xor(z, v) end
    local out, carry = {}, 0
    for at = 1, 16 do
      local b = v:byte(at)
      out[at] = char((b - b % 2) / 2 + carry * 128)
      carry = b % 2
    end
    v = table.concat(out)
    if carry == 1 then v = xor(v, "\225" .. ("\0"):rep(15)) end
  end
  return z
end

local function length(s)
  local n, out = #s * 8, {}
  for i = 8, 1, -1 do out[i], n = char(n % 256), (n - n % 256) / 256 end
  return table.concat(out)
end

local Cipher = {}
Cipher.__index = Cipher

function Cipher:setkey(key)
  assert(key:len() == 32, "Invalid key length")
  self.round_keys = expand(key:raw())
end

function Cipher:setiv(iv)
  assert(self.mode == GCRY_CIPHER_MODE_GCM and iv:len() == 12, "this test knows IVs of 12 bytes only")
  self.iv, self.aad, self.seen = iv:raw(), "", ""
end

function Cipher:authenticate(aad) self.aad = self.aad .. aad:raw() end

function Cipher:block(block) return encrypt(assert(self.round_keys, "Missing key"), block) end

function Cipher:encrypt(out, plain)
  assert(out == nil and self.mode == GCRY_CIPHER_MODE_ECB and plain:len() % 16 == 0, "Invalid length")
  return ByteArray.new((plain:raw():gsub(("."):rep(16), function(block) return self:block(block) end)), true)
end

function Cipher:decrypt(out, secret)
  assert(out == nil and self.mode == GCRY_CIPHER_MODE_GCM and self.iv, "Missing IV")
  local s, parts = secret:raw(), {}
  self.seen = s
  for at = 1, #s, 16 do
    local number = (at - 1) / 16 + 2
    local counter = self.iv .. "\0\0" .. char((number - number % 256) / 256, number % 256)
    parts[#parts + 1] = xor(s:sub(at, at + 15), self:block(counter))
  end
  return ByteArray.new(table.concat(parts), true)
end

function Cipher:checktag(tag)
  local subkey, hash = self:block(("\0"):rep(16)), ("\0"):rep(16)
  local function absorb(s)
    for at = 1, #s, 16 do
      local part = s:sub(at, at + 15)
      hash = multiply(xor(hash, part .. ("\0"):rep(16 - #part)), subkey)
    end
  end
  absorb(self.aad)
  absorb(self.seen)
  absorb(length(self.aad) .. length(self.seen))
  if xor(hash, self:block(self.iv .. "\0\0\0\1")) == tag:raw() then return 0 end
  return 10, "Checksum error"
end

_G.GcryptCipher = {
  open = function(algorithm, mode, flags)
    assert(algorithm == GCRY_CIPHER_AES256 and flags == 0, "Invalid cipher algorithm")
    return setmetatable({ mode = mode }, Cipher)
  end,
}
