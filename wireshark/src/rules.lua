-- Checks of the specification on a single packet. Reserved bits, code points and rules come from the tables of
-- uet-wire. This file computes the checksums.
local byte = string.byte
local u16, found = U.u16, U.found
local settings = U.settings

-- The fields of each header whose code points have to be assigned ones.
for _, layout in pairs(U.layouts) do
  layout.codes, layout.runs = {}, {}
  for _, row in ipairs(layout.rows) do
    local id, field = U.assigned[row[1]], U.fields[row[6]]
    if id and field[5] then layout.codes[#layout.codes + 1] = { row[1], id, field[5] } end
    if row[1] == "reserved" then layout.runs[#layout.runs + 1] = row end
  end
end
for _, registry in pairs(U.registries) do
  registry.bad = {}
  for version, runs in ipairs(registry.unassigned) do
    local set = {}
    for _, run in ipairs(runs) do
      for code = run[1], run[2] do set[code] = true end
    end
    registry.bad[version] = set
  end
end

local function by_field(p, layout, record, at)
  if record.reserved then
    for _, row in ipairs(layout.runs) do
      if U.exists(row, record) then
        local value = U.value_of(p.s, at, row)
        if value ~= 0 then found(p, "WIRE-RSVD-001", layout.name, value, row) end
      end
    end
  end
  local version, codes = settings.version, layout.codes
  for i = 1, #codes do
    local code = codes[i]
    local value = record[code[1]]
    if code[3].bad[version][value] then found(p, code[2], code[1], value) end
  end
end

-- Reports a wrong checksum of an IPv4 header. A switch that trims changes the traffic class, and may leave the checksum
-- and the length as they were.
local function header_checksum(p, s, ip)
  if p.trimmed or p.ip_short then return end
  local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, q, r, t, u, v = byte(s, ip + 1, ip + 20)
  local sum = (a + c + e + g + i + k + m + o + r + u) * 256 + b + d + f + h + j + l + n + q + t + v
  for at = ip + 20, ip + a % 16 * 4 - 2, 2 do sum = sum + u16(s, at) end
  local stated = u16(s, ip + 10)
  -- 0 and 0xffff are both zero in this arithmetic; only one of them is what a sender computes.
  local computed = sum - stated
  computed = 65535 - (computed % 65535 == 0 and computed > 0 and 65535 or computed % 65535)
  if computed ~= stated then found(p, "WIRE-IP-002", "ip.checksum", stated) end
end

local function outer(p)
  if not p.ip then return end
  if p.version == 4 then
    U.judge_ipv4(p, p.ip)
    header_checksum(p, p.s, p.ip)
  end
  if p.udp then U.judge_udp(p, p.udp) end
  if p.entropy then
    local layout = U.layouts.entropy
    by_field(p, layout, layout.read(p.s, p.entropy), p.entropy)
  end
end

-- Puts what is forbidden in the packet into `p.findings`, which stays nil when nothing is.
function U.judge(p)
  outer(p)
  local pds, ses, ext = p.pds, p.ses, p.ext
  if p.tss then by_field(p, p.tss_layout, p.tss, p.tss_at) end
  if pds then by_field(p, p.pds_layout, pds, p.pds_at) end
  if ses then by_field(p, p.ses_layout, ses, p.ses_at) end
  if ext then by_field(p, p.ext_layout, ext, p.ext_at) end
  -- The payload behind the cleartext headers has an unknown length.
  local payload = p.clear and 0 or p.payload_bytes
  if pds and p.pds_layout.judge then p.pds_layout.judge(p, pds, p.pds_at, payload) end
  if ses then p.ses_layout.judge(p, ses, p.ses_at, payload) end
  if ext then p.ext_layout.judge(p, ext, p.ext_at, payload) end
end
