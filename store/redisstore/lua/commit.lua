#!lua
-- commit: commits of which some bring work: a full server refuses them, as it refuses new tasks. See change_commits.lua.
--
-- KEYS  those of a shard

-- include owner.lua
-- include call.lua
-- include change_commits.lua
