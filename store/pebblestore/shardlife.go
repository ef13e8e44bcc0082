package pebblestore

import (
	"context"

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
	_, err := s.change(ctx, name, access{owned: name.Life != 0}, func(t *transaction) error {
		life, ours := t.sh.life.Dropping(name.Life)
		if t.sh.number == 0 || !ours {
			return nil
		}
		for _, table := range []table{tableTasks, tablePending, tableHolds, tableDead, tableDone, tableTrim, tableLanes, tableHistory, tableJournal, tableKeys, tableOrder, tableIndex, tableLog, tableCells, tableWakes, tableLists, tableIn, tableOut, tableQueues} {
			lower, upper := appendPrefix(nil, t.sh.number, table), appendPrefix(nil, t.sh.number, table+1)
			if err := t.writer().DeleteRange(lower, upper, nil); err != nil {
				return err
			}
		}
		m, x := &t.sh.meta, &t.next
		x.pending, x.done, x.dead = -m.pending, -m.done, -m.dead
		t.next.dropped = true
		return t.putLife(life)
	})
	return err
}
