package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// topicScene is a topic, and what it asked the store for and was not answered.
type topicScene struct {
	*Topic
	call   *TakeCall
	counts LimitCounts // of all steps
	show   bool        // they are shown from now on
}

// TestTopic runs the scenarios of testdata/topic. Tasks are written id, id/rate-key or
// id//concurrency-key, and are due in that order, or together; moments are in milliseconds. Each step ends with a check of what always holds.
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
	at, n, shard, first, late, took, until, lost int
	sub                                          int64
	nodes                                        int
	key, node, lacks                             string
}

func (a *topicArgs) scan(t *testing.T, d *datadriven.TestData) {
	for name, to := range map[string]any{
		"at": &a.at, "n": &a.n, "shard": &a.shard, "first": &a.first, "late": &a.late, "took": &a.took, "until": &a.until, "lost": &a.lost,
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
		tasks := gateTasks(d.Input)
		for i := range tasks {
			if d.HasArg("together") {
				tasks[i].Due = 0
			}
		}
		s.Ready(now, a.shard, tasks)
	case "held":
		s.Held(now, a.shard, Outcome{Held: a.n, Late: a.late, Took: time.Duration(a.took) * time.Millisecond})
	case "unassign":
		s.Unassign(now, Address{Sub: a.sub, Shard: a.shard}, a.n)
	case "refund":
		s.Refund(now, a.sub, a.n)
	case "settled":
		s.Settled(now, a.sub, a.n)
	case "link":
		s.Link(now, a.sub, a.node)
	case "demand":
		s.Demand(now, a.sub, a.node, a.n)
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
	case "show-counts":
		s.show = true
	case "clock-set":
		s.ClockSet(now)
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
	case "taken": // the first n wants have what they need, at once or later; the others lack something
		call := s.call
		s.call = nil
		reply := &store.TakeReply{Now: now, Lost: a.lost}
		call.Until = store.Millis(a.at) + 100_000
		for i := range call.Wants {
			got := store.Taking{Status: store.Granted, At: at(max(a.at, a.first)), Before: at(max(a.at, a.first) + 500)}
			if i >= a.n {
				got = store.Taking{Status: store.NoToken, Again: at(a.until)}
				got.Lacks = store.Limit{Key: store.LimitKey{Topic: "t", Key: a.key}, Rate: a.lacks == "token"}
				if a.lacks == "permit" {
					got.Status, got.Lacks.Key = store.NoPermit, store.CapKey("t", a.key)
				}
			}
			reply.Wants, call.Holders = append(reply.Wants, got), append(call.Holders, store.Token{0: byte(i + 1)})
		}
		if d.HasArg("failed") {
			s.Taken(now, &Taken{Unknown: d.HasArg("unknown")})
		} else {
			s.Taken(now, &Taken{Reply: reply})
		}
	case "told": // something is there of a cap, or of a rate
		if a.lacks == "token" {
			s.Freed(now, nil, []string{a.key})
		} else {
			s.Freed(now, []string{a.key}, nil)
		}
	case "unused": // n tokens of the topic
		s.Ended(now, nil, slices.Repeat([]*Admission{{receipt: store.TokenReceipt{Topic: store.TokenMark{To: 1}}}}, a.n))
	case "ended": // n holds under the cap of the topic
		s.Ended(now, slices.Repeat([]*Permit{{Keys: []store.LimitKey{store.CapKey("t", a.key)}}}, a.n), nil)
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
	for _, call := range fx.Take {
		s.call = call
		if call.Room > 0 {
			fmt.Fprintf(&b, "asks for what %d of these need:", call.Room)
			for i := range call.tasks {
				fmt.Fprintf(&b, " %s", call.tasks[i].ID)
			}
			b.WriteString("\n")
		}
		if n, m := len(call.Free), len(call.Back); n+m > 0 {
			fmt.Fprintf(&b, "gives back %d permits, %d tokens\n", n, m)
		}
		for _, l := range call.Leave {
			fmt.Fprintf(&b, "leaves the line for %q\n", l.Key.Key)
		}
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
	s.count(&b, &fx.Counts)
	g := s.Gauges()
	fmt.Fprintf(&b, "ready=%d waiting=%d+%d unheld=%d", g.Ready, g.Lack[LackRate]+g.Lack[LackKeyRate], g.Lack[LackCap]+g.Lack[LackKeyCap]+g.Lack[LackNamespaceCap], s.Unheld())
	for _, a := range s.Accounts() {
		fmt.Fprintf(&b, " w%d(credit=%d in-flight=%d)", a.ID, a.Credit, a.InFlight)
	}
	return b.String() + "\n"
}

// count adds what happened under limits, and shows all of it once a scenario asks for it.
func (s *topicScene) count(b *strings.Builder, c *LimitCounts) {
	for i, n := range c.Refused {
		s.counts.Refused[i] += n
	}
	s.counts.Returned += c.Returned
	s.counts.Lost += c.Lost
	if !s.show {
		return
	}
	fmt.Fprintf(b, "refused %v, tokens %d back %d lost, waited %v, lacks %v", s.counts.Refused, s.counts.Returned, s.counts.Lost, c.Waited, s.Gauges().Lack)
	if since := s.Pressing(); !since.IsZero() {
		fmt.Fprintf(b, ", presses since %d", since.UnixMilli())
	}
	b.WriteString("\n")
}

// at is a moment of a scenario, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(ms)).UTC() }

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
