-- The tree of a packet. A visible tree gets all fields. Otherwise it gets only the fields that a filter, a column or
-- another output requests: adding a field costs four times as much as asking for it.
local format = string.format
local f, proto_fields, fields = U.f, U.proto_fields, U.fields
local gui = gui_enabled()

-- Fields with one name and different places: a filter means all of them, and not every version says so.
local namesakes = {}
do
  local first = {}
  for i, field in ipairs(fields) do
    local others = first[field[1]] or {}
    first[field[1]] = others
    others[#others + 1] = proto_fields[i]
    namesakes[proto_fields[i]] = others
  end
end

-- Returns true if a field is requested, as far as known. A visible tree requests everything.
local everything, looked_at, known, known_pass, tree_now = true, true, {}, nil, nil
local function wants(field)
  if everything then return true end
  local answer = known[field]
  if answer == nil then
    answer = false
    for _, namesake in ipairs(namesakes[field] or { field }) do
      answer = answer or tree_now:referenced(namesake)
    end
    known[field] = answer
  end
  return answer
end

-- A packet's tree is about to be built. Returns whether an output requests something of UET, and whether it shows the
-- whole tree. A filter of tshark is the same for a whole pass; in the program it can be another one for each packet.
function U.look_at(root, visited)
  tree_now = root
  if gui or visited ~= known_pass then
    known, known_pass, everything = {}, visited, root.visible
    looked_at = everything or root:referenced(U.dissector)
  end
  return looked_at, everything
end

U.wants = wants

function U.forget_what_is_wanted()
  known, known_pass = {}, nil
end

-- One header, row by row, as far as `present` bytes reach.
local function add_rows(tree, tvb, s, layout, record, at, present)
  local flags
  for _, row in ipairs(layout.rows) do
    local last_bit = row[4] + row[5]
    local field = proto_fields[row[6]]
    if last_bit <= present * 8 and wants(field) and U.exists(row, record) then
      local range = tvb:range(at + row[2], row[3])
      local name = row[1]
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

local function add_header(tree, tvb, p, layer, layout, record, at, summary)
  local item = tree
  if wants(f[layer]) then
    item = tree:add(f[layer], tvb:range(at, layout.bytes))
    if everything then item:set_text(TITLES[layer] .. (summary and ": " .. summary(p) or "")) end
  end
  add_rows(item, tvb, p.s, layout, record, at, layout.bytes)
  return item
end

-- A field that no byte says; nil where nobody wants it.
local function generated(tree, field, value)
  if not wants(field) then return nil end
  local item = tree:add(field, value)
  item:set_generated()
  return item
end
U.generated = generated

local function add_derived(tree, p)
  U.each_derived(p, function(name, value)
    if not wants(f[name]) then return end
    local wide = name == "pds.rcvd_bytes_bytes" or name == "pds.credit_bytes" or name == "ses.end_offset"
    generated(tree, f[name], wide and UInt64.new(value % 4294967296, math.floor(value / 4294967296)) or value)
  end)
  local service = p.pds["pds.service_time"]
  if service and service > 0 then generated(tree, f.service_time_us, service * 0.128) end
  if not p.pds["pds.sack_psn_offset"] then return end
  if not (wants(f["pds.sacked"]) or wants(f.sacked_first) or wants(f.sacked_last)) then return end
  local runs = U.sacked(p)
  if #runs == 0 then return end
  local parts = {}
  for i = 1, #runs, 2 do
    parts[#parts + 1] = runs[i] == runs[i + 1] and format("%d", runs[i]) or format("%d-%d", runs[i], runs[i + 1])
  end
  local item = generated(tree, f["pds.sacked"], table.concat(parts, " ")) or tree
  for i = 1, #runs, 2 do
    generated(item, f.sacked_first, runs[i])
    generated(item, f.sacked_last, runs[i + 1])
  end
end

-- A run of bytes as a layer, if it has bytes.
local function add_bytes(tree, tvb, field, title, from, to)
  if to <= from or not wants(field) then return tree end
  local item = tree:add(field, tvb:range(from, to - from))
  item:set_text(format("%s (%d bytes)", title, to - from))
  return item
end

local function add_payload(tree, tvb, p)
  if not p.payload or p.payload_bytes <= 0 then return end
  local item, last = tree, p.payload + p.payload_bytes
  if p.encrypted then
    add_bytes(tree, tvb, f.readable, "Readable", p.payload, p.encrypted)
    item = add_bytes(tree, tvb, f.opaque, "Encrypted", math.max(p.payload, p.encrypted), last)
  else
    item = add_bytes(tree, tvb, f.payload, "Payload", p.payload, last)
  end
  generated(item, f.payload_bytes, p.payload_bytes)
end

function U.check_crc(p, tvb)
  if not p.trailer or not p.ip or p.trailer_kind ~= "crc" or p.trailer_bytes ~= 4 then return end
  p.crc, p.crc_expected = U.crc_at(p, tvb, p.trailer)
end

local function add_trailer(tree, tvb, p)
  if not p.trailer or p.trailer_bytes <= 0 then return end
  local layout = U.layouts[p.trailer_kind]
  if p.trailer_bytes < layout.bytes then return end
  local field, item = proto_fields[layout.rows[1][6]], tree
  local right = p.crc == p.crc_expected
  if wants(field) then
    item = tree:add(field, tvb:range(p.trailer, layout.bytes))
    if p.crc then item:append_text(right and " [right]" or format(" [wrong: should be 0x%08x]", p.crc_expected)) end
  end
  if not p.crc then return end
  generated(item, f.crc_expected, p.crc_expected)
  generated(item, f.crc_ok, right)
end

local function add_states(tree, p)
  if p.trimmed then
    local item = generated(tree, f.trimmed, true) or tree
    generated(item, f.trimmed_layer, p.trimmed_layer)
    if p.missing then generated(item, f.trimmed_missing, p.missing) end
    generated(item, f.trimmed_last_hop, p.last_hop or false)
  end
  if p.wire > p.caught then generated(tree, f.sliced, true) end
end

local NONE = {}

-- Adds the findings of a packet. Expert items count even without a tree.
function U.add_findings(tree, p)
  U.judge(p)
  if p.crc and p.crc ~= p.crc_expected then
    p.findings = p.findings or {}
    table.insert(p.findings, { "WIRE-CRC-001", "crc", p.crc })
  end
  for _, finding in ipairs(p.findings or NONE) do
    local id, field, value, row = finding[1], finding[2], finding[3], finding[4]
    local expert = U.findings[id]
    local what
    if row then
      what = format("%s has reserved bits set (%d at bit %d are 0x%x)", field, row[5], row[4], value)
    else
      -- Everybody else writes a CRC with hexadecimal digits.
      local form = field == "crc" and "0x%08x" or "%d"
      what = format("%s is %s", field, type(value) == "number" and format(form, value) or value)
    end
    tree:add_proto_expert_info(expert[1], format("%s: %s: %s", id, what, expert[2]))
    generated(tree, f.finding, id)
  end
  if p.why_sealed == U.sealed.forged then
    tree:add_proto_expert_info(U.forged[1], p.why_sealed)
  elseif p.why_sealed then
    tree:add_proto_expert_info(U.encrypted[1], "The packet is " .. p.why_sealed)
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
  if p.tss then
    local item = add_header(tree, tvb, p, "tss", p.tss_layout, p.tss, p.tss_at, U.tss_summary)
    local forged = p.why_sealed == U.sealed.forged
    if p.opened or forged then generated(item, f.authenticated, not forged) end
    -- The decrypted frame has its headers where the captured one has them.
    if p.opened then tvb = ByteArray.new(p.opened, true):tvb("Decrypted UET") end
  end
  if p.pds then
    local item = add_header(tree, tvb, p, "pds", p.pds_layout, p.pds, p.pds_at, U.pds_summary)
    add_derived(item, p)
    local class = everything and U.nack_class[p.pds["pds.nack_code"]]
    if class then item:append_text(format(" (%s: %s)", class[1], class[2])) end
  end
  if p.ses then add_header(tree, tvb, p, "ses", p.ses_layout, p.ses, p.ses_at, U.ses_summary) end
  if p.ext then
    add_header(tree, tvb, p, "ext", p.ext_layout, p.ext, p.ext_at, function() return p.ext_layout.title end)
  end
  if p.cut and p.present > 0 and f[p.cut.layer] then
    local item = tree
    if wants(f[p.cut.layer]) then
      item = tree:add(f[p.cut.layer], tvb:range(p.cut_at, p.present))
      item:set_text(format("%s: %s, cut after %d of %d bytes", TITLES[p.cut.layer], p.cut.title, p.present, p.cut.bytes))
    end
    add_rows(item, tvb, s, p.cut, U.partial_record(s, p.cut, p.cut_at, p.present), p.cut_at, p.present)
  end
  add_payload(tree, tvb, p)
  add_trailer(tree, tvb, p)
  add_states(tree, p)
end
