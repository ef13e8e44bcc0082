package access

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// Store is the role of the store for workflows.
type Store interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Server(ctx context.Context, s store.Shard) uint64
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
}

// Node is what a call needs of its node.
type Node interface {
	// NowAt is the time by the clock of a shard's store.
	NowAt(s store.Shard) store.Millis
	// Resolve repeats a call of unknown outcome.
	Resolve(ctx context.Context, call func() error) (repeated bool, err error)
	// Committed tells those whom a commit concerns: the owner of the shard, and the workers
	// of tasks that are asked to end.
	Committed(ctx context.Context, s store.Shard, c *store.Commit, stamp store.Stamp)
}

// Access is the workflows in a store. Its methods are safe for concurrent use. They return
// *refusal.Error where the workflow or the request is in the way, and else errors of the store:
// ErrSealed when the topic has other shards by now than the caller knows.
type Access struct {
	Store Store
	Node  Node
}

// Submitted is what became of a submit.
type Submitted struct {
	workflow.Status
	Deduplicated bool           // it was there with the same definition
	Replaced     workflow.State // of a finished one that had the id; 0: none had
}

// Result is what a unit returned.
type Result struct {
	Step  string
	Copy  int
	State workflow.UnitState
	Try   int
	Error string
	Value []byte
}

// Filter says which workflows of a shard are listed.
type Filter struct {
	State workflow.State  // 0: any
	Name  string          // empty: any
	Label store.Attribute // the zero one: any

	Retention time.Duration // of the topic, for when they are deleted
}
