package audit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, "a", quiet)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written is a log of one call, and one that was refused.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit")
	l := open(t, path)
	ctx := auth.With(t.Context(), &auth.Principal{Kind: auth.KindToken, Name: "ops", ID: "4rT0mZQkxw", Namespace: "acme"})
	c := &Call{Method: "/ddq.v1.AdminService/DeleteTopic", Request: &ddqv1.DeleteTopicRequest{Name: "mail"}}
	asked, err := l.Asked(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Answered(ctx, asked, c, "OK"); err != nil {
		t.Fatal(err)
	}
	l.Refused(ctx, c, "NOT_ALLOWED")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func records(t *testing.T, path string) (all []Record) {
	t.Helper()
	for line := range bytes.Lines(read(t, path)) {
		r, _, err := decode(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestWhatIsWrittenDown(t *testing.T) {
	all := records(t, written(t))
	var events []string
	for _, r := range all {
		events = append(events, r.Event)
	}
	if !slices.Equal(events, []string{Started, Asked, Answered, Refused}) {
		t.Fatal(events)
	}
	if r := all[1]; r.Caller != "token:ops" || r.Namespace != "acme" || r.Token != "4rT0mZQkxw" || r.Node != "a" || string(r.Request) != `{"name":"mail"}` || r.Time.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := all[2]; r.Call != all[1].Seq || r.Code != "OK" || r.Request != nil {
		t.Errorf("%+v", r)
	}
}

// TestEveryChangeIsFound: a byte that is another one, a line that is gone, twice there or elsewhere.
func TestEveryChangeIsFound(t *testing.T) {
	text := read(t, written(t))
	head, err := Verify(bytes.NewReader(text))
	if err != nil || head.Records != 4 {
		t.Fatal(head, err)
	}
	for i := range text {
		changed := slices.Clone(text)
		changed[i] ^= 1
		if _, err := Verify(bytes.NewReader(changed)); !errors.Is(err, ErrBroken) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	lines := slices.Collect(bytes.Lines(text))
	for i := range lines {
		gone := slices.Concat(slices.Delete(slices.Clone(lines), i, i+1)...)
		last := i == len(lines)-1
		if cut, err := Verify(bytes.NewReader(gone)); !last && !errors.Is(err, ErrBroken) || last && (err != nil || cut == head) {
			t.Errorf("line %d taken out: %v, %v", i+1, cut, err)
		}
		twice := slices.Concat(slices.Insert(slices.Clone(lines), i, lines[i])...)
		if _, err := Verify(bytes.NewReader(twice)); !errors.Is(err, ErrBroken) {
			t.Errorf("line %d twice: %v", i+1, err)
		}
	}
	moved := slices.Clone(lines)
	moved[1], moved[2] = moved[2], moved[1]
	if _, err := Verify(bytes.NewReader(slices.Concat(moved...))); !errors.Is(err, ErrBroken) {
		t.Errorf("lines in another order: %v", err)
	}
	long := slices.Concat(text, bytes.Repeat([]byte("x"), longestLine+1), []byte("\n"))
	if cut, err := Verify(bytes.NewReader(long)); !errors.Is(err, ErrBroken) || cut != head {
		t.Errorf("a line without end: %v, %v", cut, err)
	}
}

// TestALogGoesOn: after a start, and after a power cut in the middle of any line.
func TestALogGoesOn(t *testing.T) {
	path := written(t)
	text := read(t, path)
	for end := range len(text) + 1 {
		if err := os.WriteFile(path, text[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(bytes.NewReader(read(t, path))); err != nil {
			t.Fatalf("after byte %d: %v", end, err)
		}
		all := records(t, path)
		torn := end > 0 && text[end-1] != '\n'
		if was := all[max(0, len(all)-2)].Event == Cut; was != torn {
			t.Fatalf("after byte %d: %+v", end, all)
		}
	}
}

func TestALogThatIsBrokenIsNotGoneOnWith(t *testing.T) {
	path := written(t)
	text := read(t, path)
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "a", quiet); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if !bytes.Equal(read(t, path), text) {
		t.Error("it was written to")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "a", quiet); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none", "audit"), "a", quiet); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestNothingIsWrittenAfterAGap: a log that could not be written once is not gone on with.
func TestNothingIsWrittenAfterAGap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	l := open(t, path)
	inner := l.file
	broken, err := os.Open(path) // may not be written
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	l.file = broken
	if _, err := l.Asked(t.Context(), &Call{Method: "m"}); err == nil {
		t.Error("written to a file that may not be")
	}
	l.file = inner
	if _, err := l.Asked(t.Context(), &Call{Method: "m"}); err == nil {
		t.Error("written after a gap")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := records(t, path); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestACallThatWasDoneIsAnsweredAsItWas: a call whose record is written and whose outcome cannot be
// must not look as if it had not been done, or its caller does it again.
func TestACallThatWasDoneIsAnsweredAsItWas(t *testing.T) {
	for _, answer := range []error{nil, errors.New("no such topic")} {
		path := filepath.Join(t.TempDir(), "audit")
		l := open(t, path)
		inner := l.file
		broken, err := os.Open(path) // may not be written
		if err != nil {
			t.Fatal(err)
		}
		defer broken.Close()
		a := Auditor{Log: l, Audited: func(string) bool { return true }, Code: func(error) string { return "code" }}
		done := 0
		unary := func(context.Context, any) (any, error) {
			done, l.file = done+1, broken
			return "reply", answer
		}
		info := &grpc.UnaryServerInfo{FullMethod: "m"}
		if reply, err := a.Unary(t.Context(), nil, info, unary); reply != "reply" || !errors.Is(err, answer) {
			t.Errorf("a call that ends with %v is answered %v, %v", answer, reply, err)
		}
		l.file = inner
		var p *problem.Error
		if reply, err := a.Unary(t.Context(), nil, info, unary); reply != nil || !errors.As(err, &p) || p.Reason != "AUDIT_DOWN" || p.RetryAfter > 0 || done != 1 {
			t.Errorf("the next call is answered %v, %v, and %d were done", reply, err, done)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPayloadsAndLongRequestsStayOut(t *testing.T) {
	put := &ddqv1.PutScheduleRequest{Schedule: &ddqv1.Schedule{Topic: "mail", Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: []byte("canary")}}}}
	if text := textOf(put); bytes.Contains(text, []byte("Y2FuYXJ5")) || !bytes.Contains(text, []byte(`"topic":"mail"`)) {
		t.Errorf("%s", text)
	}
	if string(put.Schedule.GetTask().Payload) != "canary" {
		t.Error("the request was changed")
	}
	many := &ddqv1.DeleteDeadLettersRequest{Topic: "mail"}
	for range 1000 {
		many.Ids = append(many.Ids, "x")
	}
	if n := bytes.Count(textOf(many), []byte(`"x"`)); n != maxItems {
		t.Errorf("%d ids", n)
	}
	if text := textOf(&ddqv1.DeleteTopicRequest{Name: strings.Repeat("x", 2*maxRequest)}); string(text) != `{"cut":true}` {
		t.Errorf("%d bytes", len(text))
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	l := open(t, path)
	now := time.Unix(1000, 0)
	l.now = func() time.Time { return now }
	refuse := func(method string) { l.Refused(context.Background(), &Call{Method: method}, "NO_CREDENTIALS") }
	for range 5 {
		refuse("a")
	}
	refuse("b")
	now = now.Add(sayAgain)
	refuse("a")
	all := records(t, path)[1:]
	if len(all) != 3 || all[0].Count != 0 || all[1].Method != "b" || all[2].Count != 4 || all[0].Caller != "" {
		t.Errorf("%+v", all)
	}
}
