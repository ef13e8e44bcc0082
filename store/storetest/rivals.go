package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

// begin starts a session of one of the two nodes, as after a restart: calls under
// the session before are refused from now on.
func (p *pair) begin(rt *rapid.T, node int) {
	session := store.Session{Node: fmt.Sprintf("%d-%d", p.shard.N, node), TTL: long}
	copy(session.Start[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "start"))
	p.sessions[node] = session
	session.Begin = true
	p.both(rt, "begin session", func(s *side) (any, error) {
		_, err := s.RenewSession(rt.Context(), session)
		return nil, err
	})
}

// rival draws a session of one of the nodes, seldom one that is over.
func (p *pair) rival(rt *rapid.T) store.Session {
	session := p.sessions[rapid.IntRange(0, len(p.sessions)-1).Draw(rt, "node")]
	if !often(rt, "current session") {
		session.Start[0]++
	}
	return session
}

// renew renews a session, for long or so that it ends at once; seldom it begins anew.
func (p *pair) renew(rt *rapid.T) {
	if !often(rt, "no restart") {
		p.begin(rt, rapid.IntRange(0, len(p.sessions)-1).Draw(rt, "node"))
		return
	}
	session := p.rival(rt)
	session.TTL = oneOf(rt, "ttl", time.Millisecond, long)
	p.both(rt, "renew", func(s *side) (any, error) {
		_, err := s.RenewSession(rt.Context(), session)
		return nil, err
	})
	p.pass(rt)
}

func (p *pair) claim(rt *rapid.T) { p.claimFor(rt, p.rival(rt)) }

// claimFor claims the shard; what is held from then on is held under this claim.
func (p *pair) claimFor(rt *rapid.T, session store.Session) {
	p.both(rt, "claim", func(s *side) (any, error) {
		stamp, fence, err := s.Claim(rt.Context(), p.shard, session)
		if err != nil {
			return nil, err
		}
		s.old, s.fence = s.fence, fence
		return []any{stamp.Seq, fence.Epoch}, nil
	})
}

// topicName draws one of a few names that only this history uses.
func (p *pair) topicName(rt *rapid.T) string {
	return fmt.Sprintf("%s-%d.%s", p.shard.Topic, p.shard.N, oneOf(rt, "topic", "a", "B", "0_"))
}

func (p *pair) putTopic(rt *rapid.T) {
	topic := store.Topic{
		Name:           p.topicName(rt),
		Shards:         rapid.IntRange(1, 64).Draw(rt, "shards"),
		Visibility:     visibility(rt),
		MaxRetries:     rapid.IntRange(0, 3).Draw(rt, "max retries"),
		Backoff:        store.Backoff{Kind: store.BackoffFixed, Base: time.Second, Max: long},
		EnqueuePaused:  rapid.Bool().Draw(rt, "paused"),
		DoneRetention:  oneOf(rt, "retention", 0, long),
		Version:        int64(rapid.IntRange(0, 3).Draw(rt, "version")),
		DeliveryPaused: rapid.Bool().Draw(rt, "delivery paused"),
	}
	p.both(rt, "put topic", func(s *side) (any, error) {
		stored, err := s.PutTopic(rt.Context(), topic)
		if err != nil {
			return nil, err
		}
		return stored, nil
	})
	p.both(rt, "get topic", func(s *side) (any, error) {
		stored, err := s.GetTopic(rt.Context(), topic.Name)
		if err != nil {
			return nil, err
		}
		return stored, nil
	})
}

func (p *pair) dropTopic(rt *rapid.T) {
	name := p.topicName(rt)
	p.both(rt, "delete topic", func(s *side) (any, error) { return nil, s.DeleteTopic(rt.Context(), name, 0) })
	p.both(rt, "list topics", func(s *side) (any, error) {
		topics, err := s.ListTopics(rt.Context())
		return append([]store.Topic{}, topics...), err
	})
}
