package storetest

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// lifeCases hold a store to the verdicts of package life: each question is asked about a
// task in each state, and what the store does is what the verdict says.
func lifeCases() []entry {
	return []entry{
		{"Life/VerdictsOnEveryState", lifeVerdicts},
		{"Life/FailuresAreWhatTheVerdictSays", lifeFailures},
		{"Life/KeysGoAsTheVerdictSays", lifeKeys},
	}
}

// subject is a task that a question is asked about, as it is then.
type subject struct {
	store.Snapshot
	now store.Millis
}

func (f *fixture) subject(id string) subject {
	f.Helper()
	stamp, found, err := f.s.Get(f.ctx, f.shard, []string{id})
	f.ok("get", err)
	return subject{one(f, found), life.Moment{At: stamp.Now}.Millis()}
}

func (s *subject) rules() *life.Task {
	return &life.Task{Phase: life.PhaseOf(s.State), Token: s.Token, Deadline: s.Deadline, Due: s.Due, Expires: s.Expires}
}

// question asks a store about a task, which has a token or is asked with one, and says
// what the verdict is.
type question struct {
	name    string
	ask     func(f *fixture, id string, token store.Token) (any, error)
	verdict func(s *subject, token store.Token) store.Status
}

func questions() []question {
	return []question{
		{"hold", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Hold(f.ctx, f.shard, f.fence, []store.Hold{{ID: id, Token: token, Visibility: long}})
			return r, err
		}, func(s *subject, token store.Token) store.Status {
			if status := life.Hold(s.rules(), &store.Hold{Token: token}, s.now); status != store.Held {
				return status
			}
			return store.OK
		}},
		{"ack", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: id, Token: token}}, long)
			return r, err
		}, func(s *subject, token store.Token) store.Status { return life.Ack(s.rules(), token) }},
		{"nack", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: id, Token: token}})
			return r, err
		}, func(s *subject, token store.Token) store.Status { return life.Nack(s.rules(), token) }},
		{"recover", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: id, Token: token}})
			return r, err
		}, func(s *subject, token store.Token) store.Status { return life.Recover(s.rules(), token, s.now) }},
		{"extend", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: id, Token: token, Visibility: long}})
			return r, err
		}, func(s *subject, token store.Token) store.Status {
			return life.Extend(s.rules(), &store.Extend{Token: token}, s.now)
		}},
		{"extend until", func(f *fixture, id string, token store.Token) (any, error) {
			_, r, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: id, Token: token, Visibility: long, Until: 1 << 50}})
			return r, err
		}, func(s *subject, token store.Token) store.Status {
			return life.Extend(s.rules(), &store.Extend{Token: token, Until: 1 << 50}, s.now)
		}},
		{"cancel", func(f *fixture, id string, _ store.Token) (any, error) {
			_, r, err := f.s.Cancel(f.ctx, f.shard, []string{id})
			return r, err
		}, func(s *subject, _ store.Token) store.Status { return life.Cancel(life.PhaseOf(s.State)) }},
		{"remove", func(f *fixture, id string, _ store.Token) (any, error) {
			_, r, err := f.s.Remove(f.ctx, f.shard, store.Removals(id))
			return r, err
		}, func(s *subject, _ store.Token) store.Status { return life.Change(life.PhaseOf(s.State)) }},
		{"requeue", func(f *fixture, id string, _ store.Token) (any, error) {
			_, r, err := f.s.Requeue(f.ctx, f.shard, []string{id})
			return r, err
		}, func(s *subject, _ store.Token) store.Status { return life.Requeue(life.PhaseOf(s.State)) }},
		editQuestion("edit", store.Edit{Due: 1}), editQuestion("stale edit", store.Edit{Due: 1, IfVersion: 9}),
		editQuestion("edit past any expiry", store.Edit{Due: 1 << 50}), editQuestion("promote", store.Edit{Now: true}),
		addQuestion("add again", 7), addQuestion("add another", 8),
	}
}

func editQuestion(name string, edit store.Edit) question {
	return question{name, func(f *fixture, id string, _ store.Token) (any, error) {
		e := edit
		e.ID = id
		_, r, err := f.s.Edit(f.ctx, f.shard, []store.Edit{e})
		return r, err
	}, func(s *subject, _ store.Token) store.Status {
		return life.Edit(s.rules(), &edit, s.Version(), s.Fingerprint, s.now).Status
	}}
}

func addQuestion(name string, fingerprint uint64) question {
	return question{name, func(f *fixture, id string, _ store.Token) (any, error) {
		t := task(id, f.now().Add(long))
		t.Fingerprint = fingerprint
		_, r, err := f.s.Add(f.ctx, f.shard, []*store.Task{t})
		return r, err
	}, func(s *subject, _ store.Token) store.Status {
		return life.Add(life.PhaseOf(s.State), s.Fingerprint == fingerprint)
	}}
}

// lifeStates makes tasks in every state that rules tell apart, their ids beginning so.
func (f *fixture) lifeStates(prefix string) []string {
	f.Helper()
	ids := []string{"absent", "scheduled", "ready", "expiring", "lapsed", "running", "overdue", "done", "dead", "expired"}
	for i := range ids {
		ids[i] = prefix + ids[i]
	}
	now := f.now()
	expiring, lapsed := task(ids[3], now-1000), task(ids[4], now-1000)
	expiring.Expires, lapsed.Expires = now.Add(long), now-500
	f.scheduled(ids[1])
	f.ready(ids[2])
	f.add(expiring, lapsed)
	f.held(ids[5])
	f.ready(ids[6])
	f.holdFor(short, ids[6])
	waitUntil(f, f.s, f.get(ids[6]).Deadline)
	f.done(ids[7])
	f.dead(ids[8])
	f.expired(ids[9])
	return ids
}

func lifeVerdicts(f *fixture) {
	for i, q := range questions() {
		for _, own := range []bool{false, true} {
			for _, id := range f.lifeStates(fmt.Sprintf("%d-%v-", i, own)) {
				s, token := f.subject(id), store.NewToken()
				if own && s.Token != (store.Token{}) {
					token = s.Token
				}
				want := q.verdict(&s, token)
				results, err := q.ask(f, id, token)
				f.ok(q.name, err)
				if got := statusesOf(results)[0]; got != want {
					f.Fatalf("%s of %s, which is %v, with its own token: %v: got %v, want %v", q.name, id, s.State, own, got, want)
				}
			}
		}
	}
}

func lifeFailures(f *fixture) {
	for i := range 24 {
		n := store.Nack{ID: fmt.Sprint("failure-", i), Delay: long, Uncount: i&1 != 0}
		cancelled := i&2 != 0
		if i&4 != 0 {
			n.Reason = store.ReasonPermanent
		}
		n.Outcome = []store.Outcome{store.OutcomeNone, store.OutcomeFailed, store.OutcomeHoldExpired}[i/8]
		n.Token = f.held(n.ID)
		if cancelled {
			_, _, err := f.s.Cancel(f.ctx, f.shard, []string{n.ID})
			f.ok("cancel", err)
		}
		want := life.Fail(&n, 1, cancelled, false)
		equal(f, "attempt told", f.nack(n).Attempt, want.Attempt)
		got := f.get(n.ID)
		equal(f, "attempt", got.Attempt, want.Attempt)
		equal(f, "reason", got.Reason, want.Reason)
		equal(f, "dead", got.State == store.StateDead, want.Kind == store.ChangeDead)
		histories, err := f.s.History(f.ctx, f.shard, []string{n.ID})
		f.ok("history", err)
		kept := store.OutcomeNone
		if attempts := histories[0].Attempts; len(attempts) > 0 {
			kept = attempts[0].Outcome
		}
		equal(f, "outcome kept", kept, want.Outcome)
	}
}

func lifeKeys(f *fixture) {
	rules := []store.KeyConflict{store.KeyReturn, store.KeyReject, store.KeyReplace}
	ends := []string{"waits", "runs", "done", "dead"}
	for i := range len(rules) * len(ends) * 4 {
		rule, end := rules[i%3], ends[i/3%4]
		windowed, repeats := i/12%2 == 1, i/24 == 1
		key, first, second := fmt.Sprint("key-", i), fmt.Sprint("first-", i), fmt.Sprint("second-", i)
		t := f.keyed(first, key, 0, rule)
		if windowed {
			t.Key.Window = long
		}
		t.Due = f.now() - 1
		f.addKeyed(store.Added, first, t)
		if end != "waits" {
			token := f.hold(first)[0]
			switch end {
			case "done":
				f.ack(long, store.OK, store.Ack{ID: first, Token: token})
			case "dead":
				f.nack(store.Nack{ID: first, Token: token, Reason: store.ReasonPermanent})
			}
		}
		s := f.subject(first)
		next := f.keyed(second, key, 0, rule)
		next.Key.SameRepeats, next.Fingerprint = repeats, t.Fingerprint
		until := store.Millis(0)
		if windowed {
			until = s.now.Add(long)
		}
		want := store.Added
		if phase := life.PhaseOf(s.State); life.KeyTaken(phase, until, s.now) {
			want = life.KeyConflict(next.Key, phase, false, true)
		}
		_, results, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{next})
		f.ok("add keyed", err)
		if got := results[0].Status; got != want {
			f.Fatalf("rule %d, the task that has the key %s, window %v, same repeats %v: got %v, want %v", rule, end, windowed, repeats, got, want)
		}
	}
}
