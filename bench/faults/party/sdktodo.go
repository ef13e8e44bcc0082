package party

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// oddShare is how many of the first attempts return a hostile value, one of so many.
const oddShare = 8

// question is about an attempt.
type question struct {
	Topic, Task string
	Attempt     int
	Token       []byte // of the hold
	Payload     []byte // as the handler has it
	Keyed       bool   // it has an idempotency key
	Name        string // of what a handler does once
}

// todo is what a handler does, in this order.
type todo struct {
	Parts    []string `json:"parts,omitempty"` // each once, the first before it waits
	Millis   int64    `json:"ms,omitempty"`
	Stubborn bool     `json:"stubborn,omitempty"` // it ends well, whatever it is told meanwhile
	Ends     string   `json:"ends,omitempty"`     // see hands.ends
	After    int64    `json:"after_ms,omitempty"` // when it is due again, if it ends so
	Value    uint32   `json:"value"`              // picks a hostile value, for errors
	Odd      bool     `json:"odd,omitempty"`      // and for the result
	Result   []byte   `json:"result,omitempty"`   // else
}

// answer reads a question, and writes what do says to it.
func (s *sdk) answer(w http.ResponseWriter, r *http.Request, do func(*question) (any, error)) {
	var q question
	err := json.NewDecoder(r.Body).Decode(&q)
	var said any
	if err == nil {
		said, err = do(&q)
	}
	if err == nil {
		err = json.NewEncoder(w).Encode(said)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.complain(fmt.Errorf("%s about %s: %w", r.URL.Path, q.Task, err))
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// plan is what the plan has for an attempt.
func (s *sdk) plan(q *question) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.holds[hex.EncodeToString(q.Token)]
	switch {
	case g == nil:
		return nil, errors.New("the handler has a hold that was not delivered")
	case g.todo != nil:
		return nil, errors.New("two handlers have one hold")
	case g.sum != tap.Sum(q.Payload):
		return nil, errors.New("the handler has another payload than was delivered")
	}
	g.todo = s.todoOf(q)
	return g.todo, nil
}

func (s *sdk) todoOf(q *question) *todo {
	f := s.c.Mix.FateOf(s.c.Seed, q.Task)
	dice := plan.Draw(s.c.Seed, hex.EncodeToString(q.Token), "value")
	t := &todo{Value: uint32(dice >> 32), Odd: q.Attempt == 1 && dice%oddShare == 0, Result: fmt.Appendf(nil, "\x00\xff attempt %d of %s", q.Attempt, q.Task)}
	if plan.Cancelled(s.c.Seed, q.Task) {
		t.Millis, t.Stubborn = plan.Stubborn.Milliseconds(), s.stubborn(q.Task)
		return t
	}
	if !q.Keyed {
		t.Parts = plan.Parts(s.c.Seed, q.Task)
	}
	t.Millis, t.Ends = s.takes(q.Topic, q.Task, f).Milliseconds(), s.ends(f, q.Attempt, q.Token)
	switch t.Ends {
	case retries:
		t.After = retryAfter.Milliseconds()
	case releases:
		t.After = releaseFor.Milliseconds()
	}
	return t
}

// did writes down what a handler is about to do once.
func (s *sdk) did(q *question) (any, error) {
	s.log.Append(ledger.Event{Kind: ledger.Ran, Topic: q.Topic, Task: q.Task, Attempt: q.Attempt, Token: hex.EncodeToString(q.Token), Name: q.Name})
	return struct{}{}, nil
}

// Append writes events down, and looks whether the program says what its handlers did.
func (s *sdk) Append(events ...ledger.Event) {
	s.mu.Lock()
	for i := range events {
		s.see(&events[i])
	}
	s.mu.Unlock()
	s.log.Append(events...)
}

// NextCall numbers a call.
func (s *sdk) NextCall() uint64 { return s.log.NextCall() }

// see complains of what a handler did not say: an attempt that was told to fail and is acked, or
// one that is acked with another result, or given up for good. One that is interrupted may fail
// otherwise than it was told to. mu is held.
func (s *sdk) see(e *ledger.Event) {
	g := s.holds[e.Token]
	switch {
	case e.Kind == ledger.Delivered && g == nil:
		s.holds[e.Token] = &grasp{sum: e.Sum}
	case e.Kind != ledger.Call || e.Op != ledger.Ack && !e.Final:
	case g == nil || g.todo == nil:
		s.complain(lie(e, "no handler had it"))
	case e.Final && g.Ends != failsForGood:
		s.complain(lie(e, "the handler did not fail for good"))
	case e.Op == ledger.Ack && g.Ends != "":
		s.complain(lie(e, "the handler failed"))
	case e.Op == ledger.Ack && !g.Odd && e.Output != tap.Sum(g.Result):
		s.complain(lie(e, "the handler had another result"))
	}
}

func lie(e *ledger.Event, why string) error {
	return fmt.Errorf("%s of hold %s of %s: %s", e.Op, e.Token, e.Task, why)
}

// complain has the process fail in the end, with the first that is wrong. mu is held.
func (s *sdk) complain(err error) {
	if s.err == nil {
		s.err = err
	}
}
