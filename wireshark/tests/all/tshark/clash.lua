-- Stands for a built-in dissector of the same name, with fields of other types under our names.
local taken = Proto("uet", "A built-in UET")
local psn = ProtoField.string("uet.pds.psn", "PSN in words")
local job = ProtoField.bytes("uet.ses.job_id", "Job in bytes")
taken.fields = { psn, job }
function taken.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "TAKEN"
  tree:add(taken, tvb()):add(psn, tvb(0, 1), "one")
  return tvb:len()
end
DissectorTable.get("udp.port"):add(4793, taken)
