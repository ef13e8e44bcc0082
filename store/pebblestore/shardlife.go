package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// The record of the topic that a shard belongs to: its life, and a byte that says whether
// that is over.

func decodeShardLife(b []byte) (store.ShardLife, error) {
	in := input{b: b}
	l := store.ShardLife{Topic: in.uint64(), Ended: in.byte() != 0}
	if in.short {
		return store.ShardLife{}, errors.New("decode life of a shard: malformed")
	}
	return l, nil
}

func (sh *shard) loadLife(s *Store) error {
	return s.read(appendPrefix(nil, sh.number, tableLife), func(b []byte) (err error) {
		sh.life, err = decodeShardLife(b)
		return err
	})
}

func (t *turn) putLife(l store.ShardLife) error {
	if l == t.sh.life {
		return nil
	}
	t.key = appendPrefix(t.key[:0], t.sh.number, tableLife)
	t.value = binary.BigEndian.AppendUint64(t.value[:0], l.Topic)
	var ended byte
	if l.Ended {
		ended = 1
	}
	t.value = append(t.value, ended)
	t.life = &l
	return t.set(t.key, t.value)
}

// admit refuses tasks of another topic than the shard's.
func (t *turn) admit(life uint64) error {
	next, ours := t.sh.life.Adding(life)
	if !ours {
		return store.ErrSealed
	}
	return t.putLife(next)
}

// OpenShard makes a shard take tasks of the topic that the call is for.
func (s *Store) OpenShard(ctx context.Context, name store.Shard, was store.ShardLife) error {
	_, err := s.change(ctx, name, access{owned: true}, func(t *turn) error {
		next, opens := t.sh.life.Opening(name.Life, was)
		if !opens {
			return nil
		}
		t.opened = was != store.ShardLife{}
		return t.putLife(next)
	})
	return err
}
