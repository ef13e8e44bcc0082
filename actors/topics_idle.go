package actors

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A topic that is idle has no actors. It opens again on its next use: a call, a hint of
// another node, or a task that the store has in a shard of this node.
//
// Closing must not delay a task, and must not leave a claim in the store that keeps the next
// owner out. So a topic closes only while the store has no task in a shard that this node
// owns or should own, and once all claims are released. A lookup may meet the closing: the
// lookup records the use and then reads closing, the closing sets closing and then reads the
// last use. One of them notices the other.

// closeTimeout bounds what closing an idle topic waits for.
const closeTimeout = 10 * time.Second

// CloseIdle closes the topics that nobody has used here for Config.IdleAfter, and that
// have no task for this node.
func (s *Topics) CloseIdle(ctx context.Context) {
	for _, ref := range s.listIdle(ctx) {
		if ctx.Err() != nil {
			return
		}
		s.closeIdle(ctx, ref)
	}
}

// HasClosedIdle reports whether a topic was closed here for being idle.
func (s *Topics) HasClosedIdle() bool { return s.closedIdle.Load() }

// listIdle returns the topics that were not used for long and have no task for this node.
// The others are asked about again after IdleAfter.
func (s *Topics) listIdle(ctx context.Context) (idle []*Topic) {
	var refs []*Topic
	var shards []store.Shard
	s.Each(func(ref *Topic) {
		if s.unused(ref) {
			refs, shards = append(refs, ref), append(shards, place.Shards(ref.shared.Current.Load())...)
		}
	})
	stats, err := s.rt.CountsOf(ctx, shards)
	if err != nil {
		return nil
	}
	needed := make(map[string]bool)
	for i := range stats {
		if s.needed(shards[i], &stats[i]) {
			needed[shards[i].Topic] = true
		}
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
func (s *Topics) unused(ref *Topic) bool {
	last := max(ref.touched.Load(), ref.shared.Active.Load())
	return time.Since(time.Unix(0, last)) >= s.cfg.IdleAfter && ref.subscriptions.Load() == 0 && len(ref.shared.Current.Load().Spans()) == 1
}

// needed reports whether a shard has tasks and is this node's, or should be.
func (s *Topics) needed(shard store.Shard, st *store.Stats) bool {
	return st.Pending+st.Running+st.Done+st.Dead+st.Cells+st.Parcels > 0 && (st.Owner == s.rt.Name || s.rt.Fleet.Owns(shard))
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
	if s.unused(ref) && s.unattended(ctx, ref) && s.releaseClaims(ctx, ref) {
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
func (s *Topics) unattended(ctx context.Context, ref *Topic) bool {
	reply := make(chan bool, 1)
	s.rt.Send(ref.pid, &askIdle{reply: reply})
	select {
	case idle := <-reply:
		return idle
	case <-ctx.Done():
		return false
	}
}

// releaseClaims releases the claims of a topic's shards. It reports whether the store has
// none of them then, and no task for this node.
func (s *Topics) releaseClaims(ctx context.Context, ref *Topic) bool {
	awaitAll(ctx, ref.release(nil))
	shards := place.Shards(ref.shared.Current.Load())
	stats, err := s.rt.CountsOf(ctx, shards)
	if err != nil {
		return false
	}
	for i := range stats {
		if stats[i].Owner == s.rt.Name || s.needed(shards[i], &stats[i]) {
			return false
		}
	}
	return true
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
