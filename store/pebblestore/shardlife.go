package pebblestore

import (
	"context"
	"math"

	"github.com/ddq-io/ddq/store"
)

// The record of the topic that a shard belongs to: its life, and a byte that says whether
// that is over.

// OpenShard makes a shard take tasks of the topic that the call is for.
func (s retention) OpenShard(ctx context.Context, name store.Shard, was store.ShardLife) error {
	_, err := s.change(ctx, name, access{owned: true}, func(t *transaction) error {
		next, opens := t.sh.life.Opening(name.Life, was)
		if !opens {
			return nil
		}
		t.next.opened = was != store.ShardLife{}
		return t.putLife(next)
	})
	return err
}

// Seal makes a shard take no new task.
func (s retention) Seal(ctx context.Context, name store.Shard) error {
	_, err := s.change(ctx, name, access{owned: true}, func(t *transaction) error {
		life, ours := t.sh.life.Sealing(name.Life)
		if !ours {
			return nil
		}
		t.next.sealed = true
		t.writer() // it is written with the numbers
		return t.putLife(life)
	})
	return err
}

// DropShard deletes everything of a shard but its owner record.
func (s retention) DropShard(ctx context.Context, name store.Shard) error {
	_, err := s.change(ctx, name, access{owned: name.Life != 0}, func(t *transaction) error { return t.drop(name.Life) })
	return err
}

// keptTables are those of a shard that outlive its topic, in order.
var keptTables = [...]table{tableIndexed, tableLife, tableMeta, tableOwner}

func (t *transaction) drop(by uint64) error {
	life, ours := t.sh.life.Dropping(by)
	if t.sh.number == 0 || !ours {
		return nil
	}
	if t.sh.known && !t.sh.dropped { // every range that is deleted costs each read of every shard, until it is written to a table
		for i, from := 0, table(0); i <= len(keptTables); i++ {
			to := table(math.MaxUint8)
			if i < len(keptTables) {
				to = keptTables[i]
			}
			if from < to {
				if err := t.writer().DeleteRange(appendPrefix(nil, t.sh.number, from), appendPrefix(nil, t.sh.number, to), nil); err != nil {
					return err
				}
			}
			from = to + 1
		}
	}
	m, x := &t.sh.meta, &t.next
	x.pending, x.done, x.dead = -m.pending, -m.done, -m.dead
	x.dropped = true
	return t.putLife(life)
}
