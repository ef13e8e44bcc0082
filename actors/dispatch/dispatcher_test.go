package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// TestDispatcher runs the scenarios of testdata/dispatcher. Tasks are written id@due, or
// id@due/priority:key*weight, and belong to shard 0 unless the command says otherwise.
func TestDispatcher(t *testing.T) {
	datadriven.Walk(t, "testdata/dispatcher", func(t *testing.T, path string) {
		c := &dispatcher{readyQueue: readyQueue{every: 10}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return scenarioStep(t, c, d)
		})
	})
}

func scenarioStep(t *testing.T, c *dispatcher, d *datadriven.TestData) string {
	var sub int64
	var n, shard int
	var node string
	d.MaybeScanArgs(t, "node", &node)
	d.MaybeScanArgs(t, "sub", &sub)
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "shard", &shard)
	var out []assignment
	var given []int64
	switch d.Cmd {
	case "ageing":
		c.age(n)
	case "count":
		c.count()
	case "subscribe":
		c.subscribe(&Subscription{ID: sub, MaxInFlight: n, OnDemand: d.HasArg("on-demand"), Bytes: scenarioRoom(t, d)})
	case "unsubscribe":
		c.unsubscribe(sub)
	case "grant":
		out = c.grant(sub, n)
	case "sent":
		c.sub(sub).bytes.Landed(n)
		out = c.match()
	case "settled":
		out = c.settled(sub, n)
	case "bound":
		out = c.bound(n)
	case "held":
		out = c.held(shard, n)
	case "unassign":
		out = c.unassign(Address{sub, shard}, n)
	case "shard-ended":
		out = c.shardEnded(shard)
	case "refund":
		out = c.refund(sub, n)
	case "ready":
		out = c.add(shard, scenarioTasks(d.Input))
	case "link":
		out = c.link(sub, node)
	case "unlink":
		out = c.unlink(sub, node, n)
	case "demand":
		out = c.demand(sub, node, n)
	case "reserve":
		given = c.reserve(n)
	case "drop":
		c.Drop(shard)
	case "pause":
		out = c.pause(true)
	case "pace":
		out = c.setPace(n, n)
	case "end-pace":
		out = c.endPace()
	case "resume":
		out = c.pause(false)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return describeCore(c, out, given)
}

// taskRoom is room for so many tasks, each of which takes some until it is sent.
type taskRoom struct{ left int }

func (r *taskRoom) Room() int    { return r.left }
func (r *taskRoom) Take(n int)   { r.left -= n }
func (r *taskRoom) Landed(n int) { r.left += n }

// scenarioRoom is the room of a subscription that names some.
func scenarioRoom(t *testing.T, d *datadriven.TestData) ByteRoom {
	if !d.HasArg("room") {
		return nil
	}
	r := new(taskRoom)
	d.ScanArgs(t, "room", &r.left)
	return r
}

func scenarioTasks(input string) (tasks []store.Entry) {
	for _, field := range strings.Fields(input) {
		var e store.Entry
		id, rest, _ := strings.Cut(field, "@")
		due, traits, laned := strings.Cut(rest, "/")
		fmt.Sscan(due, &e.Due)
		e.ID = id
		if laned {
			e.Traits = scenarioTraits(traits)
		}
		tasks = append(tasks, e)
	}
	return tasks
}

// scenarioTraits reads priority, priority:key or priority:key*weight.
func scenarioTraits(text string) *store.Traits {
	t := new(store.Traits)
	priority, key, _ := strings.Cut(text, ":")
	key, weight, _ := strings.Cut(key, "*")
	fmt.Sscan(priority, &t.Priority)
	fmt.Sscan(weight, &t.FairnessWeight)
	t.FairnessKey = key
	return t
}

func describeCore(c *dispatcher, out []assignment, given []int64) string {
	var b strings.Builder
	for _, a := range out {
		for _, task := range a.Tasks {
			fmt.Fprintf(&b, "%s/%d -> w%d\n", task.ID, a.Shard, a.Sub)
		}
	}
	for _, a := range c.asked {
		fmt.Fprintf(&b, "%s is asked for %d -> w%d\n", a.Node, a.N, a.Sub)
	}
	for _, v := range c.voided {
		fmt.Fprintf(&b, "%d void of w%d\n", v.N, v.Sub)
	}
	c.asked, c.voided = nil, nil
	for _, sub := range given {
		fmt.Fprintf(&b, "reserved w%d\n", sub)
	}
	var ready []string
	for _, q := range append(c.queues(), &c.plain) {
		for _, task := range q.tasks[q.head:] {
			ready = append(ready, task.ID)
		}
	}
	fmt.Fprintf(&b, "ready=%v", ready)
	for _, s := range c.subs {
		fmt.Fprintf(&b, " w%d(credit=%d in-flight=%d)", s.ID, s.Credit, s.InFlight)
	}
	return b.String() + "\n"
}
