package actors

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A topic that is idle has no actors. It opens again on its next use: a call, a hint of
// another node, or a task that the store has in a shard of this node and that comes near.
//
// Closing must not delay a task, and must not leave a claim in the store that keeps the next
// owner out. So a topic closes only while the store has nothing to do soon in a shard that this
// node owns or should own, and once all claims are released. A lookup may meet the closing: the
// lookup records the use and then reads closing, the closing sets closing and then reads the
// last use. One of them notices the other.

// closeTimeout bounds what closing an idle topic, and a look in the background, waits for.
const closeTimeout = 10 * time.Second

// CloseIdle closes the topics that nobody has used here for Config.IdleAfter, and that
// have nothing to do soon for this node.
func (s *Topics) CloseIdle(ctx context.Context) {
	for _, ref := range s.listIdle(ctx) {
		if ctx.Err() != nil {
			return
		}
		s.closeIdle(ctx, ref)
	}
}

// HasClosedIdle reports whether a topic was closed here for being idle, or rests.
func (s *Topics) HasClosedIdle() bool { return s.closedIdle.Load() || s.shown.any() }

// listIdle returns the topics that were not used for long and have nothing to do soon here.
// The others are asked about again after IdleAfter.
func (s *Topics) listIdle(ctx context.Context) (idle []*Topic) {
	var refs []*Topic
	var shards []store.Shard
	s.Each(func(ref *Topic) {
		if ref.unused(s.cfg.IdleAfter) {
			refs, shards = append(refs, ref), append(shards, place.Shards(ref.shared.Current.Load())...)
		}
	})
	needed, _, err := s.wakes.needed(ctx, shards, s.cfg.staysOpen())
	if err != nil {
		return nil
	}
	for _, ref := range refs {
		if needed[ref.shared.Current.Load().Name] {
			ref.touch()
		} else {
			idle = append(idle, ref)
		}
	}
	return idle
}

// unused reports whether nobody has used a topic here for long. During a reshard it is in use.
func (r *Topic) unused(long time.Duration) bool {
	last := max(r.touched.Load(), r.shared.Active.Load())
	return time.Since(time.Unix(0, last)) >= long && r.subscriptions.Load() == 0 && len(r.shared.Current.Load().Spans()) == 1
}

// closeIdle closes a topic unless it is in use after all.
func (s *Topics) closeIdle(ctx context.Context, ref *Topic) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	name := ref.shared.Current.Load().Name
	unlock, err := s.locks.Lock(ctx, name)
	if err != nil {
		return
	}
	defer unlock()
	if now, open := s.Opened(name); !open || now != ref {
		return
	}
	ref.closing.Store(true)
	if ref.unused(s.cfg.IdleAfter) && ref.unattended(ctx) && s.releaseClaims(ctx, ref) {
		s.rt.Log.Debug("topic closed: it is idle", "topic", name)
		s.closedIdle.Store(true)
		s.CloseLocked(ctx, name)
		return
	}
	ref.touch()
	ref.closing.Store(false)
	for _, shard := range place.Shards(ref.shared.Current.Load()) {
		ref.place(shard.N)
	}
}

// unattended reports whether nobody subscribes to a topic here, and nothing is in flight.
func (r *Topic) unattended(ctx context.Context) bool {
	reply := make(chan bool, 1)
	r.rt.Send(r.pid, &askIdle{reply: reply})
	select {
	case idle := <-reply:
		return idle
	case <-ctx.Done():
		return false
	}
}

// releaseClaims releases the claims of a topic's shards. It reports whether the store has
// none of them then, and nothing to do soon for this node.
func (s *Topics) releaseClaims(ctx context.Context, ref *Topic) bool {
	awaitAll(ctx, ref.release(nil))
	needed, stats, err := s.wakes.needed(ctx, place.Shards(ref.shared.Current.Load()), s.cfg.staysOpen())
	if err != nil || len(needed) > 0 {
		return false
	}
	return !slices.ContainsFunc(stats, func(st store.Stats) bool { return st.Owner == s.rt.Name })
}

// inUse returns a topic that is open here, and keeps it from closing.
func (s *Topics) inUse(name string) (*Topic, bool) {
	ref, open := s.Opened(name)
	if !open {
		return nil, false
	}
	ref.touch()
	return ref, !ref.closing.Load()
}
