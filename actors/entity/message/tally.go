package message

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// How the cells are called that remember what came from shards of topics: tasks, and what is for
// workflows.
const (
	tallyPrefix = "tof/"
	endPrefix   = "tend/"
)

// Tally is the cell in which other shards remember the last parcel that they took from a shard
// of a topic of that life. A shard that takes a parcel again knows it by that, also when
// its task is done and gone.
func Tally(from store.Shard, life uint64) store.CellID {
	return store.CellID(fmt.Sprintf("%s%s/%x/%d", tallyPrefix, store.FlatName(from.Topic), life, from.N))
}

// EndTally is the cell for what came from a shard for workflows. That comes in an order of its own:
// tasks may wait for their topic, and ends do not.
func EndTally(from store.Shard, life uint64) store.CellID {
	return store.CellID(fmt.Sprintf("%s%s/%x/%d", endPrefix, store.FlatName(from.Topic), life, from.N))
}

// From is whose tally a cell is; ok is false for another cell.
func From(id store.CellID) (from store.Shard, ok bool) {
	rest, of := strings.CutPrefix(string(id), tallyPrefix)
	if !of {
		rest, of = strings.CutPrefix(string(id), endPrefix)
	}
	part := strings.Split(rest, "/")
	if !of || len(part) != 3 {
		return from, false
	}
	n, err := strconv.Atoi(part[2])
	return store.Shard{Topic: store.UnflatName(part[0]), N: n}, err == nil
}
