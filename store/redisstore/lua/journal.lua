  -- The journal of a task is in TELLS: the entry of the task has a byte 0, how many bytes the
  -- journal has in 4, and the cell that the task tells or nothing. Under journal_of(id) are
  -- the names, behind the length of each, and what a name returned under that with the name,
  -- behind when it was kept, in 8.
  local function journal_of(id) return '\255' .. string.char(#id) .. id end
  local function count_names(names)
    local n, at, byte, size = 0, 1, string.byte, #names
    while at <= size do n, at = n + 1, at + 1 + byte(names, at) end
    return n
  end
  local function each_name(names, f)
    local at = 1
    while names and at <= #names do
      local size = string.byte(names, at)
      f(string.sub(names, at + 1, at + size))
      at = at + 1 + size
    end
  end
