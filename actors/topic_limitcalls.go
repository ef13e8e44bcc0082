package actors

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/taking"
	"github.com/ddq-io/ddq/store"
)

type (
	// limitsTaken comes from a store call, in a CallDone.
	limitsTaken struct {
		call *dispatch.TakeCall
		dispatch.Taken
	}
	// passNotices comes from the topic itself: it is time to tell who is next in line.
	passNotices struct{ notices []store.Notice }
)

// limitCalls are the store calls about a topic's limits. It owns their goroutines.
type limitCalls struct {
	*topicState
	calls *engine.Calls
	last  uint64       // the number of the last call
	parts taking.Taker // where the store has no Take; of the call that is in flight
}

func newLimitCalls(state *topicState) *limitCalls {
	return &limitCalls{
		topicState: state,
		calls:      engine.NewCalls(state.Pool),
		last:       rand.Uint64(),
		parts:      taking.Taker{Store: state.Store, Now: state.Clock.Now},
	}
}

// stop abandons the call in flight, and waits for its goroutine.
func (t *limitCalls) stop() { t.calls.Close() }

// take asks the store for what tasks need.
func (t *limitCalls) take(call *dispatch.TakeCall) {
	visibility := t.topic.Visibility
	for _, sub := range t.subscribers {
		visibility = max(visibility, sub.Options.Visibility)
	}
	t.last = max(1, t.last+1)
	call.Call, call.Node, call.Holders = t.last, t.Name, store.NewTokens(call.Room)
	t.calls.Run(func(ctx context.Context) {
		call.Until = t.Latest().Add(visibility + shard.PermitSlack)
		reply, err := t.resolve(ctx, &call.Take)
		if err != nil {
			t.Metrics.StoreErrors.Inc()
			t.log.Debug("store call about limits failed", "topic", call.Topic, "err", err)
		}
		t.done(&limitsTaken{call, dispatch.Taken{Reply: reply, Unknown: errors.Is(err, store.ErrUnknown)}})
	})
}

// resolve makes a Take. While its outcome is unknown it is repeated, well within the time for which the store knows it.
func (t *limitCalls) resolve(ctx context.Context, q *store.Take) (reply *store.TakeReply, err error) {
	for began := time.Now(); ; {
		_, err = t.Resolve(ctx, func() (err error) {
			if reply, err = t.Store.Take(ctx, q); errors.Is(err, store.ErrNoTake) {
				reply, err = t.parts.Take(ctx, q)
			}
			return err
		})
		if err == nil {
			return reply, nil
		}
		if !errors.Is(err, store.ErrUnknown) || ctx.Err() != nil || time.Since(began) > store.CallLife/2 {
			return nil, err
		}
	}
}

// nextInLine is whom to tell of limits: a topic at a node.
type nextInLine struct{ node, topic string }

func (n nextInLine) compare(o nextInLine) int {
	return cmp.Or(strings.Compare(n.node, o.node), strings.Compare(n.topic, o.topic))
}

// pass tells who is in line, each when it is its turn.
func (t *limitCalls) pass(notices []store.Notice) {
	now := make(map[nextInLine]*fleet.FreedNotice)
	later := make(map[time.Duration][]store.Notice)
	for _, n := range notices {
		if n.After > 0 {
			wait := n.After
			n.After = 0
			later[wait] = append(later[wait], n)
			continue
		}
		to := nextInLine{n.Node, n.Topic}
		if now[to] == nil {
			now[to] = &fleet.FreedNotice{Topic: n.Topic}
		}
		if key := n.Limit.Key.Key; n.Limit.Rate {
			now[to].RateKeys = append(now[to].RateKeys, key)
		} else {
			now[to].Keys = append(now[to].Keys, key)
		}
	}
	for to, n := range ordered.All(now, nextInLine.compare) {
		if to.node == t.Name {
			t.Topics.TellFreed(*n)
		} else {
			t.Fleet.Notify(to.node, fleet.Notice{Freed: []fleet.FreedNotice{*n}})
		}
	}
	for wait, n := range ordered.All(later, cmp.Compare) {
		t.after(wait, &passNotices{n})
	}
}
