package sealstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Reencrypted is how far a Reencryption is.
type Reencrypted struct {
	Looked, Sealed int64
	Unread         int64  // could not be opened, and stay as they are
	Mark           string // with it another one goes on from here
}

// Reencryption seals anew what is sealed with other keys than the newest, or not at all.
type Reencryption struct {
	// Shards returns those that there are.
	Shards func(ctx context.Context) ([]store.Shard, error)
	// Batch is how many records are read together, at least 1.
	Batch int
	// Mark is of one that did not come to its end; empty begins anew, with another key for every process.
	Mark string
	// Report is called after each batch. Its first error is the end.
	Report func(Reencrypted) error
}

// progress is a mark: what is known of a walk through all shards.
type progress struct {
	Keys   []string `json:"keys"` // that nobody needs at the end of it
	Topic  string   `json:"topic,omitempty"`
	N      int      `json:"n,omitempty"`
	Cursor string   `json:"cursor,omitempty"` // in that shard
}

// before reports whether a shard lies behind the walk.
func (p *progress) before(s store.Shard) bool {
	return compareShards(s, store.Shard{Topic: p.Topic, N: p.N}) < 0
}

func compareShards(a, b store.Shard) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.N, b.N))
}

// Reencrypt retires the keys that are in use, goes through all shards, and notes at the end that the keys which
// were retired when it began are not needed any more.
func (s *Store) Reencrypt(ctx context.Context, r Reencryption) error {
	p, err := s.begin(ctx, r.Mark)
	if err != nil {
		return err
	}
	shards, err := r.Shards(ctx)
	if err != nil {
		return fmt.Errorf("list shards: %w", err)
	}
	slices.SortFunc(shards, compareShards)
	var done Reencrypted
	for _, shard := range shards {
		if p.before(shard) {
			continue
		}
		if p.Topic != shard.Topic || p.N != shard.N {
			p.Topic, p.N, p.Cursor = shard.Topic, shard.N, ""
		}
		if err := s.reencryptShard(ctx, shard, &r, p, &done); err != nil {
			return fmt.Errorf("shard %v: %w", shard, err)
		}
	}
	return s.keys.Clear(ctx, p.ids())
}

// begin returns where to go on; the beginning where there is no mark.
func (s *Store) begin(ctx context.Context, mark string) (*progress, error) {
	p := new(progress)
	if mark != "" {
		if err := json.Unmarshal([]byte(mark), p); err != nil {
			return nil, fmt.Errorf("the mark of a reencryption: %w", err)
		}
	} else if err := s.keys.Retire(ctx); err != nil {
		return nil, err
	}
	ids, err := s.keys.Settle(ctx)
	if err != nil {
		return nil, err
	}
	if mark == "" {
		for _, id := range ids {
			p.Keys = append(p.Keys, id.String())
		}
	}
	return p, nil
}

// ids are those of the keys that nobody needs at the end.
func (p *progress) ids() (ids []KeyID) {
	for _, name := range p.Keys {
		if id, err := parseKeyID(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// reencryptShard goes through a shard from the cursor of p on.
func (s *Store) reencryptShard(ctx context.Context, shard store.Shard, r *Reencryption, p *progress, done *Reencrypted) error {
	for first := true; first || p.Cursor != ""; first = false {
		by, err := s.resealer(ctx, shard)
		if err != nil {
			return err
		}
		if p.Cursor, err = s.Inner.Rewrite(ctx, shard, by, p.Cursor, max(r.Batch, 1)); err != nil {
			return err
		}
		if err := by.ask(ctx); err != nil {
			return err
		}
		mark, err := json.Marshal(p)
		if err != nil {
			return err
		}
		done.Looked, done.Sealed, done.Unread, done.Mark = done.Looked+by.looked, done.Sealed+by.sealed, done.Unread+by.unread, string(mark)
		if err := r.Report(*done); err != nil {
			return err
		}
	}
	return s.awaitParcels(ctx, shard)
}

// Parcels are on their way, and gone within moments where a fleet is well.
const (
	parcelPage  = 100
	parcelPause = time.Second
	parcelWait  = 5 * time.Minute
)

// errParcels is about parcels that stay.
var errParcels = errors.New("parcels do not get on their way: is there an owner of the shard? Go on when they have")

// awaitParcels waits until those are gone that are sealed with keys that are retired.
func (s *Store) awaitParcels(ctx context.Context, shard store.Shard) error {
	for until := time.Now().Add(parcelWait); ; {
		old, err := s.oldParcels(ctx, shard)
		if err != nil || !old {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, errParcels)
		}
		timer := time.NewTimer(parcelPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// oldParcels reports whether a shard has parcels that would be sealed anew.
func (s *Store) oldParcels(ctx context.Context, shard store.Shard) (bool, error) {
	for _, box := range []store.Box{store.InBox, store.OutBox} {
		for after := int64(0); ; {
			page, err := s.Inner.Parcels(ctx, shard, box, after, parcelPage)
			if err != nil {
				return false, err
			}
			if len(page) == 0 {
				break
			}
			by, err := s.resealer(ctx, shard)
			if err != nil {
				return false, err
			}
			for i := range page {
				if by.parcel(&page[i]) {
					return true, nil
				}
			}
			after = page[len(page)-1].Number
		}
	}
	return s.oldMessages(ctx, shard)
}

// oldMessages is oldParcels for the messages of its queues.
func (s *Store) oldMessages(ctx context.Context, shard store.Shard) (bool, error) {
	var last store.Queue
	for {
		heads, err := s.Inner.Queues(ctx, shard, last, parcelPage)
		if err != nil || len(heads) == 0 {
			return false, err
		}
		by, err := s.resealer(ctx, shard)
		if err != nil {
			return false, err
		}
		for _, h := range heads {
			for after, first := int64(0), true; first || after != 0; first = false {
				page, err := s.Inner.Messages(ctx, shard, h.Queue, after, parcelPage, store.MaxBodies)
				if err != nil {
					return false, err
				}
				for i := range page.Messages {
					if by.parcel(&page.Messages[i]) {
						return true, nil
					}
				}
				after = page.Next
			}
		}
		last = heads[len(heads)-1].Queue
	}
}

// parcel reports whether something of a parcel would be sealed anew.
func (r *resealer) parcel(p *store.Parcel) bool {
	all := [][]byte{p.Body}
	if e := p.Ended; e != nil {
		all = append(all, []byte(e.Error), e.Result, e.Say)
	}
	return slices.ContainsFunc(all, func(b []byte) bool {
		_, old := r.Value(b)
		return old
	})
}
