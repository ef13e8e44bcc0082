package conn

// Script is a Lua script. It may be sent by its SHA to a server that knows it.
type Script struct {
	Source, SHA string
	Reads       bool // it changes nothing
}
