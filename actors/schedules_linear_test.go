package actors_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

var linearSchedules = flag.Int("schedules.linear", 200, "schedules whose calls and runs are checked to be linearizable")

const (
	cellCallers     = 4
	callsOfACell    = 14 // of each caller
	callsOfItsEnd   = 4
	requestsOfACell = 6 // that triggers have
)

// Who does something to a schedule, behind the callers.
const (
	cellOwner = cellCallers + iota
	cellWorker
	cellCommits // of callers
)

// cellHistory is what was done to one schedule, in the order of a clock that all share.
type cellHistory struct {
	mu      sync.Mutex
	ops     []porcupine.Operation
	version int64 // that an answer had last
}

func (h *cellHistory) note(client int, in cellIn, out cellOut, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: from, Return: to})
	if out.version != 0 {
		h.version = out.version
	}
}

// cellCall is a call on its way; its commits add what the answer does not say.
type cellCall struct {
	made cellOut
	lost []cellOut // the same when answers to them were lost: what is behind those is done once more, or seen
}

type cellCallKey struct{}

// cellPlay is schedules, those who call, their owners and a worker.
type cellPlay struct {
	diligent
	*testing.T
	nodes   []*servicetest.Node
	clock   atomic.Int64
	commits atomic.Int64
	by      map[string]*cellHistory
	acks    map[string]cellAcked // on their way
	acked   map[string]bool      // the cancel of a run that has ended has it acked once more
}

type cellAcked struct {
	schedule string
	from     int64
}

func cellName(i int) string { return fmt.Sprint("s", i) }

// specOf is one of some specs.
func specOf(kind int) schedule.Spec {
	spec := everySpec(time.Duration(2+kind) * time.Second)
	spec.Template.Task.Payload = []byte(strconv.Itoa(kind))
	return spec
}

func kindOf(payload []byte) int {
	kind, _ := strconv.Atoi(string(payload))
	return kind
}

// commit has each commit take some time, and sometimes loses its answer, and notes what was made.
func (p *cellPlay) commit(ctx context.Context, c servicetest.Committing) (store.Stamp, []store.CommitResult, error) {
	n := p.commits.Add(1)
	before := 150
	if drawn(5, n, "slow") == 0 {
		before = 1000
	}
	time.Sleep(time.Duration(drawn(before, n, "before")) * time.Millisecond)
	from := p.clock.Add(1)
	stamp, results, err := c.Make()
	to := p.clock.Add(1)
	if err == nil {
		call, _ := ctx.Value(cellCallKey{}).(*cellCall)
		for i := range c.Commits {
			if results[i].Status == store.OK {
				p.noteCommit(&c.Commits[i], call, from, to)
			}
		}
	}
	time.Sleep(time.Duration(drawn(100, n, "after")) * time.Millisecond)
	if err == nil && drawn(12, n, "lost") == 0 {
		if call, ours := ctx.Value(cellCallKey{}).(*cellCall); ours {
			call.lost = append(call.lost, call.made)
		}
		return store.Stamp{}, nil, store.ErrUnknown
	}
	return stamp, results, err
}

// noteCommit notes what a commit has made and taken back; runs of triggers are left to their calls.
func (p *cellPlay) noteCommit(c *store.Commit, call *cellCall, from, to int64) {
	if len(c.Puts) == 0 || c.Puts[0].ID.Kind() != store.CellSchedule {
		return
	}
	put := &c.Puts[0]
	in := cellIn{op: cellMake, isLast: len(put.Body) == 0}
	triggered := map[string]bool{}
	if !in.isLast {
		read, err := schedule.FromCell(put.Cell)
		if err != nil {
			p.Errorf("the cell of %s: %v", put.ID, err)
			return
		}
		in.life = read.Life
		for _, r := range read.Open {
			triggered[read.RunID(r)] = r.Origin == schedule.ByTrigger
		}
	}
	for _, t := range c.Adds {
		run := cellRun{id: t.ID, kind: kindOf(t.Payload), at: t.RunOf.Occurrence}
		if !triggered[t.ID] {
			in.adds = append(in.adds, run)
		} else if call != nil {
			call.made.run, call.made.kind = run.id, run.kind
		}
	}
	for _, r := range c.Removes {
		if r.Due != 0 {
			in.takes = append(in.takes, r.ID)
		}
	}
	client := cellOwner
	if call != nil {
		call.made.life = in.life
		client = cellCommits
	}
	if len(in.adds)+len(in.takes) > 0 {
		p.by[put.ID.Key()].note(client, in, cellOut{}, from, to)
	}
}

func (p *cellPlay) Deliver(ds []subscription.Delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ds {
		of := d.Task.RunOf
		in := cellIn{op: cellDeliver, run: d.Task.ID, kind: kindOf(d.Task.Payload)}
		p.by[of.Schedule].note(cellWorker, in, cellOut{}, p.clock.Add(1), p.clock.Add(1))
		s := subscription.Settlement{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}
		if p.got[d.Task.ID]++; p.got[d.Task.ID] == 1 && drawn(4, d.Task.ID, "released") > 0 { // at once, as a step may be on its way
			later := time.Duration(200+drawn(2000, d.Task.ID, "later")) * time.Millisecond
			s.Kind, s.Delay = subscription.SettleRelease, &later
			p.runs[d.Task.ID] = time.AfterFunc(time.Duration(1+drawn(20, d.Task.ID, "soon"))*time.Millisecond, func() {
				p.sub.Settle(1, []subscription.Settlement{s})
			})
			continue
		}
		p.runs[d.Task.ID] = time.AfterFunc(time.Duration(drawn(2500, d.Task.ID, "takes"))*time.Millisecond, func() {
			p.mu.Lock()
			if _, there := p.acks[s.ID]; !there && !p.acked[s.ID] {
				p.acks[s.ID] = cellAcked{of.Schedule, p.clock.Add(1)}
			}
			p.mu.Unlock()
			p.sub.Settle(1, []subscription.Settlement{s})
		})
	}
	return true
}

func (p *cellPlay) Settled(_ uint64, results []subscription.Settled) {
	_ = p.sub.Grant(len(results))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range results {
		if a, there := p.acks[r.ID]; there {
			delete(p.acks, r.ID)
			p.acked[r.ID] = r.Err == nil
			p.by[a.schedule].note(cellWorker, cellIn{op: cellAck, run: r.ID}, cellOut{unsure: r.Err != nil}, a.from, p.clock.Add(1))
		}
	}
}

// What callers do to a schedule before one of them may delete it, and then. Nobody creates one of a
// name that had another.
var (
	cellCalls      = []cellOp{cellPut, cellPut, cellPut, cellPut, cellPause, cellPause, cellResume, cellResume, cellTrigger, cellTrigger, cellTrigger, cellGet}
	cellCallsOfEnd = []cellOp{cellPut, cellPause, cellResume, cellTrigger, cellTrigger, cellGet, cellDelete, cellDelete}
)

// draw is what a caller does next.
func (p *cellPlay) draw(name string, client, n int) cellIn {
	ops := cellCalls
	if n >= callsOfACell {
		ops = cellCallsOfEnd
	}
	in := cellIn{op: ops[drawn(len(ops), name, client, n)], kind: drawn(3, name, client, n, "kind")}
	h := p.by[name]
	h.mu.Lock()
	seen := max(h.version, 1)
	h.mu.Unlock()
	switch in.op {
	case cellPut:
		in.ifVersion = seen
		if n < callsOfACell {
			in.ifVersion = []int64{anyVersion, 0, seen, seen, seen}[drawn(5, name, client, n, "version")]
		}
	case cellDelete:
		in.ifVersion = []int64{0, seen, seen}[drawn(3, name, client, n, "version")]
	case cellTrigger:
		in.request = fmt.Sprint("r", drawn(requestsOfACell, name, client, n, "request"))
		in.allow = drawn(3, name, client, n, "allow") == 0
	}
	return in
}

// call has a caller do something to a schedule, and notes what it came to.
func (p *cellPlay) call(client int, name string, in cellIn) {
	all, call := p.nodes[client%len(p.nodes)].Sys.Schedules, &cellCall{}
	ctx := context.WithValue(p.Context(), cellCallKey{}, call)
	var shown schedules.Status
	var out cellOut
	from := p.clock.Add(1)
	err := func() (err error) {
		switch in.op {
		case cellPut:
			var ifVersion *int64
			if in.ifVersion != anyVersion {
				ifVersion = &in.ifVersion
			}
			var put schedules.Put
			put, err = all.Put(ctx, schedules.Definition{Topic: "mail", Name: name, Spec: specOf(in.kind)}, ifVersion)
			out.version, out.outcome = put.Version, put.Outcome
		case cellPause:
			shown, err = all.Pause(ctx, "mail", name, "ada", "")
		case cellResume:
			shown, err = all.Resume(ctx, "mail", name, "ada", "")
		case cellTrigger:
			var made schedules.Triggered
			overlap := schedule.Skip
			if in.allow {
				overlap = schedule.Allow
			}
			made, err = all.Trigger(ctx, schedules.Trigger{Topic: "mail", Name: name, Overlap: overlap, Request: in.request})
			out.run, out.repeated = made.ID, made.Repeated
		case cellDelete:
			_, err = all.Delete(ctx, "mail", name, schedules.Deletion{IfVersion: in.ifVersion, CancelRuns: client%2 == 0})
		default:
			shown, err = all.Get(ctx, "mail", name)
		}
		return err
	}()
	to := p.clock.Add(1)
	out.at = store.Millis(time.Now().UnixMilli())
	if shown.Schedule != nil {
		out.life, out.version, out.kind, out.paused = shown.Life, shown.Version(), kindOf(shown.Template.Task.Payload), shown.Phase == schedule.Paused
	}
	switch in.op {
	case cellPut:
		out.life = call.made.life
	case cellTrigger:
		out.kind = call.made.kind
	}
	var e *problem.Error
	switch {
	case err == nil:
	case !errors.As(err, &e):
		p.Errorf("%s of %s: %v", cellOps[in.op], name, err)
	case e.Kind == problem.Unknown:
		out.unsure, out.run = true, call.made.run
	default:
		out.refused, out.version, out.run = e.Reason, e.Version, e.ID
	}
	for _, made := range call.lost {
		made.unsure = true
		p.by[name].note(client, in, made, from, to)
	}
	out.lost = len(call.lost) > 0
	p.by[name].note(client, in, out, from, to)
}

// TestASchedulesCallsAndRunsAreLinearizable has callers at two nodes, a worker, and owners that change each
// second. Commits take their time, and some of their answers are lost. What each caller was told, what was made
// and what came to the worker is what one operation after the other would have come to.
func TestASchedulesCallsAndRunsAreLinearizable(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, fleet *servicetest.Fleet) {
		a, b := fleet.Nodes["a"], fleet.Nodes["b"]
		createBoth(t, a.Sys)
		p := &cellPlay{T: t, diligent: diligent{runs: map[string]*time.Timer{}, got: map[string]int{}}, by: map[string]*cellHistory{}, acks: map[string]cellAcked{}, acked: map[string]bool{}}
		p.nodes = []*servicetest.Node{a, b}
		for i := range dose(*linearSchedules) {
			p.by[cellName(i)] = &cellHistory{}
		}
		for _, n := range p.nodes {
			n.Store.AroundCommits(p.commit)
		}
		var err error
		if p.sub, err = a.Sys.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w"}, p); err != nil {
			t.Fatal(err)
		}
		if err := p.sub.Grant(10_000); err != nil {
			t.Fatal(err)
		}
		flips := flipOwners(fleet)
		p.callAll(0, callsOfACell)
		p.callAll(callsOfACell, callsOfACell+callsOfItsEnd)
		time.Sleep(10 * time.Second)
		for name := range p.by {
			p.call(0, name, cellIn{op: cellGet})
		}
		close(flips)
		p.stop()
		p.check()
	})
}

// callAll has all callers make their calls from one number to another.
func (p *cellPlay) callAll(from, to int) {
	var callers sync.WaitGroup
	for name := range p.by {
		for client := range cellCallers {
			callers.Go(func() {
				for n := from; n < to; n++ {
					time.Sleep(time.Duration(drawn(1200, name, client, n, "pause")) * time.Millisecond)
					p.call(client, name, p.draw(name, client, n))
				}
			})
		}
	}
	callers.Wait()
}

func (p *cellPlay) check() {
	p.Helper()
	model, seen := cellModel(), map[string]int{}
	for name, h := range p.by {
		for _, o := range h.ops {
			in, out := o.Input.(cellIn), o.Output.(cellOut)
			seen[fmt.Sprint(cellOps[in.op], " ", out.refused, out.unsure)]++
		}
		if ok, info := porcupine.CheckOperationsVerbose(model, h.ops, 0); ok != porcupine.Ok {
			p.show(name, h.ops, info)
		}
	}
	p.Logf("%v", seen)
}

// show shows the longest order that comes to what was answered, and what finds no place in it.
func (p *cellPlay) show(name string, ops []porcupine.Operation, info porcupine.LinearizationInfo) {
	p.Helper()
	var longest []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	placed := map[int64]bool{}
	for _, o := range longest {
		placed[o.Call] = true
		p.Logf("%s: %3d to %3d by %d: %s", name, o.Call, o.Return, o.ClientId, describeCell(o.Input.(cellIn), o.Output.(cellOut)))
	}
	for _, o := range ops {
		if !placed[o.Call] {
			p.Logf("%s: no place for %3d to %3d by %d: %s", name, o.Call, o.Return, o.ClientId, describeCell(o.Input.(cellIn), o.Output.(cellOut)))
		}
	}
	p.Errorf("no order of what was done to %s comes to what was answered", name)
}
