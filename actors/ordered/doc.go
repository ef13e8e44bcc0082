// Package ordered walks through maps in order: what a node does next never depends on
// the order of a map, so that a simulation can repeat it.
package ordered
