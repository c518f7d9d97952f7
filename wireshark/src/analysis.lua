-- Facts about a packet that earlier and later packets tell.
local format = string.format
local f, oddities = U.f, U.oddities
local generated, A, M = U.generated, U.A, U.M

local function time(tree, field, value)
  if not U.wants(field) then return end
  local whole = math.floor(value)
  return generated(tree, field, NSTime.new(whole, math.floor((value - whole) * 1e9 + 0.5)))
end

-- Returns true if an oddity concerns the packet.
local function is_odd(a)
  return a.retransmission or a.duplicate or a.gap or a.outside_window or a.ack_unseen or a.nack or a.failed
end

-- The oddities as expert items; these count even when there is no tree.
function U.add_oddities(tree, p, a)
  if not p.trimmed and not (a and is_odd(a)) then return end
  local function odd(kind, text)
    tree:add_proto_expert_info(oddities[kind][1], text or oddities[kind][2])
  end
  if p.trimmed then odd("trimmed") end
  if not a then return end
  if a.retransmission then
    odd("retransmission", a.retransmission_of and format("Retransmission of frame %d", a.retransmission_of))
  end
  if a.duplicate then odd("duplicate", a.duplicate_of and format("Duplicate of frame %d, and retx is 0", a.duplicate_of)) end
  if a.gap then odd("gap", format("%d PSNs before this one have not been seen", a.gap)) end
  if a.outside_window then odd("outside_window") end
  if a.ack_unseen then odd("ack_unseen") end
  if a.nack then
    local class = U.nack_class[a.nack] or { "unknown", "unknown" }
    odd(class[1] == "pdc fatal" and "nack_fatal" or "nack",
      format("Refused: %s (%s: %s)", U.name_of(U.registries.NackCode.names, a.nack), class[1], class[2]))
  end
  if a.failed then
    odd("failed", "The request failed: " .. U.name_of(U.registries.ReturnCode.names, a.failed))
  end
end

local function links(tree, a)
  for _, name in ipairs { "acked_in", "retransmission_of", "duplicate_of", "nack_for", "nacked_in", "answers_nack",
    "retransmitted_in", "answer_in", "answer_to" } do
    if a[name] then generated(tree, f[name], a[name]) end
  end
  for _, number in ipairs(a.acks or {}) do generated(tree, f.acks, number) end
  if a.acks_count then generated(tree, f.acks_count, a.acks_count) end
end

-- The context and the message.
function U.add_analysis(tree, p, a, payload)
  local half = a[A.HALF]
  if half then
    generated(tree, f.pdc, U.pdc_of(half))
    generated(tree, f.pdc_direction, U.direction_of(half))
  end
  if a.retransmission then generated(tree, f.retransmission, true) end
  if a.duplicate then generated(tree, f.duplicate, true) end
  if a.gap then generated(tree, f.gap, a.gap) end
  if a.outside_window then generated(tree, f.outside_window, true) end
  links(tree, a)
  if a.response_time then time(tree, f.response_time, a.response_time) end
  local message = a[A.MESSAGE]
  if not message then return end
  generated(tree, f.message_first, message[M.START][A.FRAME])
  generated(tree, f.message_last, message[M.LAST])
  generated(tree, f.message_packets, message[M.PACKETS])
  generated(tree, f.message_bytes, UInt64.new(message[M.BYTES] % 4294967296, math.floor(message[M.BYTES] / 4294967296)))
  if message[M.TIME] then time(tree, f.message_time, message[M.TIME]) end
  U.add_data(tree, p, a, payload)
end
