package undeliverable

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Tasks are those that could not be delivered.
type Tasks struct {
	node  *actors.Node
	cells store.Cells // nil: the store keeps none
}

// New returns those of a node's store.
func New(node *actors.Node) *Tasks { return &Tasks{node, node.Cells()} }

// snapshot shows one as a dead letter.
func snapshot(r *message.Refused) store.Snapshot {
	t := *r.Task
	t.LastError = fmt.Sprintf("for topic %s: %s", r.Topic, r.Why)
	return store.Snapshot{Task: t, State: store.StateDead, Reason: store.ReasonUndeliverable, Finished: r.At}
}

// The positions of a listing of dead letters in a shard: first among those that were refused.
const inRefused, inDead = "r", "d"

// List returns those of a shard, and its dead letters behind them: a page, and the cursor of the
// next one, empty at the end. A page may have fewer than limit, and still be followed by one.
func (s *Tasks) List(ctx context.Context, shard store.Shard, cursor string, limit int, dead func(cursor string, limit int) ([]store.Snapshot, string, error)) ([]store.Snapshot, string, error) {
	rest, refused := strings.CutPrefix(cursor, inRefused)
	if s.cells != nil && (cursor == "" || refused) {
		after, err := parseWake(rest)
		if err != nil {
			return nil, "", store.ErrBadCursor
		}
		cells, err := s.cells.Listed(ctx, shard, message.List, after, limit)
		if err != nil {
			return nil, "", err
		}
		if len(cells) > 0 { // fewer than limit, too: those that are large come a few at a time
			var page []store.Snapshot
			for _, r := range s.read(cells) {
				page = append(page, snapshot(r))
			}
			last := &cells[len(cells)-1]
			return page, inRefused + strconv.FormatInt(int64(last.Listed), 10) + ":" + string(last.ID), nil
		}
		cursor = inDead
	}
	page, next, err := dead(strings.TrimPrefix(cursor, inDead), limit)
	if next != "" {
		next = inDead + next
	}
	return page, next, err
}

func parseWake(text string) (store.Wake, error) {
	if text == "" {
		return store.Wake{}, nil
	}
	at, id, _ := strings.Cut(text, ":")
	ms, err := strconv.ParseInt(at, 10, 64)
	return store.Wake{At: store.Millis(ms), ID: store.CellID(id)}, err
}

// read returns what cells keep; those that cannot be read are left out.
func (s *Tasks) read(cells []store.Cell) (all []*message.Refused) {
	for _, c := range cells {
		r, err := message.FromCell(c)
		if err != nil {
			s.node.Log().Error("an undeliverable task cannot be read", "task", c.ID.Key(), "err", err)
			continue
		}
		all = append(all, r)
	}
	return all
}

// Action is what is done with one.
type Action func(*message.Refused) (store.Commit, error)

// Again sends one once more.
func Again(r *message.Refused) (store.Commit, error) { return r.Again() }

// Forget deletes one.
func Forget(r *message.Refused) (store.Commit, error) { return r.Forget(), nil }

// Act applies do to the tasks with these ids, in whichever shard each is, and returns
// how many there were, and the ids that none has. Several may have one id, for other topics.
func (s *Tasks) Act(ctx context.Context, ref *actors.Topic, ids []string, do Action) (n int64, missing []string, err error) {
	if len(ids) == 0 {
		return 0, nil, nil
	}
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		found[id] = false
	}
	err = s.walk(ctx, ref, func(shard store.Shard, r *message.Refused) error {
		if _, meant := found[r.Task.ID]; !meant {
			return nil
		}
		done, err := s.actOn(ctx, ref, shard, r, do)
		if done {
			n++
			found[r.Task.ID] = true
		}
		return err
	})
	for _, id := range ids {
		if !found[id] {
			missing = append(missing, id)
		}
	}
	return n, missing, problem.AsError(err)
}

// ActOnMatches applies do to the tasks of a topic that match, and returns how many there were.
func (s *Tasks) ActOnMatches(ctx context.Context, ref *actors.Topic, matches func(*store.Snapshot) bool, do Action) (n int64, err error) {
	err = s.walk(ctx, ref, func(shard store.Shard, r *message.Refused) error {
		if shown := snapshot(r); !matches(&shown) {
			return nil
		}
		done, err := s.actOn(ctx, ref, shard, r, do)
		if done {
			n++
		}
		return err
	})
	return n, problem.AsError(err)
}

// walk calls each with those of a topic. They may be deleted meanwhile. One that is sent again may be refused again at
// once, and is none that the walk is about.
func (s *Tasks) walk(ctx context.Context, ref *actors.Topic, each func(store.Shard, *message.Refused) error) error {
	if s.cells == nil {
		return nil
	}
	began := store.Millis(ref.Latest().UnixMilli())
	for _, shard := range place.Shards(ref.Config()) {
		for after := (store.Wake{}); ; {
			cells, err := s.cells.Listed(ctx, shard, message.List, after, store.BatchItems)
			if err != nil {
				return err
			}
			if len(cells) == 0 {
				break
			}
			last := &cells[len(cells)-1]
			after = store.Wake{At: last.Listed, ID: last.ID}
			for _, r := range s.read(cells) {
				if r.At > began {
					break
				}
				if err := each(shard, r); err != nil {
					return err
				}
			}
			if last.Listed > began {
				break
			}
		}
	}
	return nil
}

// actOn applies do to one, unless somebody else was faster.
func (s *Tasks) actOn(ctx context.Context, ref *actors.Topic, shard store.Shard, r *message.Refused, do Action) (bool, error) {
	commit, err := do(r)
	if err != nil {
		return false, err
	}
	var results []store.CommitResult
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		_, results, err = s.cells.Commit(ctx, shard.For(ref.Config().Life), nil, []store.Commit{commit})
		return err
	})
	if err != nil {
		return false, err
	}
	if len(commit.Send) > 0 {
		ref.MessagesSent(shard.N)
	}
	return results[0].Status == store.OK || repeated && results[0].Cell.Version == 0, nil
}
