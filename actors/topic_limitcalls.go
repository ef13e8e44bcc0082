package actors

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// limitBatch is how many reservations, tasks or permits are in one call at most.
const limitBatch = 2 * store.BatchItems

type (
	// tokensReserved, permitsAcquired and permitsFreed come from the store calls, each in a
	// CallDone.
	tokensReserved struct {
		asked []dispatch.Reservation
		got   []store.Tokens
		err   error
	}
	permitsAcquired struct{ all []dispatch.Acquired }
	permitsFreed    struct{}
	// permitsFree comes from the store calls and from the node: permits of keys that this
	// node waits for may be free: those that the store has it in turn for, and others.
	permitsFree struct{ inTurn, keys []string }
)

// limitCalls are the store calls about a topic's limits: they reserve tokens, and acquire and
// free permits. It owns their goroutines.
type limitCalls struct {
	*topicState
	calls    *engine.Calls
	reserves engine.Batcher[dispatch.Reservation]
	acquires engine.Batcher[*dispatch.Ticket]
	frees    engine.Batcher[*dispatch.Permit]
}

func newLimitCalls(state *topicState) *limitCalls {
	return &limitCalls{
		topicState: state,
		calls:      engine.NewCalls(state.Pool),
		reserves:   engine.Batcher[dispatch.Reservation]{Most: 1, Limit: limitBatch},
		acquires:   engine.Batcher[*dispatch.Ticket]{Most: 2, Limit: limitBatch},
		frees:      engine.Batcher[*dispatch.Permit]{Most: 1, Limit: limitBatch},
	}
}

// stop abandons the calls in flight, and waits for their goroutines.
func (t *limitCalls) stop() { t.calls.Close() }

// start starts the calls that may start. What comes while one of a kind is in flight makes
// the next batch.
func (t *limitCalls) start() {
	if batch := t.reserves.Next(); batch != nil {
		t.storeReserves(batch)
	}
	if batch := t.acquires.Next(); batch != nil {
		t.acquire(batch)
	}
	if batch := t.frees.Next(); batch != nil {
		t.storeFrees(batch)
	}
}

func (t *limitCalls) storeReserves(batch []dispatch.Reservation) {
	asked := make([]store.Reservation, len(batch))
	for i, r := range batch {
		asked[i] = r.Asked
	}
	t.calls.Run(func(ctx context.Context) {
		m := &tokensReserved{asked: batch}
		m.got, m.err = t.Store.Reserve(ctx, asked)
		t.done(m)
	})
}

// acquire asks the store for the permits of tasks.
func (t *limitCalls) acquire(tickets []*dispatch.Ticket) {
	limits, visibility, wanted := t.core.Limits(), t.topic.Visibility, make([]wantedPermit, len(tickets))
	for i, ticket := range tickets {
		wanted[i].ticket = ticket
		if limits.KeyConcurrency > 0 {
			wanted[i].key = ticket.CapKey()
		}
		if sub := t.subscribers[ticket.Sub()]; sub != nil {
			visibility = max(visibility, sub.Options.Visibility)
		}
	}
	a := acquisition{Runtime: t.Runtime, topic: t.topic.Name, limits: limits, wanted: wanted, free: t.freeAll}
	t.calls.Run(func(ctx context.Context) {
		a.until = a.Latest().Add(visibility + shard.PermitSlack)
		t.done(&permitsAcquired{all: a.run(ctx)})
	})
}

// resign gives up this node's turns at caps, and tells those who wait behind it when
// there is a permit.
func (t *limitCalls) resign(keys []store.LimitKey) {
	if len(keys) == 0 {
		return
	}
	asked := make([]store.Acquire, len(keys))
	for i, key := range keys {
		asked[i] = store.Acquire{Key: key, Node: inLine(t.Name, t.topic.Name, key.Key)}
	}
	limits := t.core.Limits()
	t.calls.Run(func(ctx context.Context) {
		got, err := t.Store.Acquire(ctx, asked)
		if err != nil {
			t.log.Debug("turns not given up", "topic", asked[0].Key.Topic, "err", err) // they lapse
			return
		}
		var room []store.Permit // of nobody: to hear who waits
		for i := range asked {
			key := asked[i].Key
			if most := limits.Cap(key.Key); got[i].InUse < most {
				room = append(room, store.Permit{Key: key})
			}
		}
		t.freeAll(ctx, room)
	})
}

// free ends permits, and tells the nodes that wait for them, this one too.
func (t *limitCalls) free(permits []*dispatch.Permit) {
	t.frees.Waiting = append(t.frees.Waiting, permits...)
}

func (t *limitCalls) storeFrees(permits []*dispatch.Permit) {
	var all []store.Permit
	for _, p := range permits {
		all = append(all, p.Each()...)
	}
	t.calls.Run(func(ctx context.Context) {
		t.freeAll(ctx, all)
		t.done(&permitsFreed{})
	})
}

// freeAll runs off the actor.
func (t *limitCalls) freeAll(ctx context.Context, permits []store.Permit) {
	if len(permits) == 0 {
		return
	}
	var waiting [][]string
	_, err := t.Resolve(ctx, func() (err error) {
		waiting, err = t.Store.Free(ctx, permits)
		return err
	})
	if err != nil {
		t.noteError(err) // they end by themselves
		return
	}
	t.tellFree(permits, waiting)
}

// tellFree tells who is in line that permits are free: as many of them as there are permits,
// and this topic here in any case, whose tasks may wait without having asked.
func (t *limitCalls) tellFree(freed []store.Permit, waiting [][]string) {
	topic := t.ref.shared.Current.Load().Name
	here := &permitsFree{}
	there := make(map[string]*fleet.FreedNotice) // by name in line
	given := make(map[string]int)
	for i, p := range freed {
		key := p.Key.Key
		self := inLine(t.Name, topic, key)
		if !slices.Contains(waiting[i], self) {
			here.keys = append(here.keys, key)
		}
		if len(waiting[i]) == 0 {
			continue
		}
		next := waiting[i][given[key]%len(waiting[i])]
		given[key]++
		if next == self {
			here.inTurn = append(here.inTurn, key)
			continue
		}
		if there[next] == nil {
			there[next] = &fleet.FreedNotice{}
		}
		there[next].Keys = append(there[next].Keys, key)
	}
	if len(here.keys)+len(here.inTurn) > 0 {
		t.Send(t.ref.pid, here)
	}
	for next, n := range ordered.All(there, cmp.Compare) {
		t.tell(next, topic, n)
	}
}

// tell tells who is in line for caps of a topic, at this node or another one.
func (t *limitCalls) tell(next, topic string, n *fleet.FreedNotice) {
	var node string
	if node, n.Topic = fromLine(next, topic); node == t.Name {
		t.Topics.TellFreed(n.Topic, n.Keys)
		return
	}
	t.Fleet.Notify(node, fleet.Notice{Freed: []fleet.FreedNotice{*n}})
}

func (t *limitCalls) noteError(err error) {
	t.Metrics.StoreErrors.Inc()
	t.log.Debug("store call about limits failed", "topic", t.ref.shared.Current.Load().Name, "err", err)
}
