package storm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/checker"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// Report is what came of a storm.
type Report struct {
	Schema     int     `json:"schema"`
	Store      string  `json:"store"`
	Seed       uint64  `json:"seed"`
	Tasks      int     `json:"tasks"`
	Edits      int     `json:"edits"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"edits_per_s"`
	Deliveries int     `json:"deliveries"`
	// Answers by what was asked for, and by what it came to: see the names of answers.
	Answers map[ledger.Op]map[string]int `json:"answers"`
	// Close is how many edits were answered within a millisecond of a delivery of
	// their task being received.
	Close      int                       `json:"close"`
	Unclear    int                       `json:"neither"` // neither changed, delivered nor gone
	Violations map[verdict.Violation]int `json:"violations"`
	Offences   []verdict.Offence         `json:"offences,omitempty"`
}

// together is how many tasks are put before the checker at a time.
const together = 5000

// judge puts every task before the checker.
func (s *storm) judge(took time.Duration) *Report {
	r := &Report{
		Schema: 1, Seed: s.Seed, Tasks: s.Tasks, Edits: s.Edits, Seconds: took.Seconds(), PerSecond: float64(s.Edits) / took.Seconds(),
		Answers: map[ledger.Op]map[string]int{}, Violations: map[verdict.Violation]int{},
	}
	end := s.since()
	for from := 0; from < s.Tasks; from += together {
		events := []ledger.Event{s.event(0, ledger.Event{Kind: ledger.Topic, HoldMS: hold.Milliseconds()})}
		for i := from; i < min(from+together, s.Tasks); i++ {
			events = append(events, s.books[i].tell(s.clockOf, name(i), s.NextCall)...)
			r.count(&s.books[i])
		}
		events = append(events, s.event(end, ledger.Event{Kind: ledger.Audited}))
		v := checker.Check(checker.New([][]ledger.Event{events}), checker.Rules{})
		r.Deliveries += v.Deliveries
		for kind, n := range v.Counts {
			r.Violations[kind] += n
		}
		r.Offences = append(r.Offences, v.Offences...)
	}
	return r
}

// count adds the answers that a task had.
func (r *Report) count(b *book) {
	for i := range b.edits {
		e := &b.edits[i]
		if r.Answers[e.op.ledger()] == nil {
			r.Answers[e.op.ledger()] = map[string]int{}
		}
		r.Answers[e.op.ledger()][e.answer.String()]++
		if e.answer == unclear {
			r.Unclear++
		}
		for k := range b.hands {
			if h := &b.hands[k]; h.Kind == ledger.Delivered && h.Mono > int64(e.from-time.Millisecond) && h.Mono < int64(e.to+time.Millisecond) {
				r.Close++
				break
			}
		}
	}
}

// Err says what was not as promised, nil when all was.
func (r *Report) Err() error {
	switch {
	case len(r.Offences) > 0:
		return fmt.Errorf("%d edits or deliveries do not agree: %v", len(r.Offences), r.Violations)
	case r.Unclear > 0:
		return fmt.Errorf("%d answers are neither changed, already delivered nor gone", r.Unclear)
	case r.Deliveries == 0:
		return errors.New("nothing was delivered")
	}
	return nil
}

// write prints the report, as a table or json.
func (r *Report) write(w io.Writer, output string) error {
	if output == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	head := table.Row{"edit"}
	for a := range answers {
		head = append(head, a.String())
	}
	t.AppendHeader(head)
	for o := range ops {
		row := table.Row{string(o.ledger())}
		for a := range answers {
			row = append(row, r.Answers[o.ledger()][a.String()])
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintf(w, "%d edits of %d tasks on %s in %.1f s, %.0f/s; %d deliveries; %d edits within a millisecond of one; %d do not agree\n%s\n",
		r.Edits, r.Tasks, r.Store, r.Seconds, r.PerSecond, r.Deliveries, r.Close, len(r.Offences), t.Render())
	return err
}
