#!lua flags=allow-oom
-- commit_on: commits that carry on with what there is. See change_commits.lua.
--
-- KEYS  those of a shard

-- include owner.lua
-- include call.lua
-- include change_commits.lua
