package wire

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestReadTrace(t *testing.T) {
	members := func(n int) string { return strings.TrimSuffix(strings.Repeat("k=v,", n), ",") }
	long := "long=" + strings.Repeat("x", 100)
	for name, tc := range map[string]struct {
		parent, state string
		kept, of      string // the traceparent and the tracestate that are kept
		cut           bool
	}{
		"none":                       {},
		"a traceparent":              {parent: parent, kept: parent},
		"with a state":               {parent: parent, state: "a@b=1, c=2", kept: parent, of: "a@b=1, c=2"},
		"a state alone":              {state: "a=1", cut: true},
		"not sampled":                {parent: parent[:53] + "00", kept: parent[:53] + "00"},
		"flags that nobody knows":    {parent: parent[:53] + "fe", kept: parent[:53] + "fe"},
		"a later version":            {parent: "01" + parent[2:], kept: parent},
		"one that has more":          {parent: "01" + parent[2:] + "-more", kept: parent},
		"one that goes on":           {parent: "01" + parent[2:] + "0", cut: true},
		"more than this version has": {parent: parent + "-more", cut: true},
		"version ff":                 {parent: "ff" + parent[2:], cut: true},
		"a trace of zeros":           {parent: "00-" + strings.Repeat("0", 32) + parent[35:], cut: true},
		"a span of zeros":            {parent: parent[:36] + strings.Repeat("0", 16) + "-01", cut: true},
		"upper case":                 {parent: strings.ToUpper(parent), cut: true},
		"no hex":                     {parent: parent[:54] + "g", cut: true},
		"too short":                  {parent: parent[:54], cut: true},
		"other separators":           {parent: strings.ReplaceAll(parent, "-", "_"), cut: true},
		"something else":             {parent: "b3", cut: true},
		"32 members":                 {parent: parent, state: members(32), kept: parent, of: members(32)},
		"33 members":                 {parent: parent, state: members(33), kept: parent, cut: true},
		"empty members":              {parent: parent, state: "a=1,,b=2,", kept: parent, of: "a=1,,b=2,"},
		"no member":                  {parent: parent, state: "a", kept: parent, cut: true},
		"no value":                   {parent: parent, state: "a=", kept: parent, cut: true},
		"a key in upper case":        {parent: parent, state: "A=1", kept: parent, cut: true},
		"a control character":        {parent: parent, state: "a=\x01", kept: parent, cut: true},
		"600 bytes":                  {parent: parent, state: strings.Repeat(long+",", 6), kept: parent, of: long + "," + long, cut: true},
		"one member that is long":    {parent: parent, state: "a=" + strings.Repeat("x", 256), kept: parent, cut: true},
	} {
		got, whole := ReadTrace(tc.parent, tc.state)
		text, state := "", ""
		if got != nil {
			text, state = Traceparent(got), got.State
		}
		if text != tc.kept || state != tc.of || whole == tc.cut {
			t.Errorf("%s: kept %q with %q, whole %v", name, text, state, whole)
		}
	}
}

// What is kept is read again as the same.
func FuzzReadTrace(f *testing.F) {
	f.Add(parent, "a=1")
	f.Fuzz(func(t *testing.T, parent, state string) {
		got, _ := ReadTrace(parent, state)
		if got == nil {
			return
		}
		again, whole := ReadTrace(Traceparent(got), got.State)
		if !whole || again == nil || *again != *got || len(got.State) > store.MaxTraceState {
			t.Errorf("%q with %q became %+v and then %+v", parent, state, got, again)
		}
	})
}

// Most tasks have no trace context.
func TestNoTraceAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { ReadTrace("", "") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A context is read into one allocation, or into room, and written as one.
func TestTraceAllocatesOnce(t *testing.T) {
	var room store.Trace
	for name, tc := range map[string]struct {
		most float64
		f    func()
	}{
		"read":           {1, func() { ReadTrace(parent, "") }},
		"read into room": {0, func() { ReadTraceTo(&room, parent, "") }},
		"written":        {1, func() { Traceparent(&room) }},
	} {
		if n := testing.AllocsPerRun(100, tc.f); n > tc.most {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkReadTrace(b *testing.B) {
	var room store.Trace
	for b.Loop() {
		ReadTraceTo(&room, parent, "")
	}
}

func BenchmarkTraceparent(b *testing.B) {
	read, _ := ReadTrace(parent, "")
	for b.Loop() {
		Traceparent(read)
	}
}

func TestIdsOfTracesOfAttempts(t *testing.T) {
	for _, c := range []struct {
		in    string
		want  string
		whole bool
	}{
		{"", "", true}, {"0123456789abcdef", "0123456789abcdef", true}, {"short", "", false}, {"0123456789abcdefg", "", false},
		{strings.Repeat("\x00", 16), "", false},
	} {
		id, whole := ReadTraceID([]byte(c.in))
		if got := string(id.Bytes()); got != c.want || whole != c.whole {
			t.Errorf("%q is read as %q, whole: %v", c.in, got, whole)
		}
	}
	none := []byte(nil)
	if n := testing.AllocsPerRun(100, func() {
		if id, _ := ReadTraceID(none); id.Bytes() != nil {
			t.Error("it is there")
		}
	}); n != 0 {
		t.Errorf("none takes %v allocations", n)
	}
}
