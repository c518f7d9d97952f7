-- The table of contexts: in the Tools menu, and printed by tshark when the preference says so.
local format = string.format

local function address(bytes)
  if not bytes then return "?" end
  if #bytes == 4 then return format("%d.%d.%d.%d", bytes:byte(1, 4)) end
  local words = {}
  for i = 1, 16, 2 do words[#words + 1] = format("%x", bytes:byte(i) * 256 + bytes:byte(i + 1)) end
  return table.concat(words, ":")
end

local C, H = U.contexts, U.halves

local function identifier(half)
  return H.id[half] and format("0x%04x", H.id[half]) or "?"
end

local function microseconds(time)
  return time and format("%.1f", time * 1e6) or "-"
end

local function nacks_of(context)
  local nacks, codes, parts = C.nacks[context] or {}, {}, {}
  for code in pairs(nacks) do codes[#codes + 1] = code end
  table.sort(codes)
  for _, code in ipairs(codes) do
    parts[#parts + 1] = format("%s=%d", U.name_of(U.registries.NackCode.names, code), nacks[code])
  end
  return #parts > 0 and table.concat(parts, ",") or "-"
end

local HEADINGS = { "pdc", "initiator", "id", "target", "id", "frames", "bytes", "frames<", "bytes<", "retx", "dup",
  "messages", "p50 us", "p90 us", "p99 us", "nacks" }
local BYTES_BACK = 9

local function row(context)
  local forward, back, ends = context, -context, C.ends[context]
  local of = function(counts, half) return format("%d", counts[half] or 0) end
  local both = function(counts) return format("%d", (counts[forward] or 0) + (counts[back] or 0)) end
  local at = function(share) return microseconds(U.percentile(context, share)) end
  return {
    format("%d", context - 1), address(ends.address), identifier(forward), address(ends.back.address), identifier(back),
    of(H.packets, forward), of(H.bytes, forward), of(H.packets, back), of(H.bytes, back),
    both(H.retransmissions), both(H.duplicates), of(C.messages, context),
    at(0.5), at(0.9), at(0.99), nacks_of(context),
  }
end

-- Some columns of all rows, as text.
local function columns(rows, which, gap)
  local widths, lines = {}, {}
  for _, cells in ipairs(rows) do
    for _, i in ipairs(which) do widths[i] = math.max(widths[i] or 0, #cells[i]) end
  end
  for n, cells in ipairs(rows) do
    local parts = {}
    for k, i in ipairs(which) do parts[k] = k == #which and cells[i] or cells[i] .. (" "):rep(widths[i] - #cells[i] + gap) end
    lines[n] = table.concat(parts)
  end
  return table.concat(lines, "\n") .. "\n"
end

local ALL, TRAFFIC, SERVICE = {}, {}, { 1 }
for i in ipairs(HEADINGS) do
  ALL[i] = i
  local half = i <= BYTES_BACK and TRAFFIC or SERVICE
  half[#half + 1] = i
end

-- All contexts as text; `narrow` for a window, which breaks long lines: then a table of the traffic, and one of how it fared.
function U.statistics_text(narrow)
  local rows = { HEADINGS }
  for context = 1, #C.ends do rows[#rows + 1] = row(context) end
  local totals = U.totals
  local head = format("UET: %d packets, %d contexts, %d RUDI, %d datagrams, %d secured, %d malformed\n",
    totals.packets, #C.ends, totals.rudi, totals.uud, totals.tss, totals.malformed)
  local traffic = "Frames and captured bytes of payload from the initiator, (<) from the target\n"
  local service = "Response times of requests sent once, to within a tenth\n"
  if narrow then return head .. "\n" .. traffic .. columns(rows, TRAFFIC, 1) .. "\n" .. service .. columns(rows, SERVICE, 2) end
  return head .. traffic .. service .. columns(rows, ALL, 2)
end

if gui_enabled() then
  register_menu("Ultra Ethernet/Contexts", function()
    local window = TextWindow.new("Ultra Ethernet: contexts")
    window:set(U.statistics_text(true))
    window:add_button("Refresh", function() window:set(U.statistics_text(true)) end)
  end, MENU_TOOLS_UNSORTED)
end

local listener
function U.listen_for_the_end()
  local settings = U.settings
  local nothing = not settings.statistics and settings.follow == "" and settings.export == ""
  if listener or nothing or gui_enabled() then return end
  -- Only its end is of interest. Without a listener, `tshark -q` dissects no packet.
  listener = Listener.new("frame", "frame.number == 0")
  function listener.packet() end
  function listener.draw()
    if settings.statistics then print(U.statistics_text()) end
    if settings.follow ~= "" then print(U.follow_text()) end
  end
  function listener.reset() end
end
