package actors

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// describeFor is how long nodes are waited for that are asked how they fare.
const describeFor = 2 * time.Second

// describeAll asks members how they fare, all at once. Those that do not answer in
// time are missing.
func (s *System) describeAll(ctx context.Context, members []Member) map[string]*PeerStatus {
	var mu sync.Mutex
	var wg sync.WaitGroup
	found := make(map[string]*PeerStatus, len(members))
	for _, m := range members {
		wg.Go(func() {
			st, err := s.describe(ctx, m)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[m.Name] = &st
		})
	}
	wg.Wait()
	return found
}

func (s *System) describe(ctx context.Context, m Member) (PeerStatus, error) {
	if m.Name == s.cfg.Node {
		return s.DescribePeer(ctx)
	}
	return s.fleet.peers.Describe(ctx, m)
}

// DescribePeer says how this node fares.
func (s *System) DescribePeer(ctx context.Context) (PeerStatus, error) {
	if !s.running.Load() {
		return PeerStatus{}, s.serving()
	}
	status := PeerStatus{
		Node:        s.cfg.Node,
		Uptime:      time.Since(s.started),
		ClockOffset: time.Until(s.clock.Now()),
	}
	var asked []chan OwnedShard
	s.eachTopic(func(ref *topicRef) {
		status.Subscriptions += int(ref.subscriptions.Load())
		for _, pid := range ref.shards() {
			reply := make(chan OwnedShard, 1)
			asked = append(asked, reply)
			s.send(pid, &describeShard{reply: reply})
		}
	})
	for _, reply := range asked {
		select {
		case d := <-reply:
			if d.Epoch != 0 {
				status.Shards = append(status.Shards, d)
			}
		case <-ctx.Done():
			return PeerStatus{}, failure(ctx.Err())
		}
	}
	return status, nil
}

// Shards pages through the shards of a topic, of every topic when it is empty.
func (s *System) Shards(ctx context.Context, topic string, size int, token string) (shards []ShardStatus, next string, err error) {
	if size < 0 {
		return nil, "", invalid("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	topics, e := s.searched(ctx, topic)
	if e != nil {
		return nil, "", e
	}
	from, ok := decodeShard(token)
	if !ok {
		return nil, "", failure(store.ErrBadCursor)
	}
	size = min(or(size, 100), s.cfg.Limits.PageSize)
	var page []store.Shard
	active := make(map[string]store.Span, len(topics))
	for i := range topics {
		active[topics[i].Name] = topics[i].Active()
		for _, shard := range shardsOf(&topics[i]) {
			if compareShards(shard, from) > 0 {
				page = append(page, shard)
			}
		}
	}
	if len(page) > size {
		page = page[:size]
		next = encodeShard(page[size-1])
	}
	shards, err = s.shardStatus(ctx, page)
	for i := range shards {
		shards[i].Former = shards[i].N < active[shards[i].Topic].First
	}
	return shards, next, err
}

func (s *System) shardStatus(ctx context.Context, page []store.Shard) ([]ShardStatus, error) {
	stats, err := s.store.Stats(ctx, page)
	if err != nil {
		return nil, failure(err)
	}
	ctx, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	loads := make(map[store.Shard]*OwnedShard)
	for _, node := range s.describeAll(ctx, s.members()) {
		for i := range node.Shards {
			loads[node.Shards[i].Shard] = &node.Shards[i]
		}
	}
	out := make([]ShardStatus, len(page))
	for i, st := range stats {
		out[i] = ShardStatus{
			Shard:  page[i],
			Owner:  st.Owner,
			Placed: s.placedOn(page[i]),
			Epoch:  st.Epoch,
			Depth:  Depth{}.plus(&st),
			Oldest: st.OldestMs,
			Load:   loads[page[i]],
		}
		if load := out[i].Load; load != nil && st.Ready > 0 {
			load.Lateness = s.clock.millis().Sub(st.OldestMs)
		}
	}
	return out, nil
}

func (s *System) placedOn(shard store.Shard) string {
	if v := s.fleet.view.Load(); v != nil {
		return v.Owner(shard)
	}
	return s.cfg.Node
}

func compareShards(a, b store.Shard) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return a.N - b.N
}

// encodeShard makes a page token of the last shard of a page.
func encodeShard(s store.Shard) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d:%s", s.N, s.Topic))
}

func decodeShard(token string) (s store.Shard, ok bool) {
	if token == "" {
		return store.Shard{N: -1}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return s, false
	}
	_, err = fmt.Sscanf(string(b), "%d:%s", &s.N, &s.Topic)
	return s, err == nil
}

// DrainNode makes a node give up its shards, or take shards again.
func (s *System) DrainNode(ctx context.Context, name string, draining bool) error {
	if name == s.cfg.Node {
		return s.DrainPeer(draining)
	}
	m, ok := s.fleet.member(name)
	if !ok {
		return errNoNode(name)
	}
	return failure(s.fleet.peers.Drain(ctx, m, draining))
}

// DrainPeer makes this node give up its shards, or take shards again.
func (s *System) DrainPeer(draining bool) error {
	if s.fleet.source == nil {
		return &Error{Kind: Precondition, Reason: "NO_FLEET", Field: "name",
			Message: "the node stands alone: there is nobody to hand its shards over to"}
	}
	return failure(s.fleet.setDrained(draining))
}

// Plan says which shards would move if these nodes drained; with none, which are
// not where they should be.
func (s *System) Plan(ctx context.Context, drain []string) ([]ShardMove, error) {
	view, err := s.viewWithout(drain)
	if err != nil {
		return nil, err
	}
	topics, e := s.searched(ctx, "")
	if e != nil {
		return nil, e
	}
	var moves []ShardMove
	for i := range topics {
		shards := shardsOf(&topics[i])
		stats, err := s.store.Stats(ctx, shards)
		if err != nil {
			return nil, failure(err)
		}
		for n, st := range stats {
			move := ShardMove{Shard: shards[n], From: st.Owner, To: s.cfg.Node}
			if view != nil {
				move.To = view.Owner(shards[n])
			}
			if move.From != move.To && (move.From != "" || st.Pending+st.Running > 0) {
				moves = append(moves, move)
			}
		}
	}
	return moves, nil
}

func (s *System) viewWithout(names []string) (View, error) {
	v := s.fleet.view.Load()
	for _, name := range names {
		if v == nil && name != s.cfg.Node {
			return nil, errNoNode(name)
		}
		if v != nil && !slices.ContainsFunc(v.Members(), func(m Member) bool { return m.Name == name }) {
			return nil, errNoNode(name)
		}
	}
	if v == nil {
		return nil, nil
	}
	return v.Without(names...), nil
}

// ReleaseShard makes the owner of a shard give it up.
func (s *System) ReleaseShard(ctx context.Context, shard store.Shard) error {
	topics, e := s.searched(ctx, or(shard.Topic, "?"))
	if e != nil {
		return e
	}
	if !slices.Contains(shardsOf(&topics[0]), shard) {
		return errNoShard(shard)
	}
	stats, err := s.store.Stats(ctx, []store.Shard{shard})
	if err != nil {
		return failure(err)
	}
	switch owner := stats[0].Owner; owner {
	case "":
		return &Error{Kind: Precondition, Reason: "NOT_OWNED", Field: "shard", Message: "nobody owns the shard"}
	case s.cfg.Node:
		return s.ReleasePeerShard(ctx, shard)
	default:
		m, ok := s.fleet.member(owner)
		if !ok {
			return errNoNode(owner)
		}
		return failure(s.fleet.peers.Release(ctx, m, shard))
	}
}

// ReleasePeerShard makes this node give up a shard that it owns. If it is placed
// here it is claimed again, with a new epoch.
func (s *System) ReleasePeerShard(ctx context.Context, shard store.Shard) error {
	ref, e := s.topic(ctx, shard.Topic, false)
	if e != nil {
		return e
	}
	if ref.shard(shard.N) == nil {
		return errNoShard(shard)
	}
	s.tell(ref, shard.N, &handShard{})
	return nil
}

func errNoShard(shard store.Shard) *Error {
	return invalid("shard", "OUT_OF_RANGE_FIELD", "topic %q has no shard %d", shard.Topic, shard.N)
}

func errNoNode(name string) *Error {
	return &Error{Kind: NotFound, Reason: "NO_NODE", Field: "name", Message: fmt.Sprintf("no node %q in the fleet", name)}
}
