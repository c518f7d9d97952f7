-- Prints how many thousand Lua instructions the dissector needs for a capture.
local thousands = 0
debug.sethook(function() thousands = thousands + 1 end, "", 1000)
local tap = Listener.new("frame")
function tap.draw() print("thousands of instructions: " .. thousands) end
