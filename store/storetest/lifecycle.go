package storetest

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

func lifecycleCases() []entry {
	return []entry{
		{"Batch/EmptyDoesNothing", emptyBatches},
		{"Batch/EachItemFailsAlone", mixedBatch},
		{"Batch/SameIDFarApart", farApart},
		{"Context/CancelledDoesNothing", contextCancelled},
		{"Close/EndsEverything", closed},
	}
}

func emptyBatches(f *fixture) {
	before := f.stats()
	s, ctx, shard := f.s, f.ctx, f.shard
	_, added, err := s.Add(ctx, shard, nil)
	f.ok("add", err)
	_, heldNew, err := s.HoldNew(ctx, shard, f.fence, nil, nil)
	f.ok("hold new", err)
	_, held, err := s.Hold(ctx, shard, f.fence, nil)
	f.ok("hold", err)
	_, acked, err := s.Ack(ctx, shard, []store.Ack{}, 0)
	f.ok("ack", err)
	_, nacked, err := s.Nack(ctx, shard, nil)
	f.ok("nack", err)
	_, extended, err := s.Extend(ctx, shard, nil)
	f.ok("extend", err)
	_, removed, err := s.Remove(ctx, shard, nil)
	f.ok("remove", err)
	_, moved, err := s.Edit(ctx, shard, nil)
	f.ok("edit", err)
	_, requeued, err := s.Requeue(ctx, shard, nil)
	f.ok("requeue", err)
	_, removedDead, err := s.RemoveDead(ctx, shard, nil)
	f.ok("remove dead", err)
	_, recovered, err := s.Recover(ctx, shard, f.fence, nil)
	f.ok("recover", err)
	_, got, err := s.Get(ctx, shard, nil)
	f.ok("get", err)
	equal(f, "number of results", len(added)+len(heldNew)+len(held)+len(acked)+len(nacked)+len(extended)+
		len(removed)+len(moved)+len(requeued)+len(removedDead)+len(recovered)+len(got), 0)
	after := f.stats()
	before.Now = after.Now
	equal(f, "stats", after, before)
}

// mixedBatch asks for thousands of tasks in different states, interleaved, so
// that answers must find their items across the pieces a store cuts batches into.
func mixedBatch(f *fixture) {
	ids := numbered(3000)
	now := f.now()
	batch := make([]*store.Task, 0, len(ids))
	want := make([]store.Status, len(ids))
	for i, id := range ids {
		want[i] = []store.Status{store.OK, store.NotDue, store.NotFound, store.Expired}[i*7%4]
		t := task(id, now-1000)
		switch want[i] {
		case store.NotFound:
			continue
		case store.NotDue:
			t.Due = now.Add(long) + store.Millis(i)
		case store.Expired:
			t.Expires = now - 1
		}
		batch = append(batch, t)
	}
	f.add(batch...)
	holds := holdsOf(long, ids...)
	_, results := f.tryHold(holds, want...)
	var acks []store.Ack
	var wantAcks []store.Status
	for i, result := range results {
		switch {
		case result.Status == store.OK:
			equal(f, "id of the held task", result.Task.ID, ids[i])
			equal(f, "payload of the held task", string(result.Task.Payload), "payload of "+ids[i])
		case result.Status == store.NotDue:
			equal(f, "due time", result.Due, now.Add(long)+store.Millis(i))
		}
		acks = append(acks, store.Ack{ID: ids[i], Token: holds[i].Token})
		wantAcks = append(wantAcks, map[store.Status]store.Status{
			store.OK: store.OK, store.NotDue: store.WrongState, store.NotFound: store.NotFound, store.Expired: store.WrongState,
		}[result.Status])
	}
	_, got, err := f.s.Ack(f.ctx, f.shard, acks, long)
	f.ok("ack", err)
	f.statuses("ack", got, wantAcks...)
	stats := f.stats()
	equal(f, "number of pending tasks", stats.Pending, 750)
	equal(f, "number of done tasks", stats.Done, 750)
	equal(f, "number of dead tasks", stats.Dead, 750)
}

// farApart names ids at both ends of a big batch.
func farApart(f *fixture) {
	ids := append(numbered(3000), "task-000000", "task-000001")
	want := append(repeat(store.Added, 3000), store.Duplicate, store.Duplicate)
	_, added, err := f.s.Add(f.ctx, f.shard, tasks(f.now()-1000, ids...))
	f.ok("add", err)
	f.statuses("add", added, want...)

	want = append(repeat(store.OK, 3000), store.WrongState, store.WrongState)
	holds := holdsOf(long, ids...)
	f.tryHold(holds, want...)
	equal(f, "token of the first hold", f.get(ids[0]).Token, holds[0].Token)

	acks := make([]store.Ack, len(ids))
	for i, id := range ids {
		acks[i] = store.Ack{ID: id, Token: holds[i%3000].Token}
	}
	_, acked, err := f.s.Ack(f.ctx, f.shard, acks, long)
	f.ok("ack", err)
	f.statuses("ack", acked, append(repeat(store.OK, 3000), store.Already, store.Already)...)
	equal(f, "number of done tasks", f.stats().Done, 3000)
}

// calls returns a call of every method that reaches the store, by name.
func (f *fixture) calls(held store.Token) map[string]func(ctx context.Context) error {
	s, shard, fence := f.s, f.shard, f.fence
	return map[string]func(ctx context.Context) error{
		"Add": func(ctx context.Context) error { _, _, err := s.Add(ctx, shard, tasks(1, "new")); return err },
		"HoldNew": func(ctx context.Context) error {
			_, _, err := s.HoldNew(ctx, shard, fence, tasks(1, "new"), holdsOf(long, "new"))
			return err
		},
		"Hold": func(ctx context.Context) error {
			_, _, err := s.Hold(ctx, shard, fence, holdsOf(long, "ready"))
			return err
		},
		"Ack": func(ctx context.Context) error {
			_, _, err := s.Ack(ctx, shard, []store.Ack{{ID: "running", Token: held}}, 0)
			return err
		},
		"Nack": func(ctx context.Context) error {
			_, _, err := s.Nack(ctx, shard, []store.Nack{{ID: "running", Token: held}})
			return err
		},
		"Extend": func(ctx context.Context) error {
			_, _, err := s.Extend(ctx, shard, []store.Extend{{ID: "running", Token: held, Visibility: 9 * long}})
			return err
		},
		"Recover": func(ctx context.Context) error {
			_, _, err := s.Recover(ctx, shard, fence, []store.Nack{{ID: "running", Token: held}})
			return err
		},
		"Remove": func(ctx context.Context) error {
			_, _, err := s.Remove(ctx, shard, store.Removals("ready"))
			return err
		},
		"Edit": func(ctx context.Context) error {
			_, _, err := s.Edit(ctx, shard, []store.Edit{{ID: "ready", Due: 5}})
			return err
		},
		"Requeue":    func(ctx context.Context) error { _, _, err := s.Requeue(ctx, shard, []string{"dead"}); return err },
		"RemoveDead": func(ctx context.Context) error { _, _, err := s.RemoveDead(ctx, shard, []string{"dead"}); return err },
		"Trim":       func(ctx context.Context) error { _, err := s.Trim(ctx, shard, 10); return err },
		"DropShard":  func(ctx context.Context) error { return s.DropShard(ctx, shard) },
		"OpenShard":  func(ctx context.Context) error { return s.OpenShard(ctx, shard.For(1), store.ShardLife{}) },
		"Claim":      func(ctx context.Context) error { _, _, err := s.Claim(ctx, shard, f.session); return err },
		"Release":    func(ctx context.Context) error { return s.Release(ctx, shard, fence) },
		"RenewSession": func(ctx context.Context) error {
			_, err := s.RenewSession(ctx, store.Session{Node: "node-1", Start: store.NewToken(), TTL: long, Begin: true})
			return err
		},
		"Get": func(ctx context.Context) error { _, _, err := s.Get(ctx, shard, []string{"ready"}); return err },
		"Window": func(ctx context.Context) error {
			_, _, err := s.Window(ctx, shard, store.WindowQuery{To: 1 << 40, Limit: 9})
			return err
		},
		"Running": func(ctx context.Context) error { _, _, err := s.Running(ctx, shard, "", 10); return err },
		"List": func(ctx context.Context) error {
			_, _, err := s.List(ctx, shard, store.KindPending, "", 10)
			return err
		},
		"Stats":       func(ctx context.Context) error { _, err := s.Stats(ctx, []store.Shard{shard}); return err },
		"Counts":      func(ctx context.Context) error { _, err := s.Counts(ctx, []store.Shard{shard}); return err },
		"Sweep":       func(ctx context.Context) error { _, _, err := s.Sweep(ctx, shard, fence, "", 10); return err },
		"PutTopic":    func(ctx context.Context) error { _, err := s.PutTopic(ctx, store.Topic{Name: "new"}); return err },
		"GetTopic":    func(ctx context.Context) error { _, err := s.GetTopic(ctx, "mail"); return err },
		"ListTopics":  func(ctx context.Context) error { _, err := s.ListTopics(ctx); return err },
		"DeleteTopic": func(ctx context.Context) error { return s.DeleteTopic(ctx, "mail", 0) },
		"Clock":       func(ctx context.Context) error { _, err := s.Clock(ctx); return err },
	}
}

func contextCancelled(f *fixture) {
	ids, states := f.everyState()
	f.put(store.Topic{Name: "mail"})
	before := f.stats()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for name, call := range f.calls(f.get("running").Token) {
		f.refused(name+" with a cancelled context", call(ctx), context.Canceled)
	}
	f.unchanged(ids, states)
	f.states(store.StateUnknown, "new")
	after := f.stats()
	before.Now = after.Now
	equal(f, "stats", after, before)
	topics, err := f.s.ListTopics(f.ctx)
	f.ok("list topics", err)
	equal(f, "number of topics", len(topics), 1)
	_, err = f.s.RenewSession(f.ctx, f.session)
	f.ok("renew", err)
}

func closed(f *fixture) {
	token := f.held("running")
	calls := f.calls(token)
	f.ok("close", f.s.Close())
	for name, call := range calls {
		f.refused(name+" after close", call(f.ctx), store.ErrClosed)
	}
	f.ok("close again", f.s.Close())
}
