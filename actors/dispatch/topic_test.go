package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// topicScene is a topic, and what it asked the store for and was not answered.
type topicScene struct {
	*Topic
	asked     []Reservation
	acquiring []*Ticket
}

// TestTopic runs the scenarios of testdata/topic. Tasks are written as for TestLimiter;
// moments are in milliseconds. Each step ends with a check of what always holds.
func TestTopic(t *testing.T) {
	datadriven.Walk(t, "testdata/topic", func(t *testing.T, path string) {
		s := &topicScene{Topic: NewTopic("t")}
		s.Shards([]bool{true, true})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.step(t, d)
			if fault := s.Check(); fault != "" {
				t.Errorf("%s: %s", d.Pos, fault)
			}
			return s.describe()
		})
	})
}

// topicArgs are the arguments of a step.
type topicArgs struct {
	at, n, shard, first, late, took, room int
	sub                                   int64
	nodes                                 int
	key, node, lacks                      string
}

func (a *topicArgs) scan(t *testing.T, d *datadriven.TestData) {
	for name, to := range map[string]any{
		"at": &a.at, "n": &a.n, "shard": &a.shard, "first": &a.first, "late": &a.late, "took": &a.took, "room": &a.room,
		"sub": &a.sub, "key": &a.key, "node": &a.node, "lacks": &a.lacks, "nodes": &a.nodes,
	} {
		d.MaybeScanArgs(t, name, to)
	}
}

func (s *topicScene) step(t *testing.T, d *datadriven.TestData) {
	var a topicArgs
	a.scan(t, d)
	now := at(a.at)
	switch d.Cmd {
	case "limits":
		s.Configure(now, 10, scenarioLimits(t, d))
	case "subscribe":
		s.Subscribe(now, &Subscription{ID: a.sub, MaxInFlight: a.n, OnDemand: d.HasArg("on-demand"), Visibility: time.Minute})
	case "unsubscribe":
		s.Unsubscribe(a.sub)
	case "grant":
		s.Grant(now, a.sub, a.n)
	case "ready":
		s.Ready(now, a.shard, gateTasks(d.Input))
	case "held":
		s.Held(now, a.shard, Outcome{Held: a.n, Late: a.late, Took: time.Duration(a.took) * time.Millisecond})
	case "unassign":
		s.Unassign(now, Address{Sub: a.sub, Shard: a.shard}, a.n)
	case "refund":
		s.Refund(now, a.sub, a.n)
	case "settled":
		s.Settled(now, a.sub, a.n)
	case "link":
		s.Link(now, a.sub, a.node, true)
	case "demand":
		s.Demand(now, a.node, a.n)
	case "drop":
		s.Drop(now, a.shard)
	case "shard-ended":
		s.ShardEnded(now, a.shard)
	case "retire": // shard 1
		s.Shards([]bool{true, false})
	case "pause", "resume":
		s.Pause(now, d.Cmd == "pause")
	case "ramp": // for so long from 0 on, on one node or several
		s.Pace(now, &store.Topic{Resumed: 1, Ramp: time.Duration(a.n) * time.Millisecond}, max(1, a.nodes))
	case "tick":
		s.Tick(now, s.armed)
	default:
		s.answer(t, d, &a)
	}
}

// answer is a step in which the store answers.
func (s *topicScene) answer(t *testing.T, d *datadriven.TestData, a *topicArgs) {
	now := at(a.at)
	switch d.Cmd {
	case "tokens": // n for the first reservation, none for the others, or there are some at first
		asked, got := s.asked, make([]store.Tokens, len(s.asked))
		for i := range got {
			got[i] = store.Tokens{Now: now, First: at(a.first)}
		}
		got[0].N = a.n
		s.asked = nil
		s.Tokens(now, asked, got, d.HasArg("failed"))
	case "permits": // the first n tasks that were asked for get one
		all := make([]Acquired, len(s.acquiring))
		for i, ticket := range s.acquiring {
			all[i] = Acquired{Ticket: ticket, Room: a.room, Lacks: a.lacks}
			if i < a.n {
				all[i].Permit = &Permit{Until: store.Millis(now.UnixMilli()) + 100_000}
			}
		}
		s.acquiring = nil
		s.Permits(now, all)
	case "free":
		s.Freed(now, []string{a.key}, nil)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

// scenarioLimits reads rate and key-rate, a second each, with a burst or as windows, and cap
// and key-cap.
func scenarioLimits(t *testing.T, d *datadriven.TestData) (l store.TopicLimits) {
	var rate, keyRate int
	burst := 1
	d.MaybeScanArgs(t, "rate", &rate)
	d.MaybeScanArgs(t, "key-rate", &keyRate)
	d.MaybeScanArgs(t, "burst", &burst)
	d.MaybeScanArgs(t, "cap", &l.Concurrency)
	d.MaybeScanArgs(t, "key-cap", &l.KeyConcurrency)
	if rate > 0 {
		l.Rate = store.Rate{Count: rate, Period: time.Second, Burst: burst}
	}
	if keyRate > 0 {
		l.KeyRate = store.Rate{Count: keyRate, Period: time.Second, Burst: burst}
	}
	if d.HasArg("window") {
		l.Rate.Kind, l.KeyRate.Kind = store.SlidingWindow, store.SlidingWindow
	}
	return l
}

// describe carries out the effects, as the actor does.
func (s *topicScene) describe() string {
	var b strings.Builder
	fx := s.Effects()
	for _, h := range fx.Hold {
		for i, task := range h.Tasks {
			fmt.Fprintf(&b, "%s/%d -> w%d", task.ID, h.Shard, h.Sub)
			if h.Admissions != nil && h.Admissions[i] != nil {
				fmt.Fprintf(&b, " before %d", h.Admissions[i].before)
			}
			b.WriteString("\n")
		}
	}
	if len(fx.Free) > 0 {
		fmt.Fprintf(&b, "frees %d permits\n", len(fx.Free))
	}
	for _, r := range fx.Reserve {
		fmt.Fprintf(&b, "asks for %d tokens of %q\n", r.Asked.N, r.Asked.Key.Key)
	}
	s.asked = append(s.asked, fx.Reserve...)
	for _, ticket := range fx.Acquire {
		fmt.Fprintf(&b, "asks for permits of %s for w%d\n", ticket.ID, ticket.Sub())
	}
	s.acquiring = append(s.acquiring, fx.Acquire...)
	for _, key := range fx.Resign {
		fmt.Fprintf(&b, "resigns %q\n", key.Key)
	}
	for _, a := range fx.Ask {
		fmt.Fprintf(&b, "%s is asked for %d -> w%d\n", a.Node, a.N, a.Sub)
	}
	for _, v := range fx.Void {
		fmt.Fprintf(&b, "%d void of w%d\n", v.N, v.Sub)
	}
	for _, at := range fx.WakeAt {
		fmt.Fprintf(&b, "ticks at %d\n", at.UnixMilli())
	}
	g := s.Gauges()
	fmt.Fprintf(&b, "ready=%d waiting=%d+%d unheld=%d", g.Ready, g.WaitForToken, g.WaitForPermit, s.Unheld())
	for _, a := range s.Accounts() {
		fmt.Fprintf(&b, " w%d(credit=%d in-flight=%d)", a.ID, a.Credit, a.InFlight)
	}
	return b.String() + "\n"
}
