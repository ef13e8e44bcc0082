-- lives says whether a session lasts at a moment in ms. One that ends far later than it
-- can is of a clock that was ahead, and is over.
local function lives(expires, ttl, at)
  local left = (tonumber(expires) or 0) - at
  return left > 0 and not (tonumber(ttl) and left > 2 * ttl)
end
