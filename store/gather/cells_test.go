package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/gather"
	"github.com/ddq-io/ddq/store/memstore"
)

var shard = store.Shard{Topic: "mail"}

// slow is cells whose calls wait until they may go on.
type slow struct {
	inner
	goOn chan struct{}
	most int   // of one read
	err  error // of all commits

	mu    sync.Mutex
	sizes []int // of the calls, in their order
}

type inner = store.Cells

func newSlow() *slow { return &slow{inner: memstore.New(), goOn: make(chan struct{}), most: 1000} }

func (s *slow) wait(n int) {
	s.mu.Lock()
	s.sizes = append(s.sizes, n)
	s.mu.Unlock()
	<-s.goOn
}

func (s *slow) Cells(ctx context.Context, shard store.Shard, ids []store.CellID) ([]store.Cell, error) {
	s.wait(len(ids))
	return s.inner.Cells(ctx, shard, ids[:min(len(ids), s.most)])
}

func (s *slow) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	s.wait(len(commits))
	if s.err != nil {
		return store.Stamp{}, nil, s.err
	}
	return s.inner.Commit(ctx, shard, f, commits)
}

// together has n goroutines do something while the first of them is at the store, lets all
// calls go on, and returns how many questions each call had.
func together(s *slow, n int, do func(i int)) []int {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
		synctest.Wait()
	}
	close(s.goOn)
	wg.Wait()
	return s.sizes
}

func put(i int) []store.Commit {
	return []store.Commit{{Puts: []store.Put{{Cell: store.Cell{ID: id(i), Body: []byte{byte(i + 1)}}}}}}
}

func id(i int) store.CellID { return store.CellID(fmt.Sprintf("s%d", i)) }

func TestCommitsThatWaitAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		c := gather.New(s)
		sizes := together(s, 9, func(i int) {
			commit := put(i % 8) // the last one makes a cell that is there by then
			_, results, err := c.Commit(t.Context(), shard, nil, commit)
			want := store.OK
			if i == 8 {
				want = store.Stale
			}
			if err != nil || len(results) != 1 || results[0].Status != want {
				t.Errorf("commit %d: %v, %v; want %v", i, results, err, want)
			}
		})
		if !slices.Equal(sizes, []int{1, 8}) {
			t.Errorf("the calls had %v commits, want 1 and then 8", sizes)
		}
	})
}

func TestCommitsOfOtherShardsServersAndKindsAreOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		c := gather.New(s)
		together(s, 4, func(i int) {
			commit, where := put(i), shard
			switch i {
			case 1:
				where.N = 1
			case 2:
				commit[0].From = c.Server(t.Context(), shard) + 1
			case 3:
				commit[0] = store.Commit{Drop: []int64{1}}
			}
			_, _, _ = c.Commit(t.Context(), where, nil, commit)
		})
		if !slices.Equal(s.sizes, []int{1, 1, 1, 1}) {
			t.Errorf("the calls had %v commits, want one each", s.sizes)
		}
	})
}

func TestAnErrorIsThatOfAllOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		s.err = store.ErrUnknown
		c := gather.New(s)
		together(s, 3, func(i int) {
			if _, results, err := c.Commit(t.Context(), shard, nil, put(i)); !errors.Is(err, store.ErrUnknown) || results != nil {
				t.Errorf("commit %d: %v, %v", i, results, err)
			}
		})
	})
}

func TestReadsThatWaitAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		c := gather.New(s)
		for i := range 6 {
			if _, _, err := s.inner.Commit(t.Context(), shard, nil, put(i)); err != nil {
				t.Fatal(err)
			}
		}
		s.most = 3 // as if the others had too many bytes
		sizes := together(s, 6, func(i int) {
			cells, err := c.Cells(t.Context(), shard, []store.CellID{id(i)})
			if err != nil || len(cells) != 1 || cells[0].ID != id(i) || cells[0].Version != 1 {
				t.Errorf("cell %d: %v, %v", i, cells, err)
			}
		})
		if !slices.Equal(sizes, []int{1, 5, 1, 1}) {
			t.Errorf("the calls had %v ids, want 1, then 5, and those again that were left out", sizes)
		}
	})
}
