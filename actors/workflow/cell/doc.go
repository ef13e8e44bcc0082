// Package cell has the stored form of workflows, as protobuf messages.
package cell
