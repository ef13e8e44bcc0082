-- The outcomes of store.Status, by their numbers there.
local OK, ADDED, HELD, DUPLICATE, CONFLICT, ALREADY = 1, 2, 3, 4, 5, 6
local NOT_DUE, STALE, WRONG_STATE, NOT_FOUND, CORRUPT, EXPIRED, LATE = 7, 8, 9, 10, 11, 12, 13
local CLOSED, BEHIND = 42, 50
