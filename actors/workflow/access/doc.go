// Package access reads and changes workflows in the store. Any node may: a workflow is read
// from its cells, stepped, and put back if nobody else has changed it meanwhile. The owner of
// the shard does the same with what it is told.
package access
