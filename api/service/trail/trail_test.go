package trail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// fakeLog has a line for each second that it lists, the oldest first. A line is one byte long.
type fakeLog struct {
	seconds []int64
	none    bool
	look    int // lines that are looked at for a page; 0: as many as are asked for
	only    int64
	err     error
	hang    bool
}

func (l *fakeLog) Read(q fleet.AuditQuery) (p fleet.AuditPage, err error) {
	if l.err != nil || l.none {
		return fleet.AuditPage{None: l.none}, l.err
	}
	end := int64(len(l.seconds))
	if q.Until > end {
		return p, problem.AsError(store.ErrBadCursor)
	}
	if q.Until > 0 {
		end = q.Until
	}
	p = fleet.AuditPage{End: end, Next: end, Reached: time.Unix(1<<30, 0)}
	for p.Next > 0 && len(p.Lines) < q.Most && (l.look == 0 || int(end-p.Next) < l.look) {
		p.Next--
		p.Reached = time.Unix(l.seconds[p.Next], 0)
		if l.only == 0 || l.seconds[p.Next] == l.only {
			p.Lines = append(p.Lines, fleet.AuditLine{Text: []byte("x"), At: p.Next, Time: p.Reached})
		}
	}
	return p, nil
}

func (l *fakeLog) Check(context.Context) fleet.AuditChain {
	if l.none {
		return fleet.AuditChain{State: fleet.AuditNone}
	}
	return fleet.AuditChain{State: fleet.AuditWhole, Records: int64(len(l.seconds))}
}

// fakeFleet are nodes by name; a is the one that is asked.
type fakeFleet struct {
	fleet.Peers
	logs map[string]*fakeLog
}

func (f *fakeFleet) trail() *Trail {
	return &Trail{"a", f.members, func() fleet.Peers { return f }, f.logs["a"]}
}

func (f *fakeFleet) members() (all []fleet.Member) {
	for name := range f.logs {
		all = append(all, fleet.Member{Name: name})
	}
	slices.SortFunc(all, func(a, b fleet.Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (f *fakeFleet) Audit(ctx context.Context, to fleet.Member, q fleet.AuditQuery) (fleet.AuditPage, error) {
	if f.logs[to.Name].hang {
		<-ctx.Done()
		return fleet.AuditPage{}, ctx.Err()
	}
	return f.logs[to.Name].Read(q)
}

func (f *fakeFleet) VerifyAudit(ctx context.Context, to fleet.Member) (fleet.AuditChain, error) {
	if f.logs[to.Name].hang {
		<-ctx.Done()
		return fleet.AuditChain{}, ctx.Err()
	}
	return f.logs[to.Name].Check(ctx), f.logs[to.Name].err
}

func text(lines []Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprint(l.Node, l.Time.Unix()))
	}
	return strings.Join(all, " ")
}

// walk lists all, by pages of a size, and fails where there is no end.
func walk(t *testing.T, f *fakeFleet, size int) (lines []Line) {
	t.Helper()
	token := ""
	for range 100 {
		p, err := f.trail().List(t.Context(), fleet.AuditFilter{}, size, token)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Lines) > size {
			t.Fatalf("a page of %d has %d lines", size, len(p.Lines))
		}
		lines = append(lines, p.Lines...)
		if token = p.Next; token == "" {
			return lines
		}
	}
	t.Fatal("there is no end of pages")
	return nil
}

func TestTheLogsOfAllNodesAreOne(t *testing.T) {
	f := &fakeFleet{logs: map[string]*fakeLog{
		"a": {seconds: []int64{1, 4, 9, 12}}, "b": {seconds: []int64{2, 3, 10}}, "c": {seconds: []int64{5, 6, 7, 8, 11}}, "d": {},
	}}
	const all = "a12 c11 b10 a9 c8 c7 c6 c5 a4 b3 b2 a1"
	for size := 1; size < 15; size++ {
		for _, look := range []int{0, 1, 3} {
			f.logs["c"].look = look
			if got := text(walk(t, f, size)); got != all {
				t.Errorf("by pages of %d, where c looks at %d lines: %s", size, look, got)
			}
		}
	}
	// What matches is far behind, in lines of which a part is looked at each time.
	f.logs["c"].look, f.logs["c"].only = 1, 5
	if got := text(walk(t, f, 3)); got != "a12 b10 a9 c5 a4 b3 b2 a1" {
		t.Errorf("of c the last one: %s", got)
	}
}

// TestAClockThatWasSetBackHidesNothing: the records of a node stay in its order.
func TestAClockThatWasSetBackHidesNothing(t *testing.T) {
	f := &fakeFleet{logs: map[string]*fakeLog{"a": {seconds: []int64{1, 9, 3, 4}}, "b": {seconds: []int64{2, 5}}}}
	for size := 1; size < 8; size++ {
		if got := text(walk(t, f, size)); got != "b5 a4 a3 a9 b2 a1" {
			t.Errorf("by pages of %d: %s", size, got)
		}
	}
}

func TestANodeThatIsSilentIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{logs: map[string]*fakeLog{"a": {seconds: []int64{1, 2, 3}}, "b": {seconds: []int64{1, 4}, hang: true}, "c": {err: errors.New("away")}, "d": {none: true}}}
		first, err := f.trail().List(t.Context(), fleet.AuditFilter{}, 2, "")
		if err != nil || text(first.Lines) != "a3 a2" || fmt.Sprint(first.Silent, first.None) != "[b c] [d]" || first.Next == "" {
			t.Fatalf("%+v, %v", first, err)
		}
		f.logs["b"].hang = false // it is back, and its newest come late
		delete(f.logs, "c")      // it is no member any more
		second, err := f.trail().List(t.Context(), fleet.AuditFilter{}, 2, first.Next)
		if err != nil || text(second.Lines) != "b4 a1" || fmt.Sprint(second.Silent) != "[c]" {
			t.Fatalf("%+v, %v", second, err)
		}
		third, err := f.trail().List(t.Context(), fleet.AuditFilter{}, 2, second.Next)
		if err != nil || text(third.Lines) != "b1" || fmt.Sprint(third.Silent) != "[c]" || third.Next != "" {
			t.Fatalf("%+v, %v", third, err)
		}
		f.logs["b"].hang = true
		if walked := walk(t, f, 1); text(walked) != "a3 a2 a1" { // and that is the end, though b is silent
			t.Errorf("%s", text(walked))
		}
	})
}

func TestATokenOfSomethingElseIsRefused(t *testing.T) {
	f := &fakeFleet{logs: map[string]*fakeLog{"a": {seconds: []int64{1, 2, 3}}, "b": {seconds: []int64{1}}}}
	for _, token := range []string{"x", tokenOf(nil), tokenOf([]position{{"a", -1}}), tokenOf([]position{{"a", 1}, {"a", 2}}), tokenOf([]position{{"", 2}}), tokenOf([]position{{"a", 9}}), tokenOf([]position{{"b", 9}})} {
		var e *problem.Error
		if _, err := f.trail().List(t.Context(), fleet.AuditFilter{}, 2, token); !errors.As(err, &e) || e.Reason != "BAD_CURSOR" {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestEachChainIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{logs: map[string]*fakeLog{"a": {seconds: []int64{1}}, "b": {none: true}, "c": {err: errors.New("away")}, "d": {hang: true}}}
		var got []string
		for _, c := range f.trail().Verify(t.Context()) {
			got = append(got, fmt.Sprint(c.Node, " ", c.State, " ", c.Records, " ", c.Fault))
		}
		want := []string{"a 1 1 ", "b 4 0 ", "c 5 0 away", "d 5 0 context deadline exceeded"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// A token that is understood is written as it was read.
func FuzzToken(f *testing.F) {
	f.Add(tokenOf([]position{{"a", 7}, {"b", 0}}))
	f.Fuzz(func(t *testing.T, token string) {
		if all, ok := readPositions(token); ok {
			if again, ok := readPositions(tokenOf(all)); !ok || !slices.Equal(all, again) {
				t.Errorf("%q: %v became %v", token, all, again)
			}
		}
	})
}
