// Package operations runs changes of many tasks for callers that do not wait for them. An operation
// belongs to the node that took the call: it runs there, at a rate, and tells each second how far it is
// in a record of the store, where every node reads it, and where any may ask it to stop. A node that
// dies leaves what was changed by then, and a record that says no more: the operation is broken off, and
// may be started again.
package operations
