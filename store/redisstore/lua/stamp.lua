#!lua flags=no-writes
-- stamp: the moment and seq of a shard, and whether a claim is current.
--
-- KEYS  owner
-- ARGV  1 epoch, or empty: not fenced  2 nonce
--
-- returns {us, seq, inbox}, or -1 fenced

-- include owner.lua
if ARGV[1] ~= '' and (owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2]) then return -1 end
return {us, seq, inbox}
