-- Tracks messages: their packets, bytes and completion times.
local READ, PLAIN = U.registries.Opcode.codes.UET_READ, U.plain
local C, A = U.contexts, U.A

-- A message is an array: a table with these names would take twice the memory. Rarer facts have names.
local M = { START = 1, LAST = 2, PACKETS = 3, BYTES = 4, PENDING = 5, OPCODE = 6, LENGTH = 7, KEY = 8, SOM = 9, TIME = 10 }
U.M = M
local START, LAST, PACKETS, BYTES, PENDING = M.START, M.LAST, M.PACKETS, M.BYTES, M.PENDING
local OPCODE, LENGTH, KEY, SOM, TIME = M.OPCODE, M.LENGTH, M.KEY, M.SOM, M.TIME

-- The open messages of all halves are in `U.messages`: by message ID, reads without one by PSN.
local function by_id(half, id)
  return half * 8589934592 + id
end

local function by_psn(half, psn)
  return by_id(half, 4294967296 + psn)
end

-- START has the facts of its first packet. TIME is false until the message is complete.
local function new_message(p, a, ses, key)
  local message = { a, p.number, 0, 0, 0, p.opcode, ses["ses.request_length"], key, false, false }
  if key then U.messages[key] = message end
  return message
end

local function done(message)
  if message[PENDING] > 0 then return false end
  if message[OPCODE] == READ then return message.answered and message[BYTES] >= message[LENGTH] end
  if PLAIN[message[OPCODE]] then return message[BYTES] >= message[LENGTH] end
  return message.ended
end

local function finish(p, message, half)
  if message[TIME] or not done(message) then return end
  message[TIME] = p.time - message[START][A.TIME]
  local context = math.abs(half)
  C.messages[context] = (C.messages[context] or 0) + 1
  -- Only what is open is kept.
  local key = message[KEY]
  if key and U.messages[key] == message then U.messages[key] = nil end
end

-- A packet of a message, seen for the first time. `half` sent it, `e` is what is kept of it.
function U.message_packet(p, a, half, e, psn)
  if not p.opcode then return end
  local ses = p.ses
  local id = ses["ses.message_id"]
  local message
  if id and id ~= 0 then
    local key = by_id(half, id)
    message = U.messages[key]
    if not message or ses["ses.som"] == 1 and message[SOM] then
      if message then U.drop_message(message) end
      message = new_message(p, a, ses, key)
    end
  else
    message = new_message(p, a, ses, p.opcode == READ and by_psn(half, psn))
  end
  if ses["ses.som"] == 1 then message[SOM] = true end
  if ses["ses.eom"] == 1 and not PLAIN[message[OPCODE]] then message.ended = true end
  message[PACKETS], message[PENDING] = message[PACKETS] + 1, message[PENDING] + 1
  -- Counts trimmed bytes now, and not in the retransmission.
  if p.opcode ~= READ then message[BYTES] = message[BYTES] + p.payload_bytes + (p.missing or 0) end
  message[LAST] = p.number
  a[A.MESSAGE] = message
  -- The packet was trimmed when it came first.
  if e ~= a then e.part = message end
end

-- One of its packets has been acknowledged.
function U.message_acknowledged(p, message, half)
  message[PENDING] = message[PENDING] - 1
  finish(p, message, half)
end

-- A response: data of a read, or how a request ended. `half` sent it.
function U.message_response(p, a, half)
  local ses, of = p.ses, -half
  if ses["ses.return_code"] > 1 then a.failed = ses["ses.return_code"] end
  local id, psn = ses["ses.read_request_message_id"], ses["ses.original_request_psn"]
  local message = id and U.messages[by_id(of, id)] or psn and U.messages[by_psn(of, psn)]
  if message then
    message.answered = true
    message[BYTES], message[PACKETS] = message[BYTES] + p.payload_bytes, message[PACKETS] + 1
    message[LAST] = p.number
    a[A.MESSAGE] = message
    finish(p, message, of)
  elseif ses["ses.message_id"] then
    a[A.MESSAGE] = U.messages[by_id(of, ses["ses.message_id"])]
  end
end

-- Response times: counts in steps of an eighth of a power of two, so that memory does not grow with them.
local floor, log = math.floor, math.log
local PER_STEP = 8 / log(2)
function U.measure(context, time)
  local step = time > 0 and floor(log(time) * PER_STEP) or -400
  local times = C.times[context]
  if not times then
    times = {}
    C.times[context] = times
  end
  times[step] = (times[step] or 0) + 1
  C.measured[context] = (C.measured[context] or 0) + 1
end

-- The time that `share` of the measured ones do not exceed, to within a tenth.
function U.percentile(context, share)
  local times, measured = C.times[context], C.measured[context]
  if not times then return nil end
  local steps = {}
  for step in pairs(times) do steps[#steps + 1] = step end
  table.sort(steps)
  local sum = 0
  for _, step in ipairs(steps) do
    sum = sum + times[step]
    if sum >= measured * share then return step <= -400 and 0 or 2 ^ ((step + 0.5) / 8) end
  end
end
