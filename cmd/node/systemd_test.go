package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestSupervisionIsReadFromTheEnvironment(t *testing.T) {
	own := "WATCHDOG_PID=" + strconv.Itoa(os.Getpid())
	for _, tc := range []struct {
		environ []string
		want    Supervision
	}{
		{nil, Supervision{}},
		{[]string{"NOTIFY_SOCKET=/run/n"}, Supervision{Socket: "/run/n"}},
		{[]string{"NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=30000000", own}, Supervision{"/run/n", 30 * time.Second}},
		{[]string{"NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=30000000"}, Supervision{"/run/n", 30 * time.Second}},
		{[]string{"NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=30000000", "WATCHDOG_PID=1"}, Supervision{Socket: "/run/n"}},
		{[]string{"NOTIFY_SOCKET=/run/n", "WATCHDOG_USEC=soon"}, Supervision{Socket: "/run/n"}},
	} {
		if got := SupervisionOf(tc.environ); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.environ, got, tc.want)
		}
	}
}

func TestSystemdIsTold(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := (Supervision{Socket: socket}).tell(t.Context(), "READY=1"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := l.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("systemd got %q, %v", b[:n], err)
	}
}

// The watchdog hears of a node every ten seconds of thirty until only a restart helps.
func TestPulseEndsWhenOnlyARestartHelps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		begun := time.Now()
		failed := func() error {
			if time.Since(begun) > 25*time.Second {
				return errors.New("data directory\nfailed")
			}
			return nil
		}
		p := newPulse(Supervision{Socket: "x", Watchdog: 30 * time.Second}, failed, slog.New(slog.DiscardHandler))
		p.tell = func(_ context.Context, text string) error {
			told = append(told, text)
			return nil
		}
		p.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STATUS=data directory failed"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		p.stop()
	})
}

func TestPulseOfANodeThatNobodySupervises(t *testing.T) {
	p := newPulse(Supervision{}, nil, nil)
	p.start()
	p.stop()
}
