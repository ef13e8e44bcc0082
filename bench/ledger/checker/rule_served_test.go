package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
)

// TestCheckerFindsWhoWaitsThroughAFault has a fault of half a minute that is to hold nobody up.
func TestCheckerFindsWhoWaitsThroughAFault(t *testing.T) {
	fault := func(p *tape, from, to int64) {
		p.at(from).put(ledger.Event{Kind: ledger.Fault, Fault: "cut", Topic: "-", Task: "-"})
		p.at(to).put(ledger.Event{Kind: ledger.Healed, Fault: "cut", Topic: "-", Task: "-"})
	}
	for _, test := range []struct {
		name      string
		due, came int64
		policy    ledger.Event
		serving   []string
		want      bool // it is found
	}{
		{"delivered at once", 2000, 2001, ledger.Event{}, []string{"cut"}, false},
		{"delivered within the patience", 2000, 11_000, ledger.Event{}, []string{"cut"}, false},
		{"delivered once the fault was over", 2000, 31_500, ledger.Event{}, []string{"cut"}, true},
		{"late, but within the fault", 2000, 15_000, ledger.Event{}, []string{"cut"}, true},
		{"due since before the fault", 500, 15_000, ledger.Event{}, []string{"cut"}, true},
		{"due too late to tell", 25_000, 36_000, ledger.Event{}, []string{"cut"}, false},
		{"a quota of all topics may be a reason", 2000, 31_500, ledger.Event{Shared: 5}, []string{"cut"}, false},
		{"so may a rate", 2000, 31_500, ledger.Event{Rate: &ledger.Rate{Count: 1, PeriodMS: 60_000}}, []string{"cut"}, false},
		{"a fault that may hold it up", 2000, 31_500, ledger.Event{}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &tape{}
			test.policy.Kind, test.policy.HoldMS = ledger.Topic, 1000
			p.put(test.policy)
			p.enqueue(test.due, ledger.OK)
			fault(p, 1000, 31_000)
			p.at(test.came).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			v := p.verdict(Rules{Serving: test.serving})
			if found := !v.OK(); found != test.want {
				t.Errorf("found is %v: %s", found, v.Summary())
			}
		})
	}
}
