package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Without a Logger, what somebody should know is not lost.
func TestPanicsAreLoggedByDefault(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Logger: Config{}.withDefaults().Logger}, HandlerFunc(func(context.Context, Task) error {
			panic("boom")
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		synctest.Wait()
	})
	if got := log.String(); !strings.Contains(got, `level=ERROR msg="handler panicked"`) || strings.Contains(got, "level=INFO") {
		t.Errorf("logged %s", got)
	}
}

// A worker that waits for its server says so at once, now and then, and at the end.
func TestWaitForAServerIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var up atomic.Bool
		f := &fakeServer{greet: func(int, *ddqv1.Hello) error {
			if !up.Load() {
				return status.Error(codes.Unavailable, "nobody there")
			}
			return nil
		}}
		x := start(t, f, Config{Logger: slog.New(warnings{slog.NewTextHandler(&log, nil)})}, HandlerFunc(ok))
		time.Sleep(time.Minute)
		up.Store(true)
		<-x.streams
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if n := len(lines); n < 6 || n > 8 || !strings.Contains(lines[0], "nobody there") || !strings.Contains(lines[n-1], "msg=subscribed topic=mail node=n1") {
			t.Errorf("a minute without a server: %d lines, want the first, one every 10s, and the end\n%s", len(lines), log.String())
		}
	})
}

// A server that lets every stream break does not fill the log.
func TestStreamsThatBreakAtOnceAreLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		x := start(t, &fakeServer{}, Config{Logger: slog.New(warnings{slog.NewTextHandler(&log, nil)})}, HandlerFunc(ok))
		broken := 0
		for end := time.Now().Add(time.Minute); time.Now().Before(end); broken++ {
			(<-x.streams).end <- status.Error(codes.Unavailable, "again")
		}
		<-x.streams
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); broken < 100 || n > 14 {
			t.Errorf("%d lines for %d streams in a minute, want two every 10s\n%s", n, broken, log.String())
		}
	})
}
