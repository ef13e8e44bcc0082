package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// cellStore is what the two stores that are compared are.
type cellStore interface {
	store.Store
	store.Cells
}

// pair is a shard in Redis and its model, the store in memory.
type pair struct {
	*rapid.T
	real, model cellStore
	shard       store.Shard
	fences      [2]store.Fence
	tokens      map[string]store.Token // of the last hold of each task
}

// TestCommitsAreThoseOfTheModel makes commits of few cells and tasks, and what ends tasks, in
// Redis and in memory: the answers and what is left must be the same.
func TestCommitsAreThoseOfTheModel(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		p := &pair{T: r, real: s, model: memstore.New(), shard: store.Shard{Topic: fmt.Sprint("run-", runs)}, tokens: make(map[string]store.Token)}
		for i, st := range p.both() {
			session := store.Session{Node: "node-1", Start: store.NewToken(), TTL: time.Hour, Begin: true}
			_, err := st.RenewSession(context.Background(), session)
			p.must(err)
			_, p.fences[i], err = st.Claim(context.Background(), p.shard, session)
			p.must(err)
		}
		r.Repeat(map[string]func(*rapid.T){
			"commit": p.commit, "queues": p.queues, "hold": p.hold, "ack": p.ack, "nack": p.nack, "requeue": p.requeue, "seal": p.seal, "": p.compare,
		})
	})
}

func (p *pair) both() [2]cellStore { return [2]cellStore{p.real, p.model} }

func (p *pair) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// same does something to both, and compares what that says.
func (p *pair) same(what string, do func(s cellStore, f store.Fence) string) {
	p.Helper()
	got, want := do(p.real, p.fences[0]), do(p.model, p.fences[1])
	if got != want {
		p.Fatalf("%s: redis says\n%s\nthe model\n%s", what, got, want)
	}
}

func drawID(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "task") }

func drawCell(t *rapid.T) store.CellID {
	return rapid.SampledFrom([]store.CellID{"sa", "wb", "tc", "Sa"}).Draw(t, "cell")
}

// drawVersion is mostly the version of a cell, and sometimes another one.
func (p *pair) drawVersion(t *rapid.T, id store.CellID) int64 {
	if rapid.IntRange(0, 3).Draw(t, "other version") == 0 {
		return int64(rapid.IntRange(-1, 3).Draw(t, "if"))
	}
	cells, err := p.model.Cells(context.Background(), p.shard, []store.CellID{id})
	p.must(err)
	return cells[0].Version
}

// drawHeld is mostly a task that is held, if there is one, and sometimes another one.
func (p *pair) drawHeld(t *rapid.T) (string, bool) {
	id := drawID(t)
	if rapid.IntRange(0, 5).Draw(t, "any") == 0 {
		return id, true
	}
	_, tasks, err := p.model.Get(context.Background(), p.shard, []string{id})
	p.must(err)
	return id, tasks[0].State == store.StateRunning
}

// drawCommit draws a commit whose drops are places in the out-box.
func (p *pair) drawCommit(t *rapid.T) (c store.Commit) {
	few := func(what string, most int, add func()) {
		for range rapid.IntRange(0, most).Draw(t, what) {
			add()
		}
	}
	few("puts", 2, func() {
		put := store.Put{Cell: store.Cell{ID: drawCell(t)}}
		put.If = p.drawVersion(t, put.ID)
		if slices.ContainsFunc(c.Puts, func(o store.Put) bool { return o.ID == put.ID }) {
			return
		}
		if rapid.IntRange(0, 3).Draw(t, "deleted") > 0 {
			put.Wake = store.Millis(rapid.IntRange(0, 2).Draw(t, "wake"))
			put.List = rapid.SampledFrom([]string{"", "x", "xy"}).Draw(t, "list")
			put.Listed, put.Body = store.Millis(rapid.IntRange(-1, 2).Draw(t, "listed")), []byte("body")
			put.First = rapid.SampledFrom([]int64{0, 2, 1 << 52}).Draw(t, "first")
		}
		c.Puts = append(c.Puts, put)
	})
	few("adds", 1, func() {
		task := &store.Task{ID: drawID(t), Payload: []byte("p"), Due: 1, MaxRetries: -1, Fingerprint: 7}
		if rapid.Bool().Draw(t, "tells") {
			task.Tells = "sa"
		}
		if rapid.Bool().Draw(t, "ordered") {
			task.Traits = &store.Traits{OrderingKey: "k", Priority: 3}
		}
		c.Adds = append(c.Adds, task)
	})
	few("under", 1, func() {
		if id, ok := p.drawHeld(t); ok {
			c.Under = append(c.Under, store.Holder{ID: id, Token: p.tokens[id]})
		}
	})
	few("acks", 1, func() {
		id, ok := p.drawHeld(t)
		if !ok {
			return
		}
		c.Acks = append(c.Acks, store.Ack{ID: id, Token: p.tokens[id], Result: []byte("r")})
		c.Retention = time.Duration(rapid.IntRange(0, 1).Draw(t, "retention")) * time.Hour
	})
	few("removes", 1, func() {
		c.Removes = append(c.Removes, store.Remove{ID: drawID(t), Due: store.Millis(rapid.IntRange(0, 2).Draw(t, "untouched since"))})
	})
	few("cancels", 1, func() { c.Cancels = append(c.Cancels, drawID(t)) })
	few("send", 2, func() {
		c.Send = append(c.Send, store.Parcel{To: drawCell(t), Topic: rapid.SampledFrom([]string{"", "other"}).Draw(t, "topic"), Body: []byte("x")})
	})
	if len(c.Send) == 0 { // of the ends and of what is sent in one call the store says which comes first
		few("take", 1, func() { c.Take = 1000 })
		few("drop", 2, func() { c.Drop = append(c.Drop, int64(rapid.IntRange(0, 9).Draw(t, "place"))) })
	}
	return c
}

func (p *pair) commit(t *rapid.T) {
	commits := make([]store.Commit, rapid.IntRange(1, 3).Draw(t, "commits"))
	for i := range commits {
		commits[i] = p.drawCommit(t)
	}
	if len(commits) > 1 {
		for i := range commits {
			commits[i].Take, commits[i].Drop = 0, nil
		}
	}
	p.same(fmt.Sprintf("commit of %+v", commits), func(s cellStore, f store.Fence) string {
		stamp, results, err := s.Commit(context.Background(), p.shard, &f, p.numbered(s, commits))
		p.must(err)
		return fmt.Sprintf("%+v, seq %d, in %d", results, stamp.Seq, stamp.In)
	})
}

// numbered gives drops the numbers that a store has for their places, by what the parcels say: each store has
// numbers of its own, and an order of its own within a call.
func (p *pair) numbered(s cellStore, commits []store.Commit) []store.Commit {
	box, err := s.Parcels(context.Background(), p.shard, store.OutBox, 0, 1000)
	p.must(err)
	slices.SortStableFunc(box, func(a, b store.Parcel) int { return cmp.Compare(content(&a), content(&b)) })
	all := slices.Clone(commits)
	for i := range all {
		var drop []int64
		for _, place := range all[i].Drop {
			number := int64(1) << 52 // nobody's
			if int(place) < len(box) {
				number = box[place].Number
			}
			drop = append(drop, number)
		}
		all[i].Drop = drop
	}
	return all
}

// boxQueue is a queue of the shard, and farQueue one that it receives.
func (p *pair) boxQueue() store.Queue {
	return store.Queue{Source: p.shard, Class: store.ClassWork, To: "other"}
}

func (p *pair) farQueue() store.Queue {
	return store.Queue{Source: store.Shard{Topic: "far", N: 1, Life: 7}, Class: store.ClassWork, To: p.shard.Topic}
}

// queues makes a commit that receives, adds tasks with keys, sends to a queue and finishes what is there.
func (p *pair) queues(t *rapid.T) {
	c := p.drawCommit(t)
	for i := range rapid.IntRange(0, 2).Draw(t, "keyed") {
		task := &store.Task{ID: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "keyed task"), Payload: []byte{byte(i)}, Due: 1, MaxRetries: -1}
		task.Fingerprint = uint64(rapid.IntRange(7, 8).Draw(t, "fingerprint"))
		task.Key = &store.Key{Text: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), OnConflict: rapid.SampledFrom([]store.KeyConflict{store.KeyReturn, store.KeyReject, store.KeyReplace}).Draw(t, "rule")}
		task.Key.Window = time.Duration(rapid.IntRange(0, 1).Draw(t, "window")) * time.Hour
		if slices.ContainsFunc(c.Adds, func(o *store.Task) bool { return o.ID == task.ID }) {
			continue
		}
		c.Adds = append(c.Adds, task)
	}
	if rapid.Bool().Draw(t, "receives") {
		r := &store.Receive{Queue: p.farQueue(), Head: int64(rapid.IntRange(1, 20).Draw(t, "head"))}
		numbers := rapid.SliceOfNDistinct(rapid.Int64Range(r.Head, r.Head+9), len(c.Adds), len(c.Adds)+3, rapid.ID[int64]).Draw(t, "numbers")
		refused := rapid.IntRange(0, len(numbers)-len(c.Adds)).Draw(t, "refused")
		r.Numbers, r.Refused = numbers[:len(numbers)-refused], numbers[len(numbers)-refused:]
		c.Receive = r
	}
	for range rapid.IntRange(0, 2).Draw(t, "messages") {
		c.Send = append(c.Send, store.Message{To: "ex", Topic: "other", Class: store.ClassWork, Body: []byte(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "message"))})
	}
	places := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 2).Draw(t, "finishes")
	p.same(fmt.Sprintf("commit of %+v, receive %+v, finish %v", c, c.Receive, places), func(s cellStore, f store.Fence) string {
		mine := p.numbered(s, []store.Commit{c})
		page, err := s.Messages(context.Background(), p.shard, p.boxQueue(), 0, 1000, 1<<20)
		p.must(err)
		if len(places) > 0 {
			finish := &store.Finish{Queue: p.boxQueue()}
			for _, place := range places {
				if place < len(page.Messages) {
					finish.Numbers = append(finish.Numbers, page.Messages[place].Number)
				}
			}
			mine[0].Finish = finish
		}
		stamp, results, err := s.Commit(context.Background(), p.shard, &f, mine)
		p.must(err)
		slices.Sort(results[0].Made)
		slices.Sort(results[0].Refused)
		for i := range results[0].Adds {
			if a := &results[0].Adds[i]; a.Due > 1 {
				a.Due = 2 // a moment of a clock, as of a nack: each store has its own
			}
		}
		return fmt.Sprintf("%+v, seq %d, in %d", results, stamp.Seq, stamp.In)
	})
}

func (p *pair) hold(t *rapid.T) {
	h := store.Hold{ID: drawID(t), Token: store.NewToken(), Visibility: time.Hour, Worker: "w"}
	p.same("hold of "+h.ID, func(s cellStore, f store.Fence) string {
		_, results, err := s.Hold(context.Background(), p.shard, f, []store.Hold{h})
		p.must(err)
		if results[0].Status == store.OK {
			p.tokens[h.ID] = h.Token
			return "ok " + string(results[0].Task.Tells)
		}
		return results[0].Status.String()
	})
}

func (p *pair) ack(t *rapid.T) {
	id, retention := drawID(t), time.Duration(rapid.IntRange(0, 1).Draw(t, "retention"))*time.Hour
	p.same("ack of "+id, func(s cellStore, _ store.Fence) string {
		_, results, err := s.Ack(context.Background(), p.shard, []store.Ack{{ID: id, Token: p.tokens[id], Result: []byte("result")}}, retention)
		p.must(err)
		return fmt.Sprint(results)
	})
}

func (p *pair) nack(t *rapid.T) {
	id := drawID(t)
	nack := store.Nack{ID: id, Token: p.tokens[id], Reason: rapid.SampledFrom([]store.Reason{store.ReasonNone, store.ReasonPermanent}).Draw(t, "reason"), Error: "e"}
	p.same("nack of "+id, func(s cellStore, _ store.Fence) string {
		_, results, err := s.Nack(context.Background(), p.shard, []store.Nack{nack})
		p.must(err)
		return results[0].Status.String()
	})
}

func (p *pair) requeue(t *rapid.T) {
	id := drawID(t)
	p.same("requeue of "+id, func(s cellStore, _ store.Fence) string {
		_, results, err := s.Requeue(context.Background(), p.shard, []string{id})
		p.must(err)
		return results[0].Status.String()
	})
}

func (p *pair) seal(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "seal") > 0 {
		return
	}
	p.same("seal", func(s cellStore, _ store.Fence) string {
		p.must(s.Seal(context.Background(), p.shard))
		return ""
	})
}

// compare compares everything that is left.
func (p *pair) compare(_ *rapid.T) {
	ctx := context.Background()
	p.same("what is left", func(s cellStore, _ store.Fence) string {
		var b strings.Builder
		cells, err := s.Cells(ctx, p.shard, []store.CellID{"sa", "wb", "tc", "Sa"})
		p.must(err)
		fmt.Fprintf(&b, "cells %+v\n", cells)
		_, wakes, err := s.Wakes(ctx, p.shard, store.WakeQuery{To: store.MaxDue, Limit: 10})
		p.must(err)
		fmt.Fprintf(&b, "wakes %v\n", wakes)
		for _, list := range []string{"x", "xy"} {
			listed, err := s.Listed(ctx, p.shard, list, store.Wake{}, 10)
			p.must(err)
			fmt.Fprintf(&b, "list %s %+v\n", list, listed)
		}
		for _, box := range []store.Box{store.InBox, store.OutBox} {
			parcels, err := s.Parcels(ctx, p.shard, box, 0, 1000)
			p.must(err)
			fmt.Fprintf(&b, "box %d %v\n", box, contents(parcels))
		}
		page, err := s.Messages(ctx, p.shard, p.boxQueue(), 0, 1000, 1<<20)
		p.must(err)
		for _, m := range page.Messages {
			fmt.Fprintf(&b, "message %s %s\n", m.To, m.Body)
		}
		heads, err := s.Queues(ctx, p.shard, store.Queue{}, 9)
		p.must(err)
		receipts, err := s.Receipts(ctx, p.shard, []store.Queue{p.farQueue()})
		p.must(err)
		fmt.Fprintf(&b, "queues %d receipt %d above %v refused %v\n", len(heads), receipts[0].Floor, receipts[0].Above, receipts[0].Refused)
		_, tasks, err := s.Get(ctx, p.shard, []string{"a", "b", "c", "d", "e"})
		p.must(err)
		for _, t := range tasks {
			fmt.Fprintf(&b, "task %s %v attempt %d token %x tells %q cancelled %t\n", t.ID, t.State, t.Attempt, t.Token, t.Tells, t.Cancelled)
		}
		stats, err := s.Stats(ctx, []store.Shard{p.shard})
		p.must(err)
		fmt.Fprintf(&b, "cells %d parcels %d", stats[0].Cells, stats[0].Parcels)
		return b.String()
	})
}

// contents tells parcels without their times, in an order that is not that of one call.
func contents(parcels []store.Parcel) []string {
	all := make([]string, len(parcels))
	for i := range parcels {
		all[i] = content(&parcels[i])
	}
	slices.SortFunc(all, cmp.Compare[string])
	return all
}

func content(p *store.Parcel) string {
	if e := p.Ended; e != nil {
		return fmt.Sprintf("%s %s %v %v attempt %d worker %s error %q result %q started %t", p.To, e.ID, e.Kind, e.Reason, e.Attempt, e.Worker, e.Error, e.Result, e.Started != 0)
	}
	return fmt.Sprintf("%s %s %s", p.To, p.Topic, p.Body)
}
