package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// limiterScene is a limiter, and what it asked for and was not answered.
type limiterScene struct {
	*limiter
	now       time.Time
	asked     []Reservation
	acquiring []*Ticket
}

// at is a moment of a scenario, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(ms)).UTC() }

// TestLimiter runs the scenarios of testdata/limiter. Tasks are written id, id/rate-key or
// id//concurrency-key, and come in that order; moments are in milliseconds.
func TestLimiter(t *testing.T) {
	datadriven.Walk(t, "testdata/limiter", func(t *testing.T, path string) {
		s := &limiterScene{limiter: newLimiter("t")}
		s.every = 10
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.step(t, d)
		})
	})
}

func (s *limiterScene) step(t *testing.T, d *datadriven.TestData) string {
	var ms, n, first, burst, most, keyMost, namespace, keyRate, room int
	var key, id string
	d.MaybeScanArgs(t, "at", &ms)
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "first", &first)
	d.MaybeScanArgs(t, "burst", &burst)
	d.MaybeScanArgs(t, "cap", &most)
	d.MaybeScanArgs(t, "key-cap", &keyMost)
	d.MaybeScanArgs(t, "namespace", &namespace)
	d.MaybeScanArgs(t, "key-rate", &keyRate)
	d.MaybeScanArgs(t, "room", &room)
	d.MaybeScanArgs(t, "key", &key)
	d.MaybeScanArgs(t, "lacks", &id)
	for _, of := range []*string{&key, &id} {
		if *of == "namespace" {
			*of = store.NamespaceCap
		}
	}
	now := at(ms)
	s.now = now
	switch d.Cmd {
	case "limits": // n a second
		l := store.TopicLimits{Concurrency: most, KeyConcurrency: keyMost, Namespace: namespace, DeadLetter: d.HasArg("dead-letter")}
		if n > 0 {
			l.Rate = store.Rate{Count: n, Period: time.Second, Burst: max(1, burst)}
		}
		if keyRate > 0 {
			l.KeyRate = store.Rate{Count: keyRate, Period: time.Second, Burst: max(1, burst)}
		}
		s.configure(l)
	case "assign":
		s.admit(now, assignment{Sub: 1, Tasks: gateTasks(d.Input)})
	case "tokens":
		got := make([]store.Tokens, len(s.asked))
		got[0] = store.Tokens{N: n, Now: now, First: at(first)}
		asked := s.asked
		s.asked = nil
		s.reserved(now, asked, got, d.HasArg("failed"))
	case "permits": // the first n that were asked for get one
		all := make([]Acquired, len(s.acquiring))
		for i, ticket := range s.acquiring {
			all[i] = Acquired{Ticket: ticket, Room: room, Lacks: id}
			if i < n {
				all[i].Permit = &Permit{Until: 1}
			}
		}
		s.acquiring = nil
		if unused := s.acquired(now, all); len(unused) > 0 {
			return "unused\n" + s.describe()
		}
	case "free":
		for range max(1, n) {
			s.freed(now, key, !d.HasArg("others-turn"))
		}
	case "tick":
		s.service(now)
	case "clock-set":
		s.clockSet(now)
	case "drop":
		s.drop(0, now)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return s.describe()
}

func gateTasks(input string) (tasks []store.Entry) {
	for i, field := range strings.Fields(input) {
		id, keys, keyed := strings.Cut(field, "/")
		e := store.Entry{ID: id, Due: store.Millis(i)}
		if keyed {
			rate, concurrency, _ := strings.Cut(keys, "/")
			e.Traits = &store.Traits{RateKey: rate, ConcurrencyKey: concurrency}
		}
		tasks = append(tasks, e)
	}
	return tasks
}

// describe takes what the limiter decided, as the topic does.
func (s *limiterScene) describe() string {
	var b strings.Builder
	for _, p := range s.passed {
		fmt.Fprintf(&b, "%s passes", p.Task.ID)
		if !p.before.IsZero() {
			fmt.Fprintf(&b, " before %d", p.before.UnixMilli())
		}
		if p.doomed {
			b.WriteString(" to be dead-lettered")
		}
		b.WriteString("\n")
	}
	for _, r := range s.reservations(s.now, nil, vacancy{}) {
		s.asked = append(s.asked, r)
		fmt.Fprintf(&b, "asks for %d tokens up to %v ahead\n", r.Asked.N, r.Asked.Ahead)
	}
	for _, ticket := range s.ask {
		s.acquiring = append(s.acquiring, ticket)
		fmt.Fprintf(&b, "asks for permits of %s\n", ticket.ID)
	}
	for _, key := range s.resign {
		fmt.Fprintf(&b, "resigns %q\n", key.Key)
	}
	for _, r := range s.ready {
		fmt.Fprintf(&b, "%s is ready again\n", r.ID)
	}
	s.passed, s.ask, s.resign, s.limiter.ready = nil, nil, nil, nil
	if n := s.refunds[Address{Sub: 1}]; n > 0 {
		fmt.Fprintf(&b, "refund %d\n", n)
		delete(s.refunds, Address{Sub: 1})
	}
	fmt.Fprintf(&b, "tickets=%d", len(s.tickets))
	if next := s.wakeAt(); !next.IsZero() {
		fmt.Fprintf(&b, " wake=%d", next.UnixMilli())
	}
	return b.String() + "\n"
}
