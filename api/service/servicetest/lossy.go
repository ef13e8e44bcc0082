package servicetest

import (
	"context"
	"sync"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// Lossy loses the answer to a commit of no owner, and may be away after that.
type Lossy struct {
	*memstore.Store

	mu   sync.Mutex
	then func() // what happens before the call hears that its answer is lost; nil: none is
	away bool
}

func (l *Lossy) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	stamp, results, err := l.Store.Commit(ctx, s, f, commits)
	l.mu.Lock()
	then := l.then
	if f == nil {
		l.then = nil
	}
	l.mu.Unlock()
	if f != nil || then == nil {
		return stamp, results, err
	}
	then()
	return store.Stamp{}, nil, store.ErrUnknown
}

func (l *Lossy) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, store.ErrUnavailable
	}
	return l.Store.Cells(ctx, s, ids)
}

// Set has the next answer be lost, and then what comes in between; away has cells be out of reach.
func (l *Lossy) Set(then func(), away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.then, l.away = then, away
}
