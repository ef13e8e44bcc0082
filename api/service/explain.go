package service

import (
	"context"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// explainer says what tasks that are due wait for.
type explainer struct {
	store interface {
		store.Reader
		store.Limits
	}
	maxHeld func(topic string) int // in the namespace of a topic; 0: any number
}

// explain says of tasks that are due what they lack, as the store has it: the time of
// the next token that nobody has reserved, and caps that are reached.
func (s *explainer) explain(ctx context.Context, found []Found) error {
	var asked []store.Reservation
	var looks []store.Acquire
	rates, caps := make(map[store.LimitKey]int), make(map[store.LimitKey]int)
	for i := range found {
		f := &found[i]
		if f.State != store.StateReady {
			continue
		}
		f.limits.Namespace = s.maxHeld(f.Topic)
		for _, q := range f.rates() {
			if _, known := rates[q.Key]; !known {
				rates[q.Key] = len(asked)
				asked = append(asked, q)
			}
		}
		for _, q := range f.caps() {
			if _, known := caps[q.Key]; !known {
				caps[q.Key] = len(looks)
				looks = append(looks, q)
			}
		}
	}
	tokens, err := s.lookAtRates(ctx, asked)
	if err != nil {
		return err
	}
	used, err := s.lookAtCaps(ctx, looks)
	if err != nil {
		return err
	}
	for i := range found {
		f := &found[i]
		if f.State != store.StateReady {
			continue
		}
		for _, q := range f.caps() {
			if used[caps[q.Key]].InUse >= q.Max {
				f.WaitingFor = WaitsForConcurrency
			}
		}
		for _, q := range f.rates() {
			got := tokens[rates[q.Key]]
			if next := clock.CeilMillis(got.First); got.First.After(got.Now) && next > f.NextToken {
				f.WaitingFor, f.NextToken = WaitsForRate, next
			}
		}
	}
	return s.explainOrder(ctx, found)
}

// explainOrder says which tasks that are due wait for another one of their ordering key.
func (s *explainer) explainOrder(ctx context.Context, found []Found) error {
	byShard := make(map[store.Shard][]*Found)
	for i := range found {
		if f := &found[i]; f.State == store.StateReady && f.Traits.Ordering() != "" {
			byShard[f.Shard] = append(byShard[f.Shard], f)
		}
	}
	for shard, waiting := range ordered.All(byShard, place.Compare) {
		keys := make([]string, len(waiting))
		for i, f := range waiting {
			keys[i] = f.Traits.OrderingKey
		}
		_, first, err := s.store.InOrder(ctx, shard, keys, 1)
		if err != nil {
			return err
		}
		for i, f := range waiting {
			if len(first[i]) > 0 && first[i][0].ID != f.ID {
				f.WaitingFor, f.NextToken = WaitsForOrder, 0
			}
		}
	}
	return nil
}

func (s *explainer) lookAtRates(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	return s.store.Reserve(ctx, asked)
}

func (s *explainer) lookAtCaps(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	return s.store.Acquire(ctx, asked)
}

// rates are looks at the rates that a task is under.
func (f *Found) rates() (looks []store.Reservation) {
	if f.Traits != nil && f.Traits.RateKey != "" && f.limits.KeyRate.Limited() {
		looks = append(looks, store.Reservation{Key: store.LimitKey{Topic: f.Topic, Key: f.Traits.RateKey}, Rate: f.limits.KeyRate})
	}
	if f.limits.Rate.Limited() {
		looks = append(looks, store.Reservation{Key: store.LimitKey{Topic: f.Topic}, Rate: f.limits.Rate})
	}
	return looks
}

// caps are looks at the caps that a task is under.
func (f *Found) caps() (looks []store.Acquire) {
	if f.Traits != nil && f.Traits.ConcurrencyKey != "" && f.limits.KeyConcurrency > 0 {
		looks = append(looks, store.Acquire{Key: store.CapKey(f.Topic, f.Traits.ConcurrencyKey), Max: f.limits.KeyConcurrency})
	}
	for _, key := range [...]string{"", store.NamespaceCap} {
		if most := f.limits.Cap(key); most > 0 {
			looks = append(looks, store.Acquire{Key: store.CapKey(f.Topic, key), Max: most})
		}
	}
	return looks
}
