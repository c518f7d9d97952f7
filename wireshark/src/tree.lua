-- The tree of a packet: only built when someone looks at it, or at one of its fields.
local format = string.format
local f, proto_fields, fields = U.f, U.proto_fields, U.fields

-- One header, row by row, as far as `present` bytes reach.
local function add_rows(tree, tvb, s, layout, record, at, present)
  local flags
  for _, row in ipairs(layout.rows) do
    local last_bit = row[4] + row[5]
    if last_bit <= present * 8 and U.exists(row, record) then
      local range = tvb:range(at + row[2], row[3])
      local name, field = row[1], proto_fields[row[6]]
      if name == "pds.flags" then
        flags = tree:add(field, range)
      elseif fields[row[6]][3] == "bytes" and row[5] % 8 ~= 0 then
        -- The bits before the field, in its first byte, are another one's.
        local bytes = s:sub(at + row[2] + 1, at + row[2] + row[3])
        local first = bytes:byte(1) % 2 ^ (8 - row[4] % 8)
        tree:add(field, range, string.char(math.floor(first)) .. bytes:sub(2))
      elseif row[4] < 16 and flags and (name:sub(1, 10) == "pds.flags." or name == "reserved") then
        flags:add(field, range)
      else
        tree:add(field, range)
      end
    end
  end
end

-- The fields of a header that is cut, as far as they are there.
function U.partial_record(s, layout, at, present)
  local record = {}
  for _, row in ipairs(layout.rows) do
    if row[5] <= 32 and row[4] + row[5] <= present * 8 and U.exists(row, record) then
      record[row[1]] = U.value_of(s, at, row)
    end
  end
  return record
end

local TITLES = { entropy = "Entropy header", tss = "Security", pds = "Packet delivery", ses = "Semantics", ext = "Extension" }

local function add_header(tree, tvb, p, layer, layout, record, at, text)
  local item = tree:add(f[layer], tvb:range(at, layout.bytes))
  item:set_text(TITLES[layer] .. (text and ": " .. text or ""))
  add_rows(item, tvb, p.s, layout, record, at, layout.bytes)
  return item
end

local function generated(tree, field, value)
  local item = tree:add(field, value)
  item:set_generated()
  return item
end
U.generated = generated

local function add_derived(tree, p)
  U.each_derived(p, function(name, value)
    local wide = name == "pds.rcvd_bytes_bytes" or name == "pds.credit_bytes" or name == "ses.end_offset"
    generated(tree, f[name], wide and UInt64.new(value % 4294967296, math.floor(value / 4294967296)) or value)
  end)
  local service = p.pds["pds.service_time"]
  if service and service > 0 then generated(tree, f.service_time_us, service * 0.128) end
  if not p.pds["pds.sack_psn_offset"] then return end
  local runs = U.sacked(p)
  if #runs == 0 then return end
  local parts = {}
  for i = 1, #runs, 2 do
    parts[#parts + 1] = runs[i] == runs[i + 1] and format("%d", runs[i]) or format("%d-%d", runs[i], runs[i + 1])
  end
  local item = generated(tree, f["pds.sacked"], table.concat(parts, " "))
  for i = 1, #runs, 2 do
    generated(item, f.sacked_first, runs[i])
    generated(item, f.sacked_last, runs[i + 1])
  end
end

local function add_payload(tree, tvb, p)
  if not p.payload or p.payload_bytes <= 0 then return end
  local opaque = p.tss and not p.pds
  local item = tree:add(opaque and f.opaque or f.payload, tvb:range(p.payload, p.payload_bytes))
  item:set_text(format("%s (%d bytes)", opaque and "Encrypted" or "Payload", p.payload_bytes))
  generated(item, f.payload_bytes, p.payload_bytes)
end

-- The CRC covers the packet from the source address on.
function U.check_crc(p, tvb)
  if not p.trailer or not p.ip or U.settings.trailer_kind ~= "crc" or p.trailer_bytes ~= 4 then return end
  local source = p.version == 4 and 12 or 8
  p.crc = U.u32(tvb:raw(p.trailer, 4), 0)
  p.crc_expected = U.crc32c(tvb:raw(p.ip + source, p.trailer - p.ip - source))
end

local function add_trailer(tree, tvb, p)
  if not p.trailer or p.trailer_bytes <= 0 then return end
  local kind = U.settings.trailer_kind
  local layout = U.layouts[kind]
  if p.trailer_bytes < layout.bytes then return end
  local item = tree:add(proto_fields[layout.rows[1][6]], tvb:range(p.trailer, layout.bytes))
  if not p.crc then return end
  local right = p.crc == p.crc_expected
  item:append_text(right and " [right]" or format(" [wrong: should be 0x%08x]", p.crc_expected))
  generated(item, f.crc_expected, p.crc_expected)
  generated(item, f.crc_ok, right)
end

local function add_states(tree, p)
  if p.trimmed then
    local item = generated(tree, f.trimmed, true)
    generated(item, f.trimmed_layer, p.trimmed_layer)
    if p.missing then generated(item, f.trimmed_missing, p.missing) end
    generated(item, f.trimmed_last_hop, p.last_hop or false)
  end
  if p.wire > p.caught then generated(tree, f.sliced, true) end
end

-- What is wrong with the packet; the expert items count even when there is no tree.
function U.add_findings(tree, p)
  U.judge(p)
  if p.crc and p.crc ~= p.crc_expected then
    p.findings = p.findings or {}
    table.insert(p.findings, { "WIRE-CRC-001", "crc", p.crc })
  end
  for _, finding in ipairs(p.findings or {}) do
    local id, field, value, row = finding[1], finding[2], finding[3], finding[4]
    local expert = U.findings[id]
    local what
    if row then
      what = format("%s has reserved bits set (%d at bit %d are 0x%x)", field, row[5], row[4], value)
    else
      what = format("%s is %s", field, type(value) == "number" and format("%d", value) or value)
    end
    tree:add_proto_expert_info(expert[1], format("%s: %s: %s", id, what, expert[2]))
    generated(tree, f.finding, id)
  end
  if p.malformed then
    local layer, field, text
    if not p.unexplained then
      layer, field = "ip", p.overrun[1]
      text = format("%s promises %d bytes, %d are present", field, p.overrun[2], p.overrun[3])
    else
      layer, field = p.cut.layer, p.cut.name
      local record = U.partial_record(p.s, p.cut, p.cut_at, p.present)
      for _, row in ipairs(p.cut.rows) do
        -- A field that is missing decides as 0.
        local there = not row[7] or U.exists(row, { [row[7]] = record[row[7]] or 0 })
        if row[1] ~= "reserved" and row[4] + row[5] > p.present * 8 and there then
          field = row[1]
          break
        end
      end
      text = format("%s ends early: %d of %d bytes of %s, %s is cut", layer, p.present, p.cut.bytes, p.cut.title, field)
    end
    tree:add_proto_expert_info(U.malformed[1], text)
    generated(tree, f.error_layer, layer)
    generated(tree, f.error_field, field)
  end
end

-- The whole packet.
function U.add_packet(tree, tvb, p)
  local s = p.s
  if p.entropy then
    local layout = U.layouts.entropy
    add_header(tree, tvb, p, "entropy", layout, layout.read(s, p.entropy), p.entropy)
  end
  if p.tss then add_header(tree, tvb, p, "tss", p.tss_layout, p.tss, p.tss_at, U.tss_summary(p)) end
  if p.pds then
    local item = add_header(tree, tvb, p, "pds", p.pds_layout, p.pds, p.pds_at, U.pds_summary(p))
    add_derived(item, p)
    local class = U.nack_class[p.pds["pds.nack_code"]]
    if class then item:append_text(format(" (%s: %s)", class[1], class[2])) end
  end
  if p.ses then add_header(tree, tvb, p, "ses", p.ses_layout, p.ses, p.ses_at, U.ses_summary(p)) end
  if p.ext then add_header(tree, tvb, p, "ext", p.ext_layout, p.ext, p.ext_at, p.ext_layout.title) end
  if p.cut and p.present > 0 and f[p.cut.layer] then
    local item = tree:add(f[p.cut.layer], tvb:range(p.cut_at, p.present))
    item:set_text(format("%s: %s, cut after %d of %d bytes", TITLES[p.cut.layer], p.cut.title, p.present, p.cut.bytes))
    add_rows(item, tvb, s, p.cut, U.partial_record(s, p.cut, p.cut_at, p.present), p.cut_at, p.present)
  end
  add_payload(tree, tvb, p)
  add_trailer(tree, tvb, p)
  add_states(tree, p)
end
