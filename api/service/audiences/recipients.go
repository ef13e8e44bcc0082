package audiences

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// MaxBatch is how many recipients one call may change.
const MaxBatch = 1000

// maxLeaves is about how many leaves one commit changes.
const maxLeaves = 128

// Put is what became of one recipient.
type Put struct {
	Outcome audience.Outcome // Same, Added, Changed, Removed
	Err     error            // else; the others are put all the same
}

// Put makes recipients what they are to be; of what is said twice of one the later counts.
// The same again changes nothing. With a generation they are part of that replacement. After
// an error some may have been put.
func (s *Audiences) Put(ctx context.Context, name string, generation int64, recipients []Recipient) ([]Put, error) {
	a, err := s.findForBatch(ctx, name, "recipients", len(recipients))
	if err != nil {
		return nil, err
	}
	out := make([]Put, len(recipients))
	b := batch{Audiences: s, a: a, generation: generation, out: out, byShard: make(map[int][]change)}
	for i := range recipients {
		r, err := s.stored(a, &recipients[i])
		if err != nil {
			out[i].Err = err
			continue
		}
		b.add(i, audience.Change{ID: r.ID, Put: r})
	}
	return out, b.run(ctx)
}

// Remove removes recipients: Removed, or Same of those that are none.
func (s *Audiences) Remove(ctx context.Context, name string, ids []string) ([]Put, error) {
	a, err := s.findForBatch(ctx, name, "ids", len(ids))
	if err != nil {
		return nil, err
	}
	out := make([]Put, len(ids))
	b := batch{Audiences: s, a: a, out: out, byShard: make(map[int][]change)}
	for i, id := range ids {
		if id == "" || len(id) > audience.MaxID {
			out[i].Err = badRecipient("id", "has no recipient")
			continue
		}
		b.add(i, audience.Change{ID: id})
	}
	return out, b.run(ctx)
}

func (s *Audiences) findForBatch(ctx context.Context, name, field string, n int) (*audience.Audience, error) {
	if n > MaxBatch {
		return nil, problem.BadField(field, "BATCH_SIZE", "%d %s; at most %d are allowed", n, field, MaxBatch)
	}
	return s.find(ctx, name)
}

// batch is changes of recipients, by where they lie.
type batch struct {
	*Audiences
	a          *audience.Audience
	generation int64 // the replacement that they are part of; 0: none
	out        []Put
	byShard    map[int][]change
}

// change is one of a batch.
type change struct {
	audience.Change
	item int
	at   audience.Position
}

func (b *batch) add(item int, c audience.Change) {
	n, at := audience.Locate(c.ID, b.a.Shards)
	b.byShard[n] = append(b.byShard[n], change{c, item, at})
}

func (b *batch) run(ctx context.Context) error {
	shards := make([]int, 0, len(b.byShard))
	for n := range b.byShard {
		shards = append(shards, n)
	}
	slices.Sort(shards)
	return each(ctx, shards, func(ctx context.Context, n int) error {
		changes := b.byShard[n]
		// Neighbours share leaves. What is said twice of one recipient stays in its order.
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
		for len(changes) > 0 {
			done, err := b.some(ctx, n, changes)
			if err != nil {
				return err
			}
			changes = changes[done:]
		}
		return nil
	})
}

// some makes the first of the changes of a shard, as many as one commit takes.
func (b *batch) some(ctx context.Context, n int, changes []change) (done int, err error) {
	err = b.change(ctx, b.a, n, func(d *audience.Directory) (store.Commit, error) {
		if b.generation != 0 && (b.generation != d.Generation || !d.Replacing) {
			return store.Commit{}, replaced(b.generation)
		}
		var leaves []store.CellID
		done, leaves = covering(d, changes)
		v, err := b.View(ctx, b.a, n, d, leaves)
		if err != nil {
			return store.Commit{}, err
		}
		return b.apply(v, changes[:done]), nil
	})
	return done, err
}

// covering is how many of the changes one commit takes, and the leaves that they need.
func covering(d *audience.Directory, changes []change) (n int, leaves []store.CellID) {
	for n = len(changes); ; n = (n + 1) / 2 {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = changes[i].ID
		}
		if leaves = d.Covering(ids); n == 1 || len(leaves) <= maxLeaves {
			return n, leaves
		}
	}
}

func (b *batch) apply(v *audience.View, changes []change) store.Commit {
	plain := make([]audience.Change, len(changes))
	for i, c := range changes {
		plain[i] = c.Change
	}
	c, outcomes := v.Apply(plain, audience.Limits{Recipients: b.limits.ofShard(b.a)})
	for i, o := range outcomes {
		out := &b.out[changes[i].item]
		if *out = (Put{Outcome: o}); o == audience.Full {
			*out = Put{Err: audienceFull(b.limits.Recipients)}
		}
	}
	return c
}

// ofShard is how many recipients a shard takes: its part, and four standard deviations, so
// that an audience that has room is not full in one shard.
func (l Limits) ofShard(a *audience.Audience) int64 {
	part := float64(l.Recipients) / float64(a.Shards)
	if a.Shards == 1 {
		return l.Recipients
	}
	return int64(part + 4*math.Sqrt(part))
}
