package storetest

import (
	"bytes"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

// propertyIDs are the few ids that histories use, so that calls meet.
func propertyIDs() []string {
	return []string{
		"a", "b", "c", "A",
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c", "0190F3A4-7C1E-7B3A-9D52-3F6F0E8A1B2C", "0190f3a47c1e7b3a9d523f6f0e8a1b2c",
		"f47ac10b-58cc-4372-a567-0e02b2c3d479",
	}
}

// actions are the steps of a history. Adding and holding stand for several
// actions each, or most of the others would meet nothing.
func (p *pair) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":            p.look,
		"add":         p.add,
		"add more":    p.add,
		"hold":        p.hold,
		"hold more":   p.hold,
		"hold ahead":  p.holdAhead,
		"hold new":    p.holdNew,
		"ack":         p.ack,
		"nack":        p.nack,
		"recover":     p.recover,
		"extend":      p.extend,
		"checkpoint":  p.checkpoint,
		"cancel":      p.cancel,
		"remove":      p.remove,
		"edit":        p.edit,
		"edit more":   p.edit,
		"requeue":     p.requeue,
		"remove dead": p.removeDead,
		"trim":        p.trim,
		"trim dead":   p.trimDead,
		"add keyed":   p.addKeyed,
		"key again":   p.addKeyed,
		"trim keys":   p.trimKeys,
		"claim":       p.claim,
		"renew":       p.renew,
		"put topic":   p.putTopic,
		"drop topic":  p.dropTopic,
		"release":     p.release,
		"drop":        p.drop,
		"sweep":       p.sweep,
		"index set":   p.indexSet,
		"reindex":     p.reindex,
		"watch":       p.watch,
	}
}

// ids draws the ids of a batch, some of them more than once.
func ids(rt *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom(propertyIDs()), 1, 6).Draw(rt, "ids")
}

// batchOf draws an item for each id of a batch.
func batchOf[T any](rt *rapid.T, draw func(id string) T) []T {
	var batch []T
	for _, id := range ids(rt) {
		batch = append(batch, draw(id))
	}
	return batch
}

// often draws true nine times out of ten.
func often(rt *rapid.T, what string) bool { return rapid.IntRange(0, 9).Draw(rt, what) > 0 }

// oneOf draws one of the values.
func oneOf[T any](rt *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(rt, what)
}

// token draws the latest token of a task, seldom an older one or a new one.
func (p *pair) token(rt *rapid.T, id string) store.Token {
	tried := p.tokens[id]
	if len(tried) == 0 || !often(rt, "known token") {
		return p.newToken(rt, id)
	}
	if often(rt, "latest token") {
		return tried[len(tried)-1]
	}
	return rapid.SampledFrom(tried).Draw(rt, "token")
}

func (p *pair) newToken(rt *rapid.T, id string) (t store.Token) {
	copy(t[:], rapid.SliceOfN(rapid.Byte(), len(t), len(t)).Draw(rt, "new token"))
	p.tokens[id] = append(p.tokens[id], t)
	return t
}

// fences says which fence the sides are to use: the current one, or an old one.
func fences(rt *rapid.T) func(*side) store.Fence {
	if often(rt, "current fence") {
		return func(s *side) store.Fence { return s.fence }
	}
	return func(s *side) store.Fence { return s.old }
}

func (p *pair) newTask(rt *rapid.T, id string) *store.Task {
	t := &store.Task{
		ID:          id,
		Payload:     rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "payload"),
		Due:         p.moment(rt, "due", -4, 3),
		Created:     p.base,
		MaxRetries:  rapid.IntRange(-1, 3).Draw(rt, "max retries"),
		Visibility:  oneOf(rt, "own visibility", 0, 0, 2*long),
		Fingerprint: oneOf[uint64](rt, "fingerprint", 1, 1, 1, 2),
	}
	if !often(rt, "no expiry") {
		t.Expires = p.moment(rt, "expiry", -3, 3)
	}
	if rapid.Bool().Draw(rt, "traits") {
		t.Traits = &store.Traits{
			Priority:    oneOf(rt, "priority", 0, 1, 9),
			FairnessKey: oneOf(rt, "fairness key", "", "a", "ab", "\x00"),
			RateKey:     oneOf(rt, "rate key", "", "k"),
		}
	}
	if rapid.Bool().Draw(rt, "attributes") {
		t.Attributes = []store.Attribute{{Key: "k", Value: oneOf(rt, "value", "v", "v", "w\x00", "")}, {Key: "l", Value: "v"}}[:oneOf(rt, "number of attributes", 1, 2)]
		t.Backoff = &store.Backoff{Kind: store.BackoffLinear, Base: time.Second}
	}
	t.Indexed = p.indexed
	return t
}

func (p *pair) newHold(rt *rapid.T, id string) store.Hold {
	h := store.Hold{ID: id, Visibility: visibility(rt), Worker: oneOf(rt, "worker", "", "w1", "w2"), Node: oneOf(rt, "node", "", "n1", "n2")}
	if often(rt, "new hold") {
		h.Token = p.newToken(rt, id)
	} else {
		h.Token = p.token(rt, id)
	}
	return h
}

// visibility draws a timeout that passes at once, or never.
func visibility(rt *rapid.T) time.Duration {
	return oneOf(rt, "visibility", time.Millisecond, long, 2*long)
}

func (p *pair) add(rt *rapid.T) {
	batch := batchOf(rt, func(id string) *store.Task { return p.newTask(rt, id) })
	p.both(rt, "add", func(s *side) (any, error) {
		stamp, results, err := s.Add(rt.Context(), p.shard, batch)
		return []any{stamp.Seq, p.added(results)}, err
	})
}

// added makes results comparable: only what the contract says of a status counts.
func (p *pair) added(results []store.AddResult) []store.AddResult {
	for i := range results {
		r := &results[i]
		r.Due, r.Deadline = p.round(r.Due), p.round(r.Deadline)
		if r.Status != store.Held {
			r.Deadline, r.Attempt = 0, 0
		}
	}
	return results
}

func (p *pair) holdNew(rt *rapid.T) {
	var holds []store.Hold
	batch := batchOf(rt, func(id string) *store.Task {
		holds = append(holds, p.newHold(rt, id))
		return p.newTask(rt, id)
	})
	fence := fences(rt)
	p.both(rt, "hold new", func(s *side) (any, error) {
		stamp, results, err := s.HoldNew(rt.Context(), p.shard, fence(s), batch, holds)
		return []any{stamp.Seq, p.added(results)}, err
	})
	p.pass(rt)
}

func (p *pair) hold(rt *rapid.T) {
	holds := batchOf(rt, func(id string) store.Hold { return p.newHold(rt, id) })
	fence := fences(rt)
	p.both(rt, "hold", func(s *side) (any, error) {
		stamp, results, err := s.Hold(rt.Context(), p.shard, fence(s), holds)
		return []any{stamp.Seq, p.holds(results)}, err
	})
	p.pass(rt)
}

// holdAhead holds tasks shortly before they are due, and goes on once they are: that is
// about now. A machine that is too slow for that compares nothing, and nothing from then on:
// one store does what holds before that time, and the other what holds after it.
func (p *pair) holdAhead(rt *rapid.T) {
	soon := p.base
	for _, s := range p.sides {
		now, err := s.Clock(rt.Context())
		if err != nil {
			rt.Fatalf("clock: %v", err)
		}
		soon = max(soon, store.Millis(now.UnixMilli())+10)
	}
	var moves []store.Edit
	holds := batchOf(rt, func(id string) store.Hold {
		moves = append(moves, store.Edit{ID: id, Due: soon})
		h := p.newHold(rt, id)
		h.Ahead = oneOf(rt, "ahead", store.MaxHoldAhead, long)
		h.Before, h.Until = oneOf(rt, "before", 0, 0, soon, soon.Add(long)), oneOf(rt, "until", 0, 0, soon, soon.Add(long))
		return h
	})
	for _, s := range p.sides {
		if _, _, err := s.Edit(rt.Context(), p.shard, moves); err != nil {
			rt.Fatalf("edit: %v", err)
		}
	}
	var answers [2]any
	var errs [2]error
	for i, s := range p.sides {
		stamp, results, err := s.Hold(rt.Context(), p.shard, s.fence, holds)
		p.apart = p.apart || !stamp.Now.Before(soon.Time())
		answers[i], errs[i] = []any{stamp.Seq, p.holds(results)}, err
	}
	if p.apart {
		return
	}
	p.compare(rt, "hold ahead", answers, errs)
	p.passed(rt, soon)
}

// holds makes results comparable.
func (p *pair) holds(results []store.HoldResult) []store.HoldResult {
	for i := range results {
		r := &results[i]
		r.Task, r.Due, r.Deadline = p.task(r.Task), p.round(r.Due), p.round(r.Deadline)
		switch r.Status {
		case store.OK:
		case store.NotDue:
			r.Deadline = 0
		default:
			r.Due, r.Deadline = 0, 0
		}
	}
	return results
}

func (p *pair) ack(rt *rapid.T) {
	acks := batchOf(rt, func(id string) store.Ack {
		return store.Ack{ID: id, Token: p.token(rt, id), Result: []byte(oneOf(rt, "result", "", "", "r", "\x00\xff"))}
	})
	retention := oneOf(rt, "retention", 0, time.Millisecond, long)
	p.both(rt, "ack", func(s *side) (any, error) {
		stamp, results, err := s.Ack(rt.Context(), p.shard, acks, retention)
		return []any{stamp.Seq, results}, err
	})
	p.pass(rt)
}

func (p *pair) newNack(rt *rapid.T, id string) store.Nack {
	return store.Nack{
		ID:      id,
		Token:   p.token(rt, id),
		Reason:  oneOf(rt, "reason", store.ReasonNone, store.ReasonNone, store.ReasonMaxRetries, store.ReasonPermanent, store.ReasonHoldExpired),
		Delay:   oneOf(rt, "delay", 0, time.Millisecond, long),
		Uncount: rapid.Bool().Draw(rt, "uncount"),
		Error:   oneOf(rt, "error", "", "no luck", "broken \x00 ünïcode"),
		Outcome: oneOf(rt, "outcome", store.OutcomeNone, store.OutcomeFailed, store.OutcomeReleased, store.OutcomeHoldExpired),
	}
}

// nacked makes results comparable.
func (p *pair) nacked(results []store.NackResult) []store.NackResult {
	for i := range results {
		r := &results[i]
		known := store.NackResult{Status: r.Status}
		switch r.Status {
		case store.OK:
			known.Due, known.Attempt, known.Traits = p.round(r.Due), r.Attempt, r.Traits
		case store.NotDue:
			known.Deadline = p.round(r.Deadline)
		case store.WrongState:
			known.State = r.State
		}
		*r = known
	}
	return results
}

func (p *pair) nack(rt *rapid.T) {
	nacks := batchOf(rt, func(id string) store.Nack { return p.newNack(rt, id) })
	p.both(rt, "nack", func(s *side) (any, error) {
		stamp, results, err := s.Nack(rt.Context(), p.shard, nacks)
		return []any{stamp.Seq, p.nacked(results)}, err
	})
	p.pass(rt)
}

func (p *pair) recover(rt *rapid.T) {
	nacks := batchOf(rt, func(id string) store.Nack { return p.newNack(rt, id) })
	fence := fences(rt)
	p.both(rt, "recover", func(s *side) (any, error) {
		stamp, results, err := s.Recover(rt.Context(), p.shard, fence(s), nacks)
		return []any{stamp.Seq, p.nacked(results)}, err
	})
	p.pass(rt)
}

func (p *pair) extend(rt *rapid.T) {
	extends := batchOf(rt, func(id string) store.Extend {
		return store.Extend{ID: id, Token: p.token(rt, id), Visibility: visibility(rt)}
	})
	p.both(rt, "extend", func(s *side) (any, error) {
		stamp, results, err := s.Extend(rt.Context(), p.shard, extends)
		for i := range results {
			results[i].Deadline = p.round(results[i].Deadline)
		}
		return []any{stamp.Seq, results}, err
	})
	p.pass(rt)
}

func (p *pair) checkpoint(rt *rapid.T) {
	checkpoints := batchOf(rt, func(id string) store.Checkpoint {
		value := bytes.Repeat([]byte{'v'}, oneOf(rt, "size", 0, 1, 100, store.MaxJournalBytes/2))
		return store.Checkpoint{ID: id, Token: p.token(rt, id), JournalEntry: store.JournalEntry{Name: oneOf(rt, "name", "a", "b", "ünïcode", "\x00\xff"), Value: value}}
	})
	p.both(rt, "checkpoint", func(s *side) (any, error) {
		stamp, results, err := s.Checkpoint(rt.Context(), p.shard, checkpoints)
		return []any{stamp.Seq, results}, err
	})
}

func (p *pair) cancel(rt *rapid.T) {
	batch := ids(rt)
	p.both(rt, "cancel", func(s *side) (any, error) {
		stamp, results, err := s.Cancel(rt.Context(), p.shard, batch)
		return []any{stamp.Seq, results}, err
	})
}

func (p *pair) checkHistory(rt *rapid.T) {
	p.both(rt, "history", func(s *side) (any, error) {
		all, err := s.History(rt.Context(), p.shard, propertyIDs())
		for i := range all {
			h := &all[i]
			h.Attempts, h.Result = append([]store.Attempt{}, h.Attempts...), append([]byte{}, h.Result...)
			for k := range h.Attempts {
				a := &h.Attempts[k]
				a.Due, a.Started, a.Ended = p.round(a.Due), p.round(a.Started), p.round(a.Ended)
			}
		}
		return all, err
	})
}

func (p *pair) checkJournals(rt *rapid.T) {
	p.both(rt, "journals", func(s *side) (any, error) {
		all := make(map[string][]store.JournalEntry)
		for _, id := range propertyIDs() {
			entries, err := s.Journal(rt.Context(), p.shard, id)
			if err != nil {
				return nil, err
			}
			all[id] = p.journal(entries)
		}
		return all, nil
	})
}

func (p *pair) remove(rt *rapid.T) {
	batch := store.Removals(ids(rt)...)
	for i := range batch {
		batch[i].IfVersion = rapid.Int64Range(0, 3).Draw(rt, "version")
	}
	p.both(rt, "remove", func(s *side) (any, error) {
		stamp, results, err := s.Remove(rt.Context(), p.shard, batch)
		return []any{stamp.Seq, results}, err
	})
}

// moved makes results comparable.
func (p *pair) moved(results []store.RemoveResult) []store.RemoveResult {
	for i := range results {
		results[i].Due = p.round(results[i].Due)
	}
	return results
}

func (p *pair) requeue(rt *rapid.T) {
	batch := ids(rt)
	p.both(rt, "requeue", func(s *side) (any, error) {
		stamp, results, err := s.Requeue(rt.Context(), p.shard, batch)
		return []any{stamp.Seq, p.moved(results)}, err
	})
	p.pass(rt)
}

func (p *pair) removeDead(rt *rapid.T) {
	batch := ids(rt)
	p.both(rt, "remove dead", func(s *side) (any, error) {
		stamp, results, err := s.RemoveDead(rt.Context(), p.shard, batch)
		return []any{stamp.Seq, results}, err
	})
}

func (p *pair) trim(rt *rapid.T) {
	p.both(rt, "trim", func(s *side) (any, error) { return s.Trim(rt.Context(), p.shard, 100) })
}

// release seldom releases the shard, after which owner calls are refused until
// the next claim.
func (p *pair) release(rt *rapid.T) {
	fence := fences(rt)
	if often(rt, "keep the shard") {
		fence = func(s *side) store.Fence { return s.old }
	}
	p.both(rt, "release", func(s *side) (any, error) { return nil, s.Release(rt.Context(), p.shard, fence(s)) })
}

// drop seldom drops the shard, or histories would be short.
func (p *pair) drop(rt *rapid.T) {
	if often(rt, "keep the tasks") {
		return
	}
	p.both(rt, "drop", func(s *side) (any, error) { return nil, s.DropShard(rt.Context(), p.shard) })
}

func (p *pair) sweep(rt *rapid.T) {
	fence := fences(rt)
	p.both(rt, "sweep", func(s *side) (any, error) {
		total := 0
		for cursor := ""; ; {
			repaired, next, err := s.Sweep(rt.Context(), p.shard, fence(s), cursor, 5)
			total += repaired
			if cursor = next; cursor == "" || err != nil {
				return total, err
			}
		}
	})
}
