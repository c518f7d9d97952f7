-- Opens secured packets with the keys of the key file. Only a Wireshark whose Lua offers AES (GcryptCipher) can do so.
local bxor, floor, char, concat = U.bxor, math.floor, string.char, table.concat
local cipher_class = GcryptCipher

-- The reasons why a packet stays encrypted.
U.sealed = {
  no_keys = "encrypted; `uet decrypt IN OUT --keys FILE` writes the capture in the clear",
  no_cipher = "encrypted, and this Wireshark offers no AES to scripts; `uet decrypt IN OUT --keys FILE` writes the "
    .. "capture in the clear",
  no_key = "encrypted, and the key file has no key for this domain and association number",
  cut = "encrypted, and not all of the packet is present",
  unfit = "encrypted, and its addresses or its source identifier do not fit the domain",
  forged = "The ICV is wrong: the packet has changed, or the key is wrong",
}

local function binary(s) return ByteArray.new(s, true) end

local function xor(a, b)
  local out = {}
  for i = 1, #a do out[i] = char(bxor(a:byte(i), b:byte(i))) end
  return concat(out)
end

-- Returns a function that encrypts one block.
local function aes(key)
  local cipher = cipher_class.open(GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_ECB, 0)
  cipher:setkey(binary(key))
  return function(block) return cipher:encrypt(nil, binary(block)):raw() end
end

-- Doubles a block, as CMAC needs it for messages of whole blocks.
local function doubled(block)
  local out, carry = {}, 0
  for i = 16, 1, -1 do
    local twice = block:byte(i) * 2 + carry
    out[i], carry = char(twice % 256), floor(twice / 256)
  end
  if carry == 1 then out[16] = char(bxor(out[16]:byte(), 0x87)) end
  return concat(out)
end

local ZERO = ("\0"):rep(16)

-- Returns 44 derived bytes: a key and an IV mask. Each of the three messages has whole blocks.
local function derive(secret, label, context)
  local encrypt, out = aes(secret), {}
  local subkey = doubled(encrypt(ZERO))
  for number = 1, 3 do
    local message = char(number) .. label .. "\0" .. context .. "\1\96"
    local state = ZERO
    for at = 1, #message - 16, 16 do state = encrypt(xor(state, message:sub(at, at + 15))) end
    out[number] = encrypt(xor(xor(state, message:sub(-16)), subkey))
  end
  return concat(out):sub(1, 44)
end

-- Derived bytes by secret, label and context. The contexts come from packets, so their number is bounded.
local derived, count = {}, 0
local function bytes_of(secret, label, context)
  local id = secret .. label .. context
  local found = derived[id]
  if not found then
    if count == 512 then derived, count = {}, 0 end
    found = derive(secret, label, context)
    derived[id], count = found, count + 1
  end
  return found
end

local function big_endian(number, bytes)
  local out = {}
  for i = bytes, 1, -1 do out[i], number = char(number % 256), floor(number / 256) end
  return concat(out)
end

-- The key number of implicit rekeying: the masked counter, shifted down.
local function rekey_index(d, s, counter)
  local masked = 0
  for i = 0, 5 do
    local mask = floor(d.mask / 256 ^ (5 - i)) % 256
    masked = masked * 256 + U.band(s:byte(counter + i + 1), mask)
  end
  return big_endian(floor(masked / 2 ^ d.shift), 4)
end

-- Returns the possible contexts of the derivation. A capture does not tell which end is the server.
local function contexts(d, p, s, tsc, source, destination)
  local epoch, index = s:sub(tsc + 1, tsc + 2), d.mode == "cluster" and rekey_index(d, s, tsc + 2) or "\0\0\0\0"
  local ssi = d.ssi and s:sub(p.tss_at + 5, p.tss_at + 8)
  local all = {}
  for i, address in ipairs(d.mode == "server" and { source, destination } or { source }) do
    if p.version == 4 or ssi and d.short_context then
      all[i] = epoch .. index .. (ssi or address)
    else
      all[i] = "\0\0\0\0" .. epoch .. index .. address
    end
  end
  return all
end

-- Returns the decrypted bytes, or nil if the packet is not authentic.
local function decrypt(bytes, iv, aad, body, icv)
  local cipher = cipher_class.open(GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_GCM, 0)
  cipher:setkey(binary(bytes:sub(1, 32)))
  cipher:setiv(binary(#bytes > 32 and xor(iv, bytes:sub(33)) or iv))
  cipher:authenticate(binary(aad))
  local plain = #body > 0 and cipher:decrypt(nil, binary(body)):raw() or ""
  if cipher:checktag(binary(icv)) == 0 then return plain end
end

-- Returns the frame `s` with the packet decrypted in its place, or nil and the reason.
local function open(p, s)
  local d = U.domains[p.tss["tss.sdi"]]
  if not d then return nil, U.sealed.no_key end
  local secrets = d.keys[p.tss["tss.an"]]
  if not secrets then return nil, U.sealed.no_key end
  local address, v4 = p.version == 4 and p.ip + 12 or p.ip + 8, p.version == 4
  local width = v4 and 4 or 16
  local ports, ssi = address + 2 * width, p.tss["tss.ssi"]
  if ports ~= (p.udp or p.entropy) or d.ssi and not ssi then return nil, U.sealed.unfit end
  if not d.ssi and not v4 and d.mode ~= "cluster" then return nil, U.sealed.unfit end
  local source, destination = s:sub(address + 1, address + width), s:sub(address + width + 1, ports)
  local outer = p.udp and s:sub(ports + 1, ports + 6) .. "\0\0" or s:sub(ports + 1, ports + 4)
  local first = p.tss_at + math.max(d.clear, p.tss_layout.bytes)
  first = math.min(first, p.trailer)
  local aad = source .. destination .. outer .. s:sub(p.tss_at + 1, first)
  local body, icv = s:sub(first + 1, p.trailer), s:sub(p.trailer + 1, p.trailer + 16)
  local tsc = p.tss_at + p.tss_layout.bytes - 8
  local prefix = d.ssi and s:sub(p.tss_at + 5, p.tss_at + 8) or v4 and source or "\0" .. s:sub(p.tss_at + 2, p.tss_at + 4)
  local iv = prefix .. s:sub(tsc + 1, tsc + 8)
  local all = d.label and contexts(d, p, s, tsc, source, destination) or { false }
  for _, context in ipairs(all) do
    for _, secret in ipairs(secrets) do
      local bytes = context and bytes_of(secret, d.label, context) or secret
      local plain = decrypt(bytes, iv, aad, body, icv)
      if plain then return s:sub(1, first) .. plain .. s:sub(p.trailer + 1) end
    end
  end
  return nil, U.sealed.forged
end

-- Tries to open the secured packet `p` of the frame `tvb`. Sets `p.opened` to the frame in the clear, or `p.why_sealed`.
function U.open(p, tvb)
  if not next(U.domains) then
    p.why_sealed = U.sealed.no_keys
    if U.key_problem then p.why_sealed = p.why_sealed .. " (" .. U.key_problem .. ")" end
  elseif not p.ip or p.trimmed or p.wire > p.caught or p.overrun or not p.trailer or p.trailer_kind ~= "icv" then
    p.why_sealed = U.sealed.cut
  elseif not cipher_class then
    p.why_sealed = U.sealed.no_cipher
  else
    p.opened, p.why_sealed = open(p, tvb:raw(0, tvb:len()))
  end
  return p.opened
end
