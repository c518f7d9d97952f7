-- Reads the key file that the preference names: the TOML of `uet decode --keys`, without dates and multi-line text.
-- A message never quotes the file, because the file holds secrets.

-- A cursor on the text. Its methods raise the reason of an error.
local Reader = {}
Reader.__index = Reader

function Reader:fail(reason)
  local _, before = self.text:sub(1, self.at - 1):gsub("\n", "")
  error({ reason = string.format("line %d: %s", before + 1, reason) }, 0)
end

-- Takes a pattern, if it is next, and returns its capture.
function Reader:take(pattern)
  local _, last, found = self.text:find("^" .. pattern, self.at)
  if not last then return nil end
  self.at = last + 1
  return found or true
end

-- Skips spaces and comments, and line ends too if `lines`.
function Reader:skip(lines)
  repeat
    local before = self.at
    self:take("[ \t\r]+")
    self:take("#[^\n]*")
    if lines then self:take("\n") end
  until self.at == before
end

function Reader:name()
  return self:take("([%w_-]+)") or self:take('"([^"\n\\]*)"') or self:take("'([^'\n]*)'") or self:fail("a name is missing")
end

function Reader:list()
  local all = {}
  repeat
    self:skip(true)
    if self:take("%]") then return all end
    all[#all + 1] = self:value()
    self:skip(true)
  until not self:take(",")
  return self:take("%]") and all or self:fail("a list has no end")
end

function Reader:inline_table()
  local all = {}
  repeat
    self:skip()
    if self:take("}") then return all end
    self:entry(all)
    self:skip()
  until not self:take(",")
  return self:take("}") and all or self:fail("a table has no end")
end

function Reader:value()
  if self:take("%[") then return self:list() end
  if self:take("{") then return self:inline_table() end
  local text = self:take('"([^"\n\\]*)"') or self:take("'([^'\n]*)'")
  if text then return text end
  local word = self:take("([%w_+-]+)") or self:fail("a value is missing")
  if word == "true" or word == "false" then return word == "true" end
  return tonumber((word:gsub("_", ""))) or self:fail("a value is neither text, a number, true nor false")
end

function Reader:entry(into)
  local name = self:name()
  self:skip()
  if not self:take("=") then self:fail("a name has no value") end
  self:skip()
  into[name] = self:value()
end

-- Returns the tables named `domain`, each with the line where it starts.
local function domains_in(text)
  local reader = setmetatable({ text = text, at = 1 }, Reader)
  local all, into = {}, {}
  reader:take("\239\187\191")
  while true do
    reader:skip(true)
    if reader.at > #text then return all end
    if reader:take("%[%[[ \t]*domain[ \t]*%]%]") then
      into = { at = reader.at }
      all[#all + 1] = into
    elseif reader:take("%[[ \t]*domain[ \t]*%.[ \t]*keys[ \t]*%]") and #all > 0 then
      all[#all].keys = {}
      into = all[#all].keys
    else
      reader:entry(into)
      reader:skip()
      if not reader:take("\n") and reader.at <= #text then reader:fail("something stands behind a value") end
    end
  end
end

local LABELS = { direct = false, client = false, cluster = "U1", server = "U2" }

local function whole(value, limit)
  return type(value) == "number" and value % 1 == 0 and value >= 0 and value < limit
end

-- Returns the keys of an association number as bytes, or nil and the reason.
local function secrets(listed, digits)
  if type(listed) ~= "table" then listed = { listed } end
  local all = {}
  for _, key in ipairs(listed) do
    if type(key) ~= "string" or #key ~= digits or key:find("%X") then
      return nil, string.format("keys: a key of this mode has %d hexadecimal digits", digits)
    end
    all[#all + 1] = (key:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
  end
  return all
end

-- Returns the settings of a domain, or nil and the reason.
local function domain(read)
  local header = read.ssi and 16 or 12
  local d = {
    mode = read.mode, label = LABELS[read.mode], ssi = read.ssi or false, keys = {},
    mask = read.rekey_mask or 0, shift = read.rekey_shift or 0, clear = read.confidentiality_offset or header,
    short_context = read.ipv6_ssi_context == "ssi",
  }
  if not whole(read.sdi, 2 ^ 24) then return nil, "sdi: a domain has a number of 24 bits" end
  if d.label == nil then return nil, "mode: direct, cluster, client or server" end
  if not whole(d.mask, 2 ^ 48) or not whole(d.shift, 48) then return nil, "rekey_mask, rekey_shift: at most 48 bits" end
  if not whole(d.clear, 65) or d.clear < header then return nil, "confidentiality_offset: out of range" end
  if type(read.keys) ~= "table" then return nil, "keys: the domain has no key" end
  for an, listed in pairs(read.keys) do
    if an ~= "0" and an ~= "1" then return nil, "keys: an association number is 0 or 1" end
    local reason
    d.keys[tonumber(an)], reason = secrets(listed, read.mode == "client" and 88 or 64)
    if reason then return nil, reason end
  end
  return d
end

-- Returns the domains of a file by number, or nil and the reason.
local function read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil, "the file cannot be read" end
  local text = file:read(2 ^ 20) or ""
  file:close()
  local ok, read = pcall(domains_in, text)
  if not ok then return nil, type(read) == "table" and read.reason or "the file cannot be read" end
  local all = {}
  for _, found in ipairs(read) do
    local d, reason = domain(found)
    if not d then
      local _, before = text:sub(1, found.at - 1):gsub("\n", "")
      return nil, string.format("line %d: %s", before + 1, reason)
    end
    all[found.sdi] = d
  end
  if not next(all) then return nil, "the file has no [[domain]]" end
  return all
end

-- The domains of the key file by number. `U.key_problem` says why there are none.
U.domains = {}
local loaded = ""
function U.load_keys(path)
  if path == loaded then return end
  loaded, U.domains, U.key_problem = path, {}, nil
  if path == "" then return end
  local domains, problem = read_file(path)
  U.domains = domains or {}
  if problem then
    U.key_problem = string.format("key file %s: %s", path, problem)
    io.stderr:write("uet: ", U.key_problem, "\n")
  end
end

-- Returns how many bytes behind the security header are readable.
function U.readable_bytes(p)
  local d = U.domains[p.tss["tss.sdi"]]
  return d and math.max(d.clear - p.tss_layout.bytes, 0) or U.settings.tss_clear
end
