package conn

// Script is a Lua script. It may be sent by its SHA to a server that knows it.
type Script struct {
	Source, SHA string
	Reads       bool // it changes nothing
	// Keys are which of the keys that its caller knows by number it takes, if it says so.
	Keys []int
}
