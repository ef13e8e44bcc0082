package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// A topic that does not exist yet, or was deleted, is waited for; other topics go on.
func TestWorkerWaitsForItsTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := time.Now().Add(time.Minute)
		f := &fakeServer{greet: func(_ int, h *ddqv1.Hello) error {
			if h.GetTopic() == "later" && time.Now().Before(made) {
				return status.Error(codes.NotFound, `no topic "later"`)
			}
			return nil
		}}
		mux := NewMux()
		mux.AddFunc("now", ok)
		mux.AddFunc("later", ok)
		var log bytes.Buffer
		x := start(t, f, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, mux)
		if st := <-x.streams; st.hello.GetTopic() != "now" {
			t.Fatalf("subscribed to %s", st.hello.GetTopic())
		}
		later := <-x.streams
		if over := time.Since(made); later.hello.GetTopic() != "later" || over < 0 || over > topicPause {
			t.Errorf("subscribed to %s %v after the topic was made", later.hello.GetTopic(), over)
		}
		synctest.Wait()
		if tries := x.w.Stats().Disconnected; tries > 61 {
			t.Errorf("asked %d times in a minute", tries)
		}
		if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "topic does not exist; waiting for it") {
			t.Errorf("logged %s", text)
		}

		made = time.Now().Add(20 * time.Second) // it is deleted, and made again
		later.end <- status.Error(codes.NotFound, `no topic "later"`)
		if st := <-x.streams; st.hello.GetTopic() != "later" {
			t.Errorf("subscribed to %s", st.hello.GetTopic())
		}
		select {
		case err := <-x.ran:
			t.Errorf("Run ended: %v", err)
			x.ran <- err
		default:
		}
	})
}
