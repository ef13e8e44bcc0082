package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The sequential model of one task: what it allows, the checker must not complain
// of, and what it forbids in these small histories, the checker must find.

// modelState is a task.
type modelState struct {
	stored  bool
	gone    bool // acked or deleted
	attempt int  // of the last hold
	held    bool
	until   int64 // when the hold runs out, ms
	due     int64
	version int64
}

// modelInput is one operation, at a moment between its call and its return.
type modelInput struct {
	op      ledger.Op // Enqueue, Delete, Update, Ack, Nack, or "" for a delivery
	attempt int
	version int64 // that a delivery shows, or that an edit was answered with
	at      int64 // when it was asked for; of a delivery, when it was received
	due     int64
}

// modelHold is how long a hold lasts, ms.
const modelHold = 1000

func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return modelState{} },
		Step: func(state, input, output any) (bool, any) {
			return step1(state.(modelState), input.(modelInput), output.(ledger.Result))
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// step1 is the only place that says what a task does.
func step1(s modelState, in modelInput, out ledger.Result) (bool, any) {
	ok := out == ledger.OK
	switch in.op {
	case ledger.Enqueue:
		return ok && !s.stored, modelState{stored: true, due: in.due, version: 1}
	case ledger.Delete:
		can := s.stored && !s.gone && !s.held
		if can && ok {
			s.gone = true
		}
		return can == ok, s
	case ledger.Update:
		can := s.stored && !s.gone && !s.held
		if can && ok {
			s.version++
			return s.version == in.version, s
		}
		return can == ok, s
	case ledger.Ack, ledger.Nack:
		can := s.stored && !s.gone && s.held && s.attempt == in.attempt
		if can && ok {
			s.held, s.gone = false, in.op == ledger.Ack
		}
		return can == ok, s
	case "":
		free := !s.held || in.at >= s.until
		if !s.stored || s.gone || !free || in.at < s.due || in.attempt != s.attempt+1 || in.version != s.version {
			return false, s
		}
		s.held, s.attempt, s.until = true, in.attempt, in.at+modelHold
		return true, s
	}
	return false, s
}

// randomHistory plays a task as a right server would, with one answer or delivery in
// two histories changed into another.
func randomHistory(r *rand.Rand) (*tape, []porcupine.Operation) {
	p, ops := &tape{}, []porcupine.Operation{}
	note := func(in modelInput, out ledger.Result, from, to int64) {
		ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: in, Output: out, Call: from, Return: to})
	}
	state := modelState{}
	apply := func(in modelInput) ledger.Result {
		for _, out := range []ledger.Result{ledger.OK, ledger.Refused} {
			if legal, next := step1(state, in, out); legal {
				state = next.(modelState)
				return out
			}
		}
		return ledger.Refused
	}
	spoil := -1
	n := 4 + r.IntN(7)
	if r.IntN(2) == 0 {
		spoil = 1 + r.IntN(n)
	}
	due := int64(100)
	apply(modelInput{op: ledger.Enqueue, due: due})
	p.at(0).enqueue(due, ledger.OK)
	note(modelInput{op: ledger.Enqueue, due: due}, ledger.OK, 0, 1)
	now := int64(50 + 100*r.IntN(2))
	for i := 1; i <= n; i++ {
		now += int64(3 + r.IntN(1200))
		in := modelInput{at: now, attempt: state.attempt, version: state.version}
		switch r.IntN(6) {
		case 0:
			in.op = ledger.Delete
		case 1:
			in.op = ledger.Ack
		case 2:
			in.op = ledger.Nack
		case 3:
			in.op, in.version = ledger.Update, state.version+1
		default:
			in.attempt = state.attempt + 1
		}
		if (in.op == ledger.Ack || in.op == ledger.Nack) && in.attempt == 0 {
			continue
		}
		before := state
		out := apply(in)
		if i == spoil {
			state = before
			if in.op == "" && out == ledger.OK && r.IntN(2) == 0 && state.version > 1 {
				in.version-- // as it was before the last edit
			} else {
				out = map[ledger.Result]ledger.Result{ledger.OK: ledger.Refused, ledger.Refused: ledger.OK}[out]
			}
			if out == ledger.OK || in.op == "" {
				out = ledger.OK
				state.attempt = max(state.attempt, in.attempt)
			}
		}
		token := fmt.Sprint("h", in.attempt)
		switch {
		case in.op == "" && out != ledger.OK:
			continue // nothing was delivered
		case in.op == "":
			// Due just now, so that there is no doubt about when the hold began.
			p.at(now).put(ledger.Event{Kind: ledger.Delivered, Attempt: in.attempt, Token: token, HoldMS: modelHold, Due: epoch + now, Sum: "s", Version: in.version})
			note(in, ledger.OK, now, now)
		case in.op == ledger.Delete || in.op == ledger.Update:
			reason := ledger.Running
			if state.gone {
				reason = ledger.NoTask
			}
			p.at(now).call(ledger.Event{Op: in.op}, out, reason, func(e *ledger.Event) {
				if in.op == ledger.Update && out == ledger.OK {
					e.Version = in.version
				}
			})
			note(in, out, now, now+1)
		default:
			p.at(now).settle(in.op, token, out)
			note(in, out, now, now+1)
		}
	}
	p.at(now + 2)
	return p, ops
}

// TestCheckerAgreesWithTheModel compares verdicts on histories that are right, and on
// ones that are wrong in one place.
func TestCheckerAgreesWithTheModel(t *testing.T) {
	const histories = 2_000
	r := rand.New(rand.NewPCG(1, 2))
	wrong, found := 0, 0
	for i := range histories {
		p, ops := randomHistory(r)
		legal := porcupine.CheckOperations(model(), ops)
		v := p.verdictUnaudited()
		switch {
		case legal && len(v.Offences) > 0:
			t.Fatalf("history %d is right, and the checker says %s: %s\n%s", i, v.Offences[0].Violation, v.Offences[0].Why, v.Offences[0].Lines())
		case !legal:
			wrong++
			if len(v.Offences) > 0 {
				found++
			}
		}
	}
	// The checker does not complain of a refusal that a hold which nobody received
	// could explain, or one that has run out.
	t.Logf("%d of %d histories are wrong, the checker found %d", wrong, histories, found)
	if wrong < histories/10 || found*10 < wrong*7 {
		t.Errorf("%d of %d histories are wrong, and the checker found only %d", wrong, histories, found)
	}
}

// verdictUnaudited checks the tape without an end.
func (p *tape) verdictUnaudited() *verdict.Verdict {
	p.put(ledger.Event{Kind: ledger.Topic, HoldMS: modelHold})
	return Check(New([][]ledger.Event{p.events}), Rules{})
}
