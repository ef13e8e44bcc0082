package frame

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// known is a server that knows who calls.
type known struct {
	grpc.ClientConnInterface
	mu    sync.Mutex
	verbs []string // guarded by mu
}

func (k *known) Invoke(_ context.Context, _ string, _, response any, _ ...grpc.CallOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if me, ok := response.(*ddqv1.WhoAmIResponse); ok {
		me.Grants = []*ddqv1.Grant{{Verbs: k.verbs, Namespace: "*", Topics: "*"}}
	}
	return nil
}

// nobody has to log in.
type nobody struct{ Logins }

func (nobody) On() bool { return false }

// clock is a section with a page of three parts: one that stays, one that is new each second, and
// none.
type clock struct {
	mu   sync.Mutex
	made int   // guarded by mu
	err  error // guarded by mu
}

func (c *clock) page(context.Context, url.Values) (View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	return View{Title: "Clock", Live: true, Body: g.Group{g.Text("a\rb"), g.Text(fmt.Sprint("made ", c.made)), nil}}, c.err
}

func (c *clock) fails(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// watching is a frame with a clock, and those who look at it.
type watching struct {
	*testing.T
	*clock
	*known
	frame *Frame
}

func watch(t *testing.T) *watching {
	t.Helper()
	c, k := new(clock), &known{verbs: []string{"read"}}
	f := New(k, nobody{}, slog.New(slog.DiscardHandler), Section{Pages: map[string]Maker{"clock": c.page}})
	return &watching{t, c, k, f}
}

// look begins to look at the clock, and returns what ends that, and what came until then.
func (w *watching) look(have string) func() string {
	ctx, cancel := context.WithCancel(w.Context())
	out, done := httptest.NewRecorder(), make(chan struct{})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, Link("live", "of", "clock?", "have", have), nil)
	go func() {
		defer close(done)
		w.frame.ServeHTTP(out, r)
	}()
	return func() string {
		cancel()
		<-done
		return out.Body.String()
	}
}

func TestAPageIsMadeOnceForAllWhoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		var ends []func() string
		for range 10 {
			ends = append(ends, w.look(""))
			time.Sleep(70 * time.Millisecond)
		}
		time.Sleep(9300 * time.Millisecond)
		for _, end := range ends {
			if got := strings.Count(end(), "event: part\ndata: 1 "); got < 9 || got > 12 {
				t.Errorf("somebody saw %d seconds of ten", got)
			}
		}
		if w.made < 9 || w.made > 12 {
			t.Errorf("it was made %d times in ten seconds", w.made)
		}
		if n := len(w.frame.lives.all); n != 0 {
			t.Errorf("%d pages are kept that nobody looks at", n)
		}
	})
}

func TestOnlyWhatIsNewIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		end := w.look("")
		time.Sleep(4500 * time.Millisecond)
		got := end()
		if strings.Count(got, "data: 0 ") != 1 || strings.Count(got, "data: 1 ") != 5 || strings.Contains(got, "data: 2") || !strings.Contains(got, "data: a\ndata: b\n\n") {
			t.Error(got)
		}
		_, rest, _ := strings.Cut(got, "data: 0 ")
		mark, _, _ := strings.Cut(rest, "\n")
		end = w.look(mark)
		time.Sleep(time.Millisecond)
		if got := end(); strings.Contains(got, "data: 0 ") || !strings.Contains(got, "data: 1 ") {
			t.Errorf("what the browser has is sent again:\n%s", got)
		}
	})
}

func TestAStreamEndsWithThePage(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *watching)
		over    bool
	}{
		"the page is gone":      {func(w *watching) { w.fails(status.Error(codes.NotFound, "gone")) }, true},
		"the store is away":     {func(w *watching) { w.fails(status.Error(codes.Unavailable, "away")) }, false},
		"other rights":          {func(w *watching) { w.known.mu.Lock(); w.verbs = nil; w.known.mu.Unlock() }, true},
		"the server shuts down": {func(w *watching) { w.frame.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t)
				end := w.look("")
				time.Sleep(1500 * time.Millisecond)
				c.happens(w)
				time.Sleep(2 * time.Second)
				w.fails(nil)
				time.Sleep(2 * time.Second)
				got := end()
				if goesOn := w.made > 4; strings.Contains(got, "event: over") != c.over || goesOn != (name == "the store is away") {
					t.Errorf("made %d times:\n%s", w.made, got)
				}
			})
		})
	}
}

// TestAStreamThatNobodyReadsIsCutOff, and others see what is new meanwhile.
func TestAStreamThatNobodyReadsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t)
		slow, theirs := net.Pipe()
		defer slow.Close()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Link("live", "of", "clock?"), nil)
		cut := make(chan struct{})
		go func() {
			defer close(cut)
			w.frame.ServeHTTP(piped{httptest.NewRecorder(), theirs}, r)
		}()
		if row, err := bufio.NewReader(slow).ReadString('\n'); err != nil || !strings.HasPrefix(row, "retry: ") { // it has begun
			t.Error(row, err)
		}
		end := w.look("")
		<-cut // though the request goes on
		time.Sleep(3 * time.Second)
		if got := strings.Count(end(), "event: part\ndata: 1 "); got < 8 {
			t.Errorf("the other saw %d seconds of eight", got)
		}
		if w.frame.lives.viewers != 0 {
			t.Errorf("%d are counted who look", w.frame.lives.viewers)
		}
	})
}

// piped is an answer on a connection that keeps nothing of what is not read.
type piped struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (p piped) Write(b []byte) (int, error) {
	p.ResponseRecorder.WriteHeader(http.StatusOK)
	return p.conn.Write(b)
}

func (p piped) SetWriteDeadline(at time.Time) error { return p.conn.SetWriteDeadline(at) }

func TestNoStreamOfWhatIsNoPage(t *testing.T) {
	w := watch(t)
	for _, of := range []string{"none?", "live?", "%zz", ""} {
		out := httptest.NewRecorder()
		w.frame.ServeHTTP(out, httptest.NewRequest(http.MethodGet, Link("live", "of", of), nil))
		if out.Code != http.StatusNotFound {
			t.Errorf("%q: %d", of, out.Code)
		}
	}
}
