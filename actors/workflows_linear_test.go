package actors_test

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

var linearWorkflows = flag.Int("workflows.linear", 100, "workflows whose calls are checked to be linearizable")

// linearOp is what a caller or a worker does to a workflow.
type linearOp uint8

const (
	opSubmit linearOp = iota
	opSignal
	opCancel
	opRetry
	opGet
	opDeliver // a worker gets the task
	opAck
	opNack // for good
)

var linearOps = [...]string{"submit", "signal", "cancel", "retry", "get", "deliver", "ack", "nack"}

// linearIn is an operation; Try is the task's, of those of a worker.
type linearIn struct {
	op  linearOp
	try int
}

// linearOut is what it came to: the state of the workflow in the answer, or why it was refused.
type linearOut struct {
	state   workflow.State // 0: the answer has none
	there   bool           // of submit: it was there before
	refused string
	unsure  bool // the answer does not say what was done
}

// linearState is a workflow of a wait for a signal and a task behind it.
type linearState struct {
	state     workflow.State // 0: there is none
	signalled bool
	work      linearWork
	try       int // of the task
}

// linearWork is what became of the task.
type linearWork uint8

const (
	noTask linearWork = iota
	made
	acked
	nacked
)

// followers are the states that a workflow may have come to by itself: ends are told, and what follows
// from them is decided a little later.
func (s linearState) followers() (all []linearState) {
	all = append(all, s)
	for i := 0; i < len(all); i++ {
		next := all[i]
		switch {
		case next.state == workflow.Running && next.signalled && next.work == noTask:
			next.work = made
			next.try++
		case next.state == workflow.Running && next.work == acked:
			next.state = workflow.Done
		case next.state == workflow.Running && next.work == nacked:
			next.state = workflow.Failed
		case next.state == workflow.Cancelling && next.work != made:
			next.state = workflow.Cancelled
		default:
			continue
		}
		all = append(all, next)
	}
	return all
}

// linearModel says what one operation after the other may come to.
func linearModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{linearState{}} },
		Step: func(state, input, output any) (all []any) {
			for _, s := range state.(linearState).followers() {
				in, out := input.(linearIn), output.(linearOut)
				if out.unsure {
					all = append(all, s)
					out = linearOut{}
				}
				for _, next := range s.after(in, out) {
					all = append(all, next)
				}
			}
			return all
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%s %d: %+v", linearOps[input.(linearIn).op], input.(linearIn).try, output)
		},
	}
	return m.ToModel()
}

// after are the states that an operation may lead to; none: it cannot have come to that.
func (s linearState) after(in linearIn, out linearOut) []linearState {
	switch {
	case s.state == 0 && in.op != opSubmit:
		return s.when(out.refused == refusal.NoWorkflow)
	case out.refused != "":
		return s.when(s.refuses(in.op))
	}
	switch in.op {
	case opSubmit:
		if s.state == 0 && !out.there {
			return []linearState{{state: workflow.Running}}
		}
		return s.when(s.state != 0 && out.there && out.state == s.state)
	case opSignal:
		s.signalled = true
		return s.when(s.state.Open())
	case opCancel:
		return s.cancelled(out)
	case opRetry:
		return s.retried()
	case opGet:
		return s.when(out.state == s.state)
	case opDeliver:
		return s.when(s.work == made && in.try == s.try)
	}
	if s.work != made || in.try != s.try {
		return nil
	}
	if s.work = acked; in.op == opNack {
		s.work = nacked
	}
	return []linearState{s}
}

// cancelled is what a cancel leads to: the end at once, unless a worker has the task.
func (s linearState) cancelled(out linearOut) []linearState {
	if !s.state.Open() || out.state == workflow.Cancelling && s.work == noTask {
		return nil
	}
	if s.state = out.state; s.state == workflow.Cancelled {
		s.work = noTask // it is deleted, and never comes
	}
	return s.when(s.state == workflow.Cancelling || s.state == workflow.Cancelled)
}

// retried is what a retry leads to: the task is made anew that failed or was cancelled, or the wait.
func (s linearState) retried() []linearState {
	again := linearState{state: workflow.Running, try: s.try}
	switch {
	case s.state == workflow.Cancelled && !s.signalled:
	case s.state == workflow.Failed, s.state == workflow.Cancelled && s.work != acked:
		again.signalled, again.work, again.try = true, made, s.try+1
	default:
		return nil
	}
	return []linearState{again}
}

// refuses reports whether an operation of a caller may be refused.
func (s linearState) refuses(op linearOp) bool {
	switch op {
	case opSignal, opCancel:
		return !s.state.Open()
	case opRetry:
		return s.state != workflow.Failed
	}
	return false
}

// when is s, if it can be.
func (s linearState) when(can bool) []linearState {
	if can {
		return []linearState{s}
	}
	return nil
}

// linearCallers are as many as call each workflow, and then there is the worker.
const linearCallers, workerClient = 4, 4

// linearHistory is what was done to one workflow, in the order of a clock that all share.
type linearHistory struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *linearHistory) note(client int, in linearIn, out linearOut, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: from, Return: to})
}

// linearPlay is workflows, those who call, and a worker.
type linearPlay struct {
	diligent
	*testing.T
	flows   []*flows // at each node
	clock   atomic.Int64
	by      map[string]*linearHistory
	settles map[string]linearSettle
}

type linearSettle struct {
	workflow string
	in       linearIn
	from     int64
}

func (p *linearPlay) Deliver(ds []subscription.Delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ds {
		of := d.Task.StepOf
		p.by[of.Workflow].note(workerClient, linearIn{opDeliver, int(of.Try)}, linearOut{}, p.clock.Add(1), p.clock.Add(1))
		s := subscription.Settlement{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}
		in := linearIn{opAck, int(of.Try)}
		if drawn(2, d.Task.ID) == 0 {
			s.Kind, s.Permanent, s.Error, in.op = subscription.SettleNack, true, "no", opNack
		}
		p.runs[d.Task.ID] = time.AfterFunc(time.Duration(drawn(1500, d.Task.ID, "takes"))*time.Millisecond, func() {
			p.mu.Lock()
			p.settles[s.ID+string(s.Token)] = linearSettle{of.Workflow, in, p.clock.Add(1)}
			p.mu.Unlock()
			p.sub.Settle(1, []subscription.Settlement{s})
		})
	}
	return true
}

func (p *linearPlay) Settled(_ uint64, results []subscription.Settled) {
	_ = p.sub.Grant(len(results))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range results {
		if s, there := p.settles[r.ID+string(r.Token)]; there {
			delete(p.settles, r.ID+string(r.Token))
			p.by[s.workflow].note(workerClient, s.in, linearOut{unsure: r.Err != nil}, s.from, p.clock.Add(1))
		}
	}
}

// call has a caller do something to a workflow, and notes what it came to.
func (p *linearPlay) call(client int, id string, op linearOp) {
	f := p.flows[client%len(p.flows)]
	var status workflow.Status
	var there bool
	from := p.clock.Add(1)
	err := func() (err error) {
		switch op {
		case opSubmit:
			wait := graph.Step{Name: "ok", Wait: &graph.Wait{Signal: "ok"}}
			got, e := f.Submit(f.Context(), f.topic, id, &graph.Definition{Retention: time.Hour, Steps: []graph.Step{wait, taskStep("a", "ok")}})
			status, there, err = got.Status, got.Deduplicated, e
		case opSignal:
			err = f.Signal(f.Context(), f.topic, id, workflow.Signal{Name: "ok"})
		case opCancel:
			status, err = f.Change(f.Context(), f.topic, id, workflow.Cancel{})
		case opRetry:
			status, err = f.Change(f.Context(), f.topic, id, workflow.Retry{})
		default:
			status, _, err = f.Get(f.Context(), f.topic, id, false, false)
		}
		return err
	}()
	out := linearOut{state: status.State, there: there}
	var e *refusal.Error
	switch {
	case errors.As(err, &e) && !errors.Is(err, store.ErrUnknown):
		out.refused = e.Reason
	case err != nil:
		p.Errorf("%s of %s: %v", linearOps[op], id, err)
	}
	p.by[id].note(client, linearIn{op: op}, out, from, p.clock.Add(1))
}

// TestCallsOfAWorkflowAreLinearizable has callers at two nodes, a worker, and owners that change each
// second: what each of them was told is what one operation after the other would have come to.
func TestCallsOfAWorkflowAreLinearizable(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, fleet *servicetest.Fleet) {
		a := fleet.Nodes["a"].Sys
		createBoth(t, a)
		p := &linearPlay{T: t, diligent: diligent{runs: map[string]*time.Timer{}}, by: map[string]*linearHistory{}, settles: map[string]linearSettle{}}
		p.flows = []*flows{flowsOf(t, a.Node()), flowsOf(t, fleet.Nodes["b"].Sys.Node())}
		for i := range dose(*linearWorkflows) {
			p.by[fmt.Sprint("w", i)] = &linearHistory{}
		}
		p.start(a)
		flips := flipOwners(fleet)
		var callers sync.WaitGroup
		for i := range dose(*linearWorkflows) {
			id := fmt.Sprint("w", i)
			for client := range linearCallers {
				callers.Go(func() {
					for n := range 8 {
						time.Sleep(time.Duration(drawn(1200, id, client, n, "pause")) * time.Millisecond)
						p.call(client, id, []linearOp{opSubmit, opSubmit, opSignal, opGet, opGet, opRetry, opGet, opCancel}[drawn(6+n/3, id, client, n)])
					}
				})
			}
		}
		callers.Wait()
		time.Sleep(10 * time.Second)
		close(flips)
		p.stop()
		p.check()
	})
}

func (p *linearPlay) start(s *service.Service) {
	p.Helper()
	var err error
	if p.sub, err = s.Delivery.Subscribe(p.Context(), subscription.Options{Topic: "mail", Worker: "w"}, p); err != nil {
		p.Fatal(err)
	}
	if err := p.sub.Grant(10_000); err != nil {
		p.Fatal(err)
	}
}

func (p *linearPlay) check() {
	p.Helper()
	model, seen := linearModel(), map[string]int{}
	for id, h := range p.by {
		for _, o := range h.ops {
			out := o.Output.(linearOut)
			seen[fmt.Sprint(linearOps[o.Input.(linearIn).op], " ", out.state, " ", out.refused)]++
		}
		if !porcupine.CheckOperations(model, h.ops) {
			for _, o := range h.ops {
				p.Logf("%s: %3d to %3d by %d: %s", id, o.Call, o.Return, o.ClientId, model.DescribeOperation(o.Input, o.Output))
			}
			p.Errorf("no order of what was done to %s comes to what was answered", id)
		}
	}
	p.Logf("%v", seen)
}
