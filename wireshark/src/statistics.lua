-- The table of contexts: in the Tools menu, and printed by tshark when the preference says so.
local format = string.format

local function address(bytes)
  if not bytes then return "?" end
  if #bytes == 4 then return format("%d.%d.%d.%d", bytes:byte(1, 4)) end
  local words = {}
  for i = 1, 16, 2 do words[#words + 1] = format("%x", bytes:byte(i) * 256 + bytes:byte(i + 1)) end
  return table.concat(words, ":")
end

local function identifier(half)
  return half.id and format("0x%04x", half.id) or "?"
end

local function microseconds(time)
  return time and format("%.1f", time * 1e6) or "-"
end

local function nacks_of(pdc)
  local codes, parts = {}, {}
  for code in pairs(pdc.nacks) do codes[#codes + 1] = code end
  table.sort(codes)
  for _, code in ipairs(codes) do
    parts[#parts + 1] = format("%s=%d", U.name_of(U.registries.NackCode.names, code), pdc.nacks[code])
  end
  return #parts > 0 and table.concat(parts, ",") or "-"
end

local HEADINGS = { "pdc", "initiator", "id", "target", "id", "frames", "bytes", "frames<", "bytes<", "retx", "dup",
  "messages", "p50 us", "p90 us", "p99 us", "nacks" }

local function row(pdc)
  local forward, back = pdc.forward, pdc.back
  local at = function(share) return microseconds(U.percentile(pdc.times, pdc.measured, share)) end
  return {
    format("%d", pdc.index), address(pdc.initiator), identifier(forward), address(pdc.target), identifier(back),
    format("%d", forward.packets), format("%d", forward.bytes), format("%d", back.packets), format("%d", back.bytes),
    format("%d", forward.retransmissions + back.retransmissions), format("%d", forward.duplicates + back.duplicates),
    format("%d", pdc.messages or 0), at(0.5), at(0.9), at(0.99), nacks_of(pdc),
  }
end

-- All contexts as text, in columns.
function U.statistics_text()
  local rows, widths = { HEADINGS }, {}
  for _, pdc in ipairs(U.pdcs) do rows[#rows + 1] = row(pdc) end
  for _, cells in ipairs(rows) do
    for i, cell in ipairs(cells) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local totals = U.totals
  local lines = {
    format("UET: %d packets, %d contexts, %d RUDI, %d datagrams, %d secured, %d malformed",
      totals.packets, #U.pdcs, totals.rudi, totals.uud, totals.tss, totals.malformed),
    "Frames and bytes of payload from the initiator, then (<) from the target; response times to within a tenth.",
  }
  for _, cells in ipairs(rows) do
    local parts = {}
    for i, cell in ipairs(cells) do parts[i] = i == #cells and cell or cell .. (" "):rep(widths[i] - #cell) end
    lines[#lines + 1] = table.concat(parts, "  ")
  end
  return table.concat(lines, "\n") .. "\n"
end

if gui_enabled() then
  register_menu("Ultra Ethernet/Contexts", function()
    local window = TextWindow.new("Ultra Ethernet: contexts")
    window:set(U.statistics_text())
    window:add_button("Refresh", function() window:set(U.statistics_text()) end)
  end, MENU_TOOLS_UNSORTED)
end

local listener
function U.listen_for_the_end()
  if listener or not U.settings.statistics or gui_enabled() then return end
  -- Only its end is of interest.
  listener = Listener.new("frame", "frame.number == 0")
  function listener.packet() end
  function listener.draw() print(U.statistics_text()) end
  function listener.reset() end
end
