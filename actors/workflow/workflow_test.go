package workflow

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// TestWorkflow runs the scenarios of testdata. Times are of 1 June 2030, UTC. A unit is called
// by its name, and a copy step#2.
func TestWorkflow(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what a property left behind
		}
		x := &scenario{cells: newBench(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.T, x.TestData = t, d
			return x.run()
		})
	})
}

const day = "2030-06-01T"

// scenario is a workflow in the hands of a keeper that does what is decided.
type scenario struct {
	*testing.T
	*datadriven.TestData

	cells *bench
	w     *Workflow
	wake  store.Millis
	at    store.Millis
	tasks map[string]string       // name of the unit -> id of the task that is open
	sent  map[string]store.Parcel // by the ids of tasks: those that went to other topics
}

func (x *scenario) run() string {
	if x.HasArg("at") {
		x.at = x.time("at")
	}
	switch x.Cmd {
	case "submit":
		return x.submit()
	case "wake":
		return x.apply(nil)
	case "sleep": // until the workflow wakes by itself
		if x.wake == 0 {
			return "sleeps for ever\n"
		}
		x.at = x.wake
		return clock(x.at) + "\n" + x.apply(nil)
	case "all-done": // the copies of a step that are open
		var events []Event
		for name := range x.tasks {
			if graph.StepOf(name) == x.CmdArgs[0].Key {
				events = append(events, x.event("done", []string{name, x.CmdArgs[1].String()}, ""))
			}
		}
		return x.apply(events)
	case "bad-growth":
		g := graph.Growth{Steps: x.steps(x.Input), Suspend: x.HasArg("suspend")}
		if x.HasArg("again") {
			g.Again = new([]byte)
		}
		if err := g.CheckGrowth(); err != nil {
			return fmt.Sprintf("%s: %s\n", err.Reason, err.Message)
		}
		return "taken\n"
	case "batch": // several events in one commit
		var events []Event
		for line := range strings.Lines(x.Input) {
			words := strings.Fields(line)
			events = append(events, x.event(words[0], words[1:], ""))
		}
		return x.apply(events)
	}
	words := []string{}
	for _, a := range x.CmdArgs {
		if a.Key != "at" && a.Key != "brief" {
			words = append(words, a.String())
		}
	}
	return x.apply([]Event{x.event(x.Cmd, words, x.Input)})
}

func (x *scenario) submit() string {
	d := graph.Definition{Name: "test", Steps: x.steps(x.Input), Undo: x.HasArg("undo")}
	for _, a := range x.CmdArgs {
		switch a.Key {
		case "failure":
			d.Failure = map[string]graph.Failure{"finish": graph.FinishRunning, "cancel": graph.CancelRunning, "carry-on": graph.CarryOn}[a.Vals[0]]
		case "timeout":
			d.Timeout = x.span(a.Vals[0])
		case "retention":
			d.Retention = x.span(a.Vals[0])
		case "input":
			d.Input = []byte(a.Vals[0])
		case "result-of":
			d.ResultOf = a.Vals[0]
		}
	}
	if err := d.Check(); err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	x.tasks, x.sent = make(map[string]string), make(map[string]store.Parcel)
	if err := d.In("t").CheckSize("t", "w"); err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	w, out := Submit("w", 7, d.In("t"), Env{Now: x.at, Topic: "t"})
	x.cells.cells = make(map[store.CellID]store.Cell)
	x.w = nil
	return x.took(w, &out)
}

// apply has events happen, and says what came of them.
func (x *scenario) apply(events []Event) string {
	before := fmt.Sprintf("%+v", *x.w)
	w, out, err := Apply(x.w, events, Env{Now: x.at, Topic: "t"})
	if after := fmt.Sprintf("%+v", *x.w); after != before {
		x.Fatalf(x.T, "the step changed the workflow before it:\n%s\n%s", before, after)
	}
	if err != nil {
		return fmt.Sprintf("%s: %s\n", err.Reason, err.Message)
	}
	return x.took(w, &out)
}

func (x *scenario) took(w *Workflow, out *Effects) string {
	before := x.w
	c := x.cells.commit(w, out, x.at)
	x.w, x.wake = w, out.Wake
	if !out.Gone {
		x.w = x.cells.read(w)
		if err := lives(x.w, out); err != nil {
			x.Fatalf(x.T, "%s", err)
		}
	}
	return x.told(before, out, &c)
}

func (x *scenario) told(before *Workflow, out *Effects, c *store.Commit) string {
	var b strings.Builder
	for i, m := range out.Make {
		name := x.w.of().unitNamed(m.Unit)
		x.tasks[name] = m.ID
		x.tasks[fmt.Sprintf("%s@%d", name, x.w.Units[m.Unit].Try)] = m.ID
		if _, there := x.tasks[name+"@first"]; !there {
			x.tasks[name+"@first"] = m.ID
		}
		if x.HasArg("brief") && i > 0 && i < len(out.Make)-1 {
			continue
		}
		verb := "make"
		if m.Undo {
			verb = "undo"
		}
		fmt.Fprintf(&b, "%s %s%s%s\n", verb, name, inTopic(m.Topic), x.inputsOf(c, m.TaskRef))
	}
	for _, begin := range out.Begin {
		name := x.w.of().unitNamed(begin.Unit)
		x.tasks[name] = begin.Task
		x.tasks[fmt.Sprintf("%s@%d", name, x.w.Units[begin.Unit].Try)] = begin.Task
		x.sendChild(c, &begin)
		fmt.Fprintf(&b, "begin %s as %s%s\n", name, begin.ID, inTopic(begin.Topic))
	}
	if x.HasArg("brief") && len(out.Ask) > 0 {
		fmt.Fprintf(&b, "ask %d\n", len(out.Ask))
		out.Ask = nil
	}
	for _, t := range out.Withdraw {
		for name, task := range x.tasks {
			if task == t.ID && !strings.Contains(name, "@") {
				fmt.Fprintf(&b, "delete %s if it is pending\n", name)
			}
		}
	}
	for _, asked := range out.Ask {
		for name, task := range x.tasks {
			if task == asked.ID && !strings.Contains(name, "@") {
				fmt.Fprintf(&b, "ask %s%s\n", name, inTopic(asked.Topic))
			}
		}
	}
	for _, o := range out.Orders {
		fmt.Fprintf(&b, "%s %s%s\n", [...]string{"", "end", "pause", "resume"}[o.What], o.ID, inTopic(o.Topic))
	}
	if out.Gone {
		return b.String() + "gone\n"
	}
	if !x.HasArg("brief") {
		b.WriteString(changes(before, x.w))
	}
	x.tellState(&b, out)
	return b.String()
}

func (x *scenario) tellState(b *strings.Builder, out *Effects) {
	b.WriteString(x.w.State().String())
	if x.w.Cause != CauseNone {
		fmt.Fprintf(b, " %s", x.w.Cause)
	}
	if x.w.Failed != "" {
		fmt.Fprintf(b, " of %s", x.w.Failed)
	}
	if r := x.w.result(); r.Size > 0 {
		fmt.Fprintf(b, " result %s", r.Bytes)
	}
	if out.More {
		b.WriteString(", more")
	}
	if out.Wake != 0 {
		fmt.Fprintf(b, ", wake %s", clock(out.Wake))
	}
	b.WriteByte('\n')
}

func inTopic(topic string) string {
	if topic == "" {
		return ""
	}
	return " in " + topic
}

// tasksOf are those of a commit that are made in the shard of the workflow, and those that go to
// other topics.
func (x *scenario) tasksOf(c *store.Commit) (tasks []*store.Task) {
	tasks = append(tasks, c.Adds...)
	for i := range c.Send {
		if p := &c.Send[i]; message.HasTask(p) {
			t, err := message.Task(p, "")
			if err != nil || t.Tells != "ht/w" || t.StepOf.Topic != "t" || p.To.Key() != t.ID {
				x.Fatalf(x.T, "sent %+v, %v", t, err)
			}
			x.sent[t.ID] = *p
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// sendChild remembers the parcel of a child that goes to another topic.
func (x *scenario) sendChild(c *store.Commit, begin *Begin) {
	for _, p := range c.Send {
		if message.Begins(&p) && p.To.Key() == begin.ID && p.Topic == begin.Topic {
			x.sent[begin.Task] = p
		}
	}
	if _, there := x.sent[begin.Task]; there != (begin.Topic != "") {
		x.Fatalf(x.T, "child %s in topic %q goes there by parcel: %t", begin.ID, begin.Topic, there)
	}
}

// inputsOf is what a task is told of those before it.
func (x *scenario) inputsOf(c *store.Commit, m TaskRef) string {
	for _, t := range x.tasksOf(c) {
		if t.ID != m.ID || t.StepOf == nil {
			continue
		}
		if there := slices.Contains(c.Adds, t); there != (m.Topic == "") {
			x.Fatalf(x.T, "task %s in topic %q is added here: %t", m.ID, m.Topic, there)
		}
		out := ""
		if t.StepOf.Input != nil {
			out += " input=" + string(t.StepOf.Input)
		}
		for _, e := range t.StepOf.Journal {
			out += fmt.Sprintf(" journal=%.10s", e.Value)
		}
		for _, in := range t.StepOf.Inputs {
			end := [...]string{"", "done", "failed", "cancelled", "skipped"}[in.End]
			out += fmt.Sprintf(" %s:%s", graph.UnitName(in.Step, in.Copy), end)
			if in.Error != "" && !slices.Contains(whyNames[:], in.Error) {
				out += "(" + in.Error + ")"
			}
			switch {
			case in.Size > 0 && t.StepOf.Cut:
				out += fmt.Sprintf("(%d bytes)", in.Size)
			case in.Size > 40:
				out += fmt.Sprintf("=%d bytes", len(in.Result))
			case in.Size > 0:
				out += "=" + string(in.Result)
			}
		}
		if t.StepOf.Cut {
			out += " cut"
		}
		return out
	}
	return ""
}

// changes are the units that are in another state than before.
func changes(before, after *Workflow) string {
	var b strings.Builder
	was := make(map[string]Unit)
	if before != nil {
		for unit := range before.Units {
			was[before.of().unitNamed(unit)] = before.Units[unit]
		}
	}
	for unit := range after.Units {
		name, u := after.of().unitNamed(unit), &after.Units[unit]
		old, there := was[name]
		if there && old.State == u.State && old.Try == u.Try && old.Asked == u.Asked && old.Suspended == u.Suspended {
			continue
		}
		fmt.Fprintf(&b, "  %s %s", name, u.State)
		if u.Try > 1 {
			fmt.Fprintf(&b, " try %d", u.Try)
		}
		if u.Asked && u.State == UnitMade {
			b.WriteString(" asked")
		}
		if u.Suspended {
			b.WriteString(" suspended")
		}
		if u.Why != WhyNone {
			fmt.Fprintf(&b, " (%s", u.Why)
			if u.WhyStep != "" {
				fmt.Fprintf(&b, ": %s", u.WhyStep)
			}
			b.WriteByte(')')
		}
		b.WriteByte('\n')
	}
	for unit := 0; before != nil && unit < len(before.Units); unit++ {
		if name := before.of().unitNamed(unit); findUnit(after, name) < 0 {
			fmt.Fprintf(&b, "  %s gone\n", name)
		}
	}
	return b.String()
}

func findUnit(w *Workflow, name string) int {
	for unit := range w.Units {
		if w.of().unitNamed(unit) == name {
			return unit
		}
	}
	return -1
}

func (x *scenario) event(cmd string, words []string, input string) Event {
	names := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(word, "=") })
	name := ""
	if len(names) > 0 {
		name = names[0]
	}
	switch cmd {
	case "refused", "taken-back": // what lies in the out-box, by the relay
		p := x.sent[x.task(name)]
		c, isStep := Refused(&p, "NO_TOPIC: no topic", x.at)
		if cmd == "taken-back" {
			c, isStep = TakenBack(&p, &store.Parcel{Number: 9}, x.at)
		}
		if !isStep || c.Send[0].To != CellID("w") || c.Send[0].Topic != "" {
			x.Fatalf(x.T, "%+v of the out-box is instead %+v, %t", p, c, isStep)
		}
		return Told(&c.Send[0])
	}
	e := x.eventOf(cmd, name, names, words, input)
	end, ended := e.(Ended)
	if p := x.sent[end.Task]; !ended || p.Topic == "" {
		return e
	} else if message.HasTask(&p) {
		return x.home(end)
	}
	p, err := end.parcel("t", "w", nil)
	if err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	return Told(&p)
}

// home is the end of a task in another topic when it comes home.
func (x *scenario) home(e Ended) Event {
	told := store.Ended{ID: e.Task, Kind: store.ChangeDone, Error: e.Error, Result: e.Result, Started: e.Begun}
	if e.Growth != nil {
		told.Say, _ = e.Growth.Encode()
	}
	switch {
	case e.Why == WhyDeleted:
		told.Kind = store.ChangeDeleted
	case e.Why == WhyExpired:
		told.Kind, told.Reason = store.ChangeDead, store.ReasonExpired
	case e.Outcome == UnitFailed:
		told.Kind, told.Reason = store.ChangeDead, store.ReasonMaxRetries
	}
	p, ok, err := Home(&store.Parcel{At: e.At, To: "ht/w", Ended: &told})
	if err != nil || !ok || p.Topic != "t" || p.To != CellID("w") {
		x.Fatalf(x.T, "an end goes home as %+v, %t, %v", p, ok, err)
	}
	return Told(&store.Parcel{To: p.To, Body: p.Body})
}

func (x *scenario) eventOf(cmd, name string, names, words []string, input string) Event {
	arg := func(key string) string {
		for _, word := range words {
			if v, ok := strings.CutPrefix(word, key+"="); ok {
				return v
			}
		}
		return ""
	}
	switch cmd {
	case "done":
		if names := arg("grow"); names != "" {
			input = strings.ReplaceAll(names, ",", "\n")
		}
		e := Ended{Task: x.task(name), Outcome: UnitDone, At: x.at, Result: x.bytes(arg("result"))}
		if input != "" || arg("leave-out") != "" || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "again=") }) {
			e.Growth = x.growth(input, arg("leave-out"), words)
			if v := arg("journal"); v != "" {
				e.Growth.Carry([]store.JournalEntry{{Name: "n", Value: x.bytes(v)}})
			}
		}
		return e
	case "failed":
		return Ended{Task: x.task(name), Outcome: UnitFailed, Why: WhyDead, At: x.at, Error: arg("error")}
	case "deleted":
		return Ended{Task: x.task(name), Outcome: UnitFailed, Why: WhyDeleted, At: x.at}
	case "expired":
		return Ended{Task: x.task(name), Outcome: UnitFailed, Why: WhyExpired, At: x.at}
	case "signal":
		return Signal{Name: name, Payload: x.bytes(arg("payload")), ID: arg("id"), At: x.at}
	case "cancel":
		return Cancel{}
	case "pause":
		return Pause{By: "ada"}
	case "resume":
		return Resume{}
	case "retry":
		return Retry{Steps: names, From: arg("from")}
	case "delete":
		return Delete{}
	case "skip":
		n, _ := strconv.Atoi(arg("copy"))
		return Skip{Step: name, Copy: n, Result: x.bytes(arg("result"))}
	}
	x.Fatalf(x.T, "unknown command %s", cmd)
	return nil
}

func (x *scenario) growth(input, leaveOut string, words []string) *graph.Growth {
	g := &graph.Growth{Steps: x.steps(input), Suspend: slices.Contains(words, "suspend")}
	if leaveOut != "" {
		g.Skip = strings.Split(leaveOut, ",")
	}
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "again="); ok {
			b := []byte(v)
			g.Again = &b
		}
	}
	if err := g.CheckGrowth(); err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	return g
}

// task is the id of the last task of a unit; that of an earlier try is called a@1.
func (x *scenario) task(name string) string {
	id, there := x.tasks[name]
	if !there {
		x.Fatalf(x.T, "no task of %q was made", name)
	}
	return id
}

// bytes are those of a text, or as many as it says: 300K.
func (x *scenario) bytes(text string) []byte {
	if n, err := strconv.Atoi(strings.TrimSuffix(text, "K")); err == nil && strings.HasSuffix(text, "K") {
		return []byte(strings.Repeat("x", n<<10))
	}
	if text == "" {
		return nil
	}
	return []byte(text)
}

// steps reads lines such as: b after=a,c:failed need=1 copies=3
func (x *scenario) steps(input string) (steps []graph.Step) {
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s := graph.Step{Name: words[0]}
		for _, word := range words[1:] {
			key, v, _ := strings.Cut(word, "=")
			x.set(&s, key, v)
		}
		if s.Wait == nil && s.Child == nil && s.Task == nil {
			s.Task = &graph.Template{Task: store.Task{MaxRetries: -1}}
		}
		steps = append(steps, s)
	}
	return steps
}

func (x *scenario) set(s *graph.Step, key, v string) {
	n, _ := strconv.Atoi(v)
	wait := func() *graph.Wait {
		if s.Wait == nil {
			s.Wait = &graph.Wait{}
		}
		return s.Wait
	}
	switch key {
	case "after":
		for _, name := range strings.Split(v, ",") {
			name, grown := strings.CutSuffix(name, ":grown")
			name, on, _ := strings.Cut(name, ":")
			a := graph.After{Step: name, On: map[string]graph.On{"failed": graph.OnFailed, "ended": graph.OnEnded}[on], Grown: grown}
			s.After = append(s.After, a)
		}
	case "need":
		s.Need = n
	case "cancel-rest":
		s.CancelRest = true
	case "copies":
		s.Copies = &n
	case "at-a-time":
		s.AtATime = n
	case "ignore":
		s.IgnoreFailure = true
	case "topic":
		s.Task = &graph.Template{Topic: v, Task: store.Task{MaxRetries: -1}}
	case "undo": // in a topic
		s.Undo = &graph.Template{Topic: v, Task: store.Task{MaxRetries: -1}}
	case "input":
		s.Input = true
	case "delay":
		wait().Delay = x.span(v)
	case "until":
		wait().Until = x.clockTime(v)
	case "signal":
		wait().Signal = v
	case "timeout":
		wait().Timeout = x.span(v)
	case "otherwise":
		wait().Otherwise = []byte(v)
	case "child": // in a topic
		s.Child = &graph.Child{Topic: v, Definition: graph.Definition{Steps: []graph.Step{{Name: "x", Task: &graph.Template{}}}}}
	default:
		x.Fatalf(x.T, "unknown word %s", key)
	}
}

func (x *scenario) span(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	return d
}

func (x *scenario) time(key string) store.Millis {
	var v string
	x.ScanArgs(x.T, key, &v)
	return x.clockTime(v)
}

func (x *scenario) clockTime(v string) store.Millis {
	at, err := time.Parse(time.RFC3339, day+v+"Z")
	if err != nil {
		x.Fatalf(x.T, "%s", err)
	}
	return store.Millis(at.UnixMilli())
}

func clock(m store.Millis) string {
	if text := m.Time().Format(time.RFC3339); strings.HasPrefix(text, day) {
		return strings.TrimSuffix(strings.TrimPrefix(text, day), "Z")
	}
	return m.Time().Format("2006-01-02 15:04:05")
}

// lives says what is wrong with a workflow that is open and has no cause to go on.
func lives(w *Workflow, out *Effects) error {
	if !w.Phase.Open() || w.IsPaused || out.Wake != 0 {
		return nil
	}
	if slices.ContainsFunc(w.Units, func(u Unit) bool { return u.State == UnitMade || u.State == UnitUndoing }) {
		return nil
	}
	return fmt.Errorf("workflow %s is %s and nothing is open: %+v", w.ID, w.State(), w.Units)
}

// bench is the cells of a workflow, as a store would have them.
type bench struct {
	t     testing.TB
	cells map[store.CellID]store.Cell
}

func newBench(t testing.TB) *bench {
	return &bench{t: t, cells: make(map[store.CellID]store.Cell)}
}

// commit puts what a step comes to, and returns the commit.
func (b *bench) commit(w *Workflow, out *Effects, now store.Millis) store.Commit {
	var before *Stored
	if c, there := b.cells[CellID(w.ID)]; there {
		before, _ = b.open(c)
	}
	values := make(Values)
	for _, part := range Wants(w, out) {
		values[part] = b.cells[w.PartID(part)].Body
	}
	c, err := Commit(before, w, out, Context{Topic: &store.Topic{Name: "t"}, Now: now, Values: values})
	if err != nil {
		b.t.Fatal(err)
	}
	if len(c.Puts)+len(c.Adds)+len(c.Removes)+len(c.Cancels)+len(c.Send) > store.MaxPieces {
		b.t.Fatalf("a commit of %d puts and %d adds", len(c.Puts), len(c.Adds))
	}
	for _, put := range c.Puts {
		old := b.cells[put.ID]
		if put.If != store.AnyVersion && put.If != old.Version {
			b.t.Fatalf("cell %q is at version %d, not %d", put.ID, old.Version, put.If)
		}
		if len(put.Body) > store.MaxCell {
			b.t.Fatalf("cell %q has %d bytes", put.ID, len(put.Body))
		}
		if put.Version = put.Next(old.Version); put.Version == 0 {
			delete(b.cells, put.ID)
			continue
		}
		b.cells[put.ID] = put.Cell
	}
	if out.Gone && len(b.cells) > 0 {
		b.t.Fatalf("%d cells are left of a workflow that is gone", len(b.cells))
	}
	if before != nil && !out.Gone {
		b.remembered(After(before, w, &c, 0))
	}
	return c
}

// remembered compares what is remembered of a commit with what is stored by it.
func (b *bench) remembered(s *Stored) {
	header := b.cells[s.Cell.ID]
	if !s.Is(header, 0) || s.Is(header, 1) {
		b.t.Fatalf("of version %d %d is remembered", header.Version, s.Cell.Version)
	}
	another, later := header, header
	if another.Body = append(bytes.Clone(header.Body), 0); s.Is(another, 0) {
		b.t.Fatal("another workflow at its version is taken for the one that is remembered")
	}
	if later.Version++; s.Is(later, 0) {
		b.t.Fatal("another version is taken for the one that is remembered")
	}
	for n := 1; n <= max(pages(len(s.w.Units)), len(s.old)); n++ {
		id := s.w.partID(pagePart, int64(n))
		if stored := b.cells[id]; !bytes.Equal(stored.Body, s.old[id]) {
			b.t.Fatalf("page %d is %x, and remembered as %x", n, stored.Body, s.old[id])
		}
	}
}

func (b *bench) open(c store.Cell) (*Stored, *Workflow) {
	s, err := Read(c)
	if err != nil {
		b.t.Fatal(err)
	}
	var cells []store.Cell
	for _, id := range s.Needs(nil) {
		cell, there := b.cells[id]
		if !there {
			b.t.Fatalf("cell %q is not there", id)
		}
		cell.ID = id
		cells = append(cells, cell)
	}
	w, err := s.Fill(cells, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return s, w
}

// read reads a workflow back, which must be as it was written.
func (b *bench) read(w *Workflow) *Workflow {
	_, got := b.open(b.cells[CellID(w.ID)])
	if !reflect.DeepEqual(normal(got), normal(w)) {
		b.t.Fatalf("read back\n%+v\nof\n%+v", normal(got), normal(w))
	}
	for id := range b.cells {
		if kind := id.Kind(); kind == valuePart[0] || kind == growthPart[0] {
			if !referred(w, id) {
				b.t.Fatalf("nothing refers to cell %q", id)
			}
		}
	}
	return got
}

func referred(w *Workflow, id store.CellID) bool {
	values := []Value{w.Input}
	if w.Again != nil {
		values = append(values, *w.Again)
	}
	for _, u := range w.Units {
		values = append(values, u.Value, u.Journal)
	}
	for _, k := range w.Kept {
		values = append(values, k.Value)
	}
	for _, d := range w.Trash {
		if w.dropID(d) == id {
			return true
		}
	}
	for _, g := range w.Grown {
		if w.partID(growthPart, g.Part) == id {
			return true
		}
	}
	return slices.ContainsFunc(values, func(v Value) bool { return v.Part != 0 && w.PartID(v.Part) == id })
}

// normal is a workflow as text, in which no bytes and none at all are the same.
func normal(w *Workflow) string {
	c := *w
	c.plan = nil
	def, _ := w.Def.Encode()
	c.Def = nil
	again := ""
	if w.Again != nil {
		again = fmt.Sprintf("%+v", *w.Again)
	}
	c.Again = nil
	grown := ""
	for _, g := range w.Grown {
		grown += fmt.Sprintf("%s %d %d %x;", g.Parent, g.Part, g.Size, graph.EncodeSteps(g.Steps))
	}
	c.Grown = nil
	parent := ""
	if w.Parent != nil {
		parent = fmt.Sprintf("%+v", *w.Parent)
	}
	c.Parent = nil
	return fmt.Sprintf("%+v %x %s %s %s", c, def, again, grown, parent)
}
