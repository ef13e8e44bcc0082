package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// page reads a page of a log, which must be readable.
func page(t *testing.T, l *Log, q fleet.AuditQuery) fleet.AuditPage {
	t.Helper()
	if q.Most == 0 {
		q.Most, q.Bytes = 1000, 1<<20
	}
	p, err := l.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told are the events of lines, with what the calls are about.
func told(t *testing.T, lines []fleet.AuditLine) string {
	t.Helper()
	var all []string
	for _, line := range lines {
		r, _, err := Decode(line.Text)
		if line.Altered != (err != nil) {
			t.Errorf("altered is %v, and %v", line.Altered, err)
		}
		all = append(all, strings.TrimRight(r.Event+" "+strings.Trim(r.Topic+"/"+r.Name, "/"), " "))
	}
	return strings.Join(all, ", ")
}

// busy is a log of calls, a second apart, from 1001 on in Unix time.
func busy(t *testing.T, requests ...proto.Message) (l *Log, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit")
	l = open(t, path)
	t.Cleanup(func() { _ = l.Close() })
	now := time.Unix(1000, 0)
	l.now = func() time.Time { now = now.Add(time.Second); return now }
	ctx := auth.With(t.Context(), &auth.Principal{Kind: auth.KindToken, Name: "ops", ID: "4rT0mZQkxw"})
	for _, r := range requests {
		method := strings.TrimSuffix(string(r.ProtoReflect().Descriptor().Name()), "Request")
		c := &Call{Method: "/ddq.v1.AdminService/" + method, Request: r}
		asked, err := l.Asked(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		code := "OK"
		if method == "DeleteTopic" {
			code = "NO_TOPIC"
		}
		if err := l.Answered(ctx, asked, c, code); err != nil {
			t.Fatal(err)
		}
	}
	return l, path
}

func TestALogIsReadFromItsEnd(t *testing.T) {
	l, _ := busy(t, &ddqv1.PauseTopicRequest{Name: "mail"}, &ddqv1.DeleteTopicRequest{Name: "sms"},
		&ddqv1.PutScheduleRequest{Schedule: &ddqv1.Schedule{Topic: "report", Name: "nightly"}})
	l.Refused(t.Context(), &Call{Method: "/ddq.v1.AdminService/ListTopics", Request: &ddqv1.DeleteTopicRequest{Name: "mail"}}, "BAD_CREDENTIALS")
	const all = "refused, answered report/nightly, asked report/nightly, answered sms, asked sms, answered mail, asked mail, started"
	if got := told(t, page(t, l, fleet.AuditQuery{}).Lines); got != all {
		t.Errorf("read is %s", got)
	}
	for most := 1; most < 10; most++ {
		var lines []fleet.AuditLine
		for q := (fleet.AuditQuery{Most: most, Bytes: 1 << 20}); ; {
			p := page(t, l, q)
			lines = append(lines, p.Lines...)
			if q.Until = p.Next; p.Next == 0 {
				break
			}
		}
		if got := told(t, lines); got != all {
			t.Errorf("by pages of %d it is %s", most, got)
		}
	}
	if p := page(t, l, fleet.AuditQuery{Most: 100, Bytes: 1}); len(p.Lines) != 1 || p.Next != p.Lines[0].At {
		t.Errorf("a page without room has %d lines", len(p.Lines))
	}
	if p := page(t, nil, fleet.AuditQuery{}); !p.None {
		t.Error("there is a log where there is none")
	}
}

func TestAFilterSaysWhichRecordsAreRead(t *testing.T) {
	l, _ := busy(t, &ddqv1.PauseTopicRequest{Name: "mail"}, &ddqv1.DeleteTopicRequest{Name: "sms"},
		&ddqv1.RequeueDeadLettersRequest{Topic: "mail", Ids: []string{"a", "b"}}, &ddqv1.ReleaseShardRequest{Topic: "mail", Shard: 7})
	for what, c := range map[string]struct {
		filter fleet.AuditFilter
		want   string
	}{
		"nobody":              {fleet.AuditFilter{Caller: "op"}, ""},
		"a name":              {fleet.AuditFilter{Caller: "ops", Method: "PauseTopic"}, "answered mail, asked mail"},
		"kind and name":       {fleet.AuditFilter{Caller: "token:ops", Method: "PauseTopic"}, "answered mail, asked mail"},
		"the id of a token":   {fleet.AuditFilter{Caller: "4rT0mZQkxw", Method: "PauseTopic"}, "answered mail, asked mail"},
		"a whole method":      {fleet.AuditFilter{Method: "/ddq.v1.AdminService/DeleteTopic"}, "answered sms, asked sms"},
		"a part of a method":  {fleet.AuditFilter{Method: "Topic"}, ""},
		"a topic":             {fleet.AuditFilter{Resource: "sms"}, "answered sms, asked sms"},
		"a part of a topic":   {fleet.AuditFilter{Resource: "sm"}, ""},
		"an id of many":       {fleet.AuditFilter{Resource: "b"}, "asked mail"},
		"a field":             {fleet.AuditFilter{Resource: "ids"}, ""},
		"what was done":       {fleet.AuditFilter{Outcome: fleet.AuditDone, Resource: "mail"}, "answered mail, answered mail, answered mail"},
		"what failed":         {fleet.AuditFilter{Outcome: fleet.AuditFailed}, "answered sms"},
		"what was asked for":  {fleet.AuditFilter{Outcome: fleet.AuditAsked, Resource: "sms"}, "asked sms"},
		"nobody turned away":  {fleet.AuditFilter{Outcome: fleet.AuditRefused}, ""},
		"starts":              {fleet.AuditFilter{Outcome: fleet.AuditStarted}, "started"},
		"a range":             {fleet.AuditFilter{From: time.Unix(1002, 0), Before: time.Unix(1004, 0)}, "asked sms, answered mail"},
		"a range with nobody": {fleet.AuditFilter{From: time.Unix(900, 0), Before: time.Unix(1001, 0)}, ""},
	} {
		if got := told(t, page(t, l, fleet.AuditQuery{AuditFilter: c.filter}).Lines); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if p := page(t, l, fleet.AuditQuery{AuditFilter: fleet.AuditFilter{From: time.Unix(1005, 0)}}); p.Next != 0 {
		t.Errorf("what is older than asked for is looked at from %d on", p.Next)
	}
}

// TestAPageReadsABoundedPart: a filter that matches nothing does not read the whole log, and the pages together do.
func TestAPageReadsABoundedPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	var text []byte
	head := Head{}
	for len(text) < 3*mostRead {
		r := &Record{Seq: head.Records + 1, Time: time.Unix(head.Records, 0), Event: Asked, Caller: "token:" + strings.Repeat("x", 4000), Prev: head.Hash}
		line, sum, err := encode(r)
		if err != nil {
			t.Fatal(err)
		}
		text, head = append(text, line...), Head{r.Seq, string(sum)}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	defer l.Close()
	pages, was := 0, int64(len(text))
	for q := (fleet.AuditQuery{AuditFilter: fleet.AuditFilter{Method: "none"}}); ; pages++ {
		p := page(t, l, q)
		if len(p.Lines) != 0 || p.End-p.Next > mostRead+longestLine {
			t.Fatalf("page %d: %d lines, and %d bytes were read", pages, len(p.Lines), p.End-p.Next)
		}
		if q.Until = p.Next; p.Next == 0 {
			break
		}
		if p.Next >= was {
			t.Fatalf("no way on from %d", p.Next)
		}
		was = p.Next
	}
	if pages < 2 {
		t.Errorf("%d pages more", pages)
	}
}

// TestALineThatWasChangedIsShownAsSuch, whatever is asked for, also one that never ends.
func TestALineThatWasChangedIsShownAsSuch(t *testing.T) {
	for what, change := range map[string]func(text string) string{
		"a name":       func(text string) string { return strings.Replace(text, `"name":"sms"`, `"name":"msm"`, 1) },
		"no JSON":      func(text string) string { return strings.Replace(text, `"name":"sms"`, `"name":"sms`, 1) },
		"no end":       func(text string) string { return strings.Repeat("x", 3*longestLine) + "\n" + text },
		"a short file": func(text string) string { return text[:len(text)-10] },
	} {
		l, path := busy(t, &ddqv1.DeleteTopicRequest{Name: "sms"}, &ddqv1.PauseTopicRequest{Name: "mail"})
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		l.size = max(l.size, int64(len(change(string(text)))))
		p := page(t, l, fleet.AuditQuery{AuditFilter: fleet.AuditFilter{Outcome: fleet.AuditStarted}})
		altered := 0
		for _, line := range p.Lines {
			if line.Altered {
				altered++
				if len(line.Text) > mostShown || line.Time.IsZero() {
					t.Errorf("%s: %d bytes at %v", what, len(line.Text), line.Time)
				}
			}
		}
		if altered == 0 {
			t.Errorf("%s: nothing shows", what)
		}
	}
}

func TestAPlaceOfAnotherFileIsNone(t *testing.T) {
	l, _ := busy(t, &ddqv1.PauseTopicRequest{Name: "mail"})
	whole := page(t, l, fleet.AuditQuery{})
	for _, until := range []int64{1, whole.End - 1, whole.End + 1, 1 << 40} {
		_, err := l.Read(fleet.AuditQuery{Until: until, Most: 1, Bytes: 1})
		if e := (*problem.Error)(nil); !errors.As(err, &e) || e.Reason != "BAD_CURSOR" {
			t.Errorf("from %d on: %v", until, err)
		}
	}
}

func TestTheChainIsChecked(t *testing.T) {
	l, path := busy(t, &ddqv1.PauseTopicRequest{Name: "mail"})
	l.now = time.Now
	if got := l.Check(t.Context()); got.State != fleet.AuditWhole || got.Records != 3 || got.Head != l.head.Hash || got.Checked.IsZero() {
		t.Fatalf("a whole log: %+v", got)
	}
	whole := read(t, path)
	lines := slices.Collect(strings.Lines(string(whole)))
	for what, c := range map[string]struct{ text, says string }{
		"a byte is another one": {strings.Replace(string(whole), "mail", "liam", 1), "line 2"},
		"a line was taken out":  {lines[0] + lines[2], "line 2"},
		"the end was cut off":   {lines[0] + lines[1], "its end"},
		"nothing is left":       {"", "its end"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.checks.last = nil // which counts for a while
		if got := l.Check(t.Context()); got.State != fleet.AuditBroken || !strings.Contains(got.Fault, c.says) || got.Head != "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	l.checks.last = nil
	if got := l.Check(t.Context()); got.State != fleet.AuditBroken || !strings.Contains(got.Fault, "moved") {
		t.Errorf("moved away: %+v", got)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	l.checks.last = nil
	if got := l.Check(t.Context()); got.State != fleet.AuditBroken || !strings.Contains(got.Fault, "replaced") {
		t.Errorf("another file at its place: %+v", got)
	}
	if got := (*Log)(nil).Check(t.Context()); got.State != fleet.AuditNone {
		t.Errorf("no log: %+v", got)
	}
}

// TestACheckGoesOnWithoutItsCaller, counts for a while, and ends with the log.
func TestACheckGoesOnWithoutItsCaller(t *testing.T) {
	l, path := busy(t, &ddqv1.PauseTopicRequest{Name: "mail"})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	l.mu.Lock() // which a check needs
	if got := l.Check(gone); got.State != fleet.AuditChecking {
		t.Errorf("while it goes on: %+v", got)
	}
	c := l.checks.last
	l.mu.Unlock()
	<-c.done
	c.took = time.Hour
	if err := os.WriteFile(path, []byte(fmt.Sprintln("x")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.Check(t.Context()); got.State != fleet.AuditWhole {
		t.Errorf("soon after: %+v", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.took = 0
	if got := l.Check(t.Context()); got.State != fleet.AuditUnknown {
		t.Errorf("of a log that is closed: %+v", got)
	}
}
