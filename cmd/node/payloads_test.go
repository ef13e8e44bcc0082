package node

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

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/envelope"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// canary is in every payload that no server may see.
const canary = "canary-7f3a"

// sealing is a server, and programs that encrypt what they enqueue.
type sealing struct {
	*testing.T
	addr string
}

// onEveryStore runs f with a server on each store. Afterwards no file of the store has the canary.
func onEveryStore(t *testing.T, f func(sealing)) {
	for _, name := range []string{Memory, Embedded, "redis"} {
		t.Run(name, func(t *testing.T) {
			cfg := &Config{Store: name, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, AllowVolatile: true, ShutdownGrace: 10 * time.Second, Data: filepath.Join(t.TempDir(), "data")}
			if name == "redis" {
				cfg.Store = redistest.Start(t).URL()
			}
			n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			f(sealing{t, n.GRPCAddr()})
			if err := n.Stop(); err != nil {
				t.Error(err)
			}
			if name == Embedded {
				searchFiles(t, cfg.Data)
			}
		})
	}
}

func searchFiles(t *testing.T, dir string) {
	t.Helper()
	read := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if read += len(text); bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s has a payload", path)
		}
		return err
	})
	if err != nil || read == 0 {
		t.Errorf("read %d bytes of %s: %v", read, dir, err)
	}
}

func (s sealing) codec(r *envelope.Ring) *envelope.Codec {
	s.Helper()
	c, err := envelope.New(envelope.Config{Keys: r, FingerprintKey: r.FingerprintKey()})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s sealing) client(r *envelope.Ring) *client.Client {
	s.Helper()
	cfg := client.Config{Timeout: time.Minute}
	if r != nil {
		cfg.Codec = s.codec(r)
	}
	c, err := client.Dial(s.addr, cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

// work runs a worker that says what it gets, and acks it.
func (s sealing) work(r *envelope.Ring, topic string, next ...client.Task) <-chan string {
	got := make(chan string, 100)
	ctx, cancel := context.WithCancel(s.Context())
	w := worker.New(s.client(nil).Conn(), worker.Config{Topic: topic, Codec: s.codec(r)}, worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		got <- string(t.Payload)
		return t.Enqueue(next...)
	}))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return got
}

func (s sealing) want(got <-chan string, want ...string) {
	s.Helper()
	var all []string
	for range want {
		select {
		case payload := <-got:
			all = append(all, payload)
		case <-time.After(time.Minute):
			s.Fatalf("got %q, want %q", all, want)
		}
	}
	if slices.Sort(all); !slices.Equal(all, want) {
		s.Errorf("got %q, want %q", all, want)
	}
}

func must[T any](s sealing) func(T, error) T {
	return func(v T, err error) T {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		return v
	}
}

// TestEncryptedPayloads: servers keep what they cannot read, know a repeated request by its
// fingerprint, also under another key, and workers have both keys.
func TestEncryptedPayloads(t *testing.T) {
	onEveryStore(t, func(s sealing) {
		begun := must[*envelope.Ring](s)(envelope.NewRing("old"))
		both := must[*envelope.Ring](s)(begun.Add("new"))
		next := must[*envelope.Ring](s)(both.Use("new"))
		before, after := s.client(begun), s.client(next)
		task := client.Task{Topic: "mail", ID: "a", Payload: []byte(canary), Delay: time.Hour}

		must[client.Receipt](s)(before.Enqueue(s.Context(), task))
		for name, c := range map[string]*client.Client{"another program": s.client(begun), "another key": after} {
			if r := must[client.Receipt](s)(c.Enqueue(s.Context(), task)); !r.Deduplicated {
				s.Errorf("%s enqueued it again", name)
			}
		}
		other := task
		other.Payload = []byte(canary + " other")
		if _, err := after.Enqueue(s.Context(), other); !errors.Is(err, client.ErrExists) {
			s.Errorf("another payload: %v", err)
		}
		if _, err := s.client(nil).Enqueue(s.Context(), task); !errors.Is(err, client.ErrExists) {
			s.Errorf("the same payload, not encrypted: %v", err)
		}

		stored := must[client.Snapshot](s)(after.Get(s.Context(), "mail", "a"))
		if bytes.Contains(stored.Payload, []byte(canary)) || !bytes.HasPrefix(stored.Payload, []byte("DDQE1")) {
			s.Errorf("the server has %q", stored.Payload)
		}
		if got := must[[]byte](s)(after.PayloadOf(s.Context(), stored)); string(got) != canary {
			s.Errorf("read %q", got)
		}
		var missing *envelope.KeyError
		edited := must[client.Receipt](s)(after.UpdateTask(s.Context(), "mail", "a", client.Change{Payload: []byte(canary + " edited"), When: &client.When{}}))
		if _, err := before.PayloadOf(s.Context(), must[client.Snapshot](s)(before.Get(s.Context(), "mail", "a"))); edited.Version != 2 || !errors.As(err, &missing) {
			s.Errorf("version %d; without the new key: %v", edited.Version, err)
		}
		must[[]client.Result](s)(before.EnqueueBatch(s.Context(), []client.Task{{Topic: "mail", Payload: []byte(canary + " b")}, {Topic: "mail", Payload: []byte(canary + " c")}}))
		got := s.work(next, "mail", client.Task{Topic: "more", Payload: []byte(canary + " more")})
		s.want(got, canary+" b", canary+" c", canary+" edited")
		s.want(s.work(next, "more"), canary+" more", canary+" more", canary+" more")
	})
}

// TestNoKeyFits: no attempt can mend that, so the task is dead at once and says why.
func TestNoKeyFits(t *testing.T) {
	onEveryStore(t, func(s sealing) {
		mine, theirs := must[*envelope.Ring](s)(envelope.NewRing("mine")), must[*envelope.Ring](s)(envelope.NewRing("theirs"))
		c := s.client(mine)
		for id, ring := range map[string]*envelope.Ring{"foreign": theirs, "good": mine, "plain": nil} {
			must[client.Receipt](s)(s.client(ring).Enqueue(s.Context(), client.Task{Topic: "mail", ID: id, Payload: []byte(canary)[:6]}))
		}
		moved := must[client.Task](s)(client.Task{Topic: "sms", Payload: []byte("x")}.Encoded(s.Context(), s.codec(mine)))
		moved.Topic, moved.ID = "mail", "moved"
		must[client.Receipt](s)(c.Enqueue(s.Context(), moved))

		s.want(s.work(mine, "mail"), canary[:6])
		for id, why := range map[string]string{"foreign": `key "theirs"`, "plain": "not encrypted", "moved": "of another topic"} {
			done := must[client.Snapshot](s)(c.Wait(s.Context(), "mail", id, time.Minute))
			task := must[client.Snapshot](s)(c.Get(s.Context(), "mail", id))
			if done.State != client.StateDead || task.DeadReason != client.DeadReasonPermanent || len(task.Attempts) != 1 || !strings.Contains(task.LastError, why) {
				s.Errorf("%s is %v, %v after %d attempts: %s", id, done.State, task.DeadReason, len(task.Attempts), task.LastError)
			}
		}
	})
}

// TestEncryptedTemplates: schedules, workflows and what grows from them.
func TestEncryptedTemplates(t *testing.T) {
	onEveryStore(t, func(s sealing) {
		ring := must[*envelope.Ring](s)(envelope.NewRing("a"))
		c, codec := s.client(ring), s.codec(ring)
		schedule := client.Schedule{Topic: "mail", Name: "hourly", Every: 24 * time.Hour, Task: client.Task{Payload: []byte(canary + " run")}}
		must[client.SchedulePut](s)(c.PutSchedule(s.Context(), must[client.Schedule](s)(schedule.Encoded(s.Context(), codec))))
		must[client.Triggered](s)(c.TriggerSchedule(s.Context(), client.Trigger{Topic: "mail", Name: "hourly"}))
		flow := client.Workflow{Topic: "mail", Steps: []client.Step{{Name: "a", Task: client.Task{Payload: []byte(canary + " step")}}}}
		must[client.Submitted](s)(c.Submit(s.Context(), must[client.Workflow](s)(flow.Encoded(s.Context(), codec))))
		s.want(s.work(ring, "mail"), canary+" run", canary+" step")
	})
}
