package sealstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// resealer seals anew, with the key of the process, what is not sealed, or with a key that is retired. It is a
// store.Rewrite: it calls no store.
type resealer struct {
	seal   sealer
	open   opener
	looked int64
	sealed int64
	unread int64 // could not be opened, and stay

	strange []KeyID // that were met and are not known, or not yet
}

var _ store.Rewrite = (*resealer)(nil)

// resealer returns what seals anew for a topic, and fails when nothing is sealed here.
func (s *Store) resealer(ctx context.Context, shard store.Shard) (*resealer, error) {
	seal, err := s.sealer(ctx, shard)
	if err == nil && seal.key == nil {
		err = errors.New("this process seals nothing")
	}
	if err != nil {
		return nil, err
	}
	open := s.keys.opener(shard.Topic)
	open.known = true
	return &resealer{seal: seal, open: open}, nil
}

// old reports whether something is sealed with a key that is retired.
func (r *resealer) old(sealed []byte) bool {
	if len(sealed) < store.EncryptedBytes {
		r.unread++
		return false
	}
	key, err := r.open.find(context.Background(), KeyID(sealed))
	if err != nil {
		r.strange = append(r.strange, KeyID(sealed))
		return false
	}
	return key.retired.Load()
}

// ask looks for the keys that were not known: one that another process made meanwhile is newer than those that are
// retired. What is sealed with any other cannot be opened.
func (r *resealer) ask(ctx context.Context) error {
	for _, id := range r.strange {
		switch _, err := r.open.keys.find(ctx, id); {
		case errors.Is(err, ErrUnknownKey):
			r.unread++
		case err != nil:
			return err
		}
	}
	r.strange = nil
	return nil
}

// opened is what is in something sealed with a key that is retired; false: it stays as it is.
func (r *resealer) opened(sealed []byte) ([]byte, bool) {
	if !r.old(sealed) {
		return nil, false
	}
	plain, err := r.open.bare(context.Background(), bytes.Clone(sealed))
	if err != nil {
		r.unread++
		return nil, false
	}
	return plain, true
}

// Task implements store.Rewrite.
func (r *resealer) Task(t *store.Task) bool {
	r.looked++
	plain := *t
	switch {
	case t.Encrypted:
		payload, old := r.opened(t.Payload)
		if !old {
			return false
		}
		if err := r.open.origin(context.Background(), &plain); err != nil {
			r.unread++
			return false
		}
		plain.Payload, plain.Encrypted = payload, false
	case len(t.Payload) == 0 && !hasMore(t):
		return false
	}
	r.seal.task(&plain, nil)
	*t = plain
	r.sealed++
	return true
}

// Value implements store.Rewrite.
func (r *resealer) Value(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	r.looked++
	plain := b
	if marked(b) {
		var old bool
		if plain, old = r.opened(b[1:]); !old {
			return nil, false
		}
	}
	r.sealed++
	return r.seal.value(plain), true
}

// Entry implements store.Rewrite.
func (r *resealer) Entry(e *store.JournalEntry) bool {
	r.looked++
	plain := e.Value
	if e.Encrypted {
		var old bool
		if plain, old = r.opened(e.Value); !old {
			return false
		}
	}
	e.Value, e.Encrypted = r.seal.seal(nil, plain), true
	r.sealed++
	return true
}
