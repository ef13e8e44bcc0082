#!lua flags=no-writes
-- changes: the log of a shard behind a position.
--
-- KEYS  owner, log
-- ARGV  1 position, -1 for the oldest that is kept  2 about how many changes
--
-- returns {watched, position of the last change, entries}: 1 when there is a log, else 0;
--   entries  the stream's, each with what record.DecodeLogEntry reads, until there are
--            enough changes in them

-- include log_page.lua
