package workflow

// OpenList is the list that shows workflows which have not ended, by when they were created.
const OpenList = "wf/open"

// ListOf is the list that shows workflows in a state. Those that have ended have a list for each
// state, by when they ended.
func ListOf(s State) string {
	if s.Open() {
		return OpenList
	}
	return "wf/" + s.String()
}

// Lists are all lists of workflows, in the order in which people look for them.
func Lists() []string {
	return []string{OpenList, ListOf(Failed), ListOf(Done), ListOf(Cancelled)}
}

// CorruptList is that of headers that cannot be read, which do not wake.
const CorruptList = "corrupt"
