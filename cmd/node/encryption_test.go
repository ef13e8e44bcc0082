package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Two master keys.
const (
	masterOne = "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="
	masterTwo = "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI="
)

// keyFile writes master keys into a file.
func keyFile(t *testing.T, keys ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(name, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file:" + name
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// encrypted starts a node whose store is encrypted, with everything logged.
func encrypted(t *testing.T, cfg *Config) (*Node, *logged) {
	t.Helper()
	log := new(logged)
	n, err := Start(t.Context(), cfg, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	return n, log
}

func (s sealing) handle(topic string, concurrency int, handler worker.HandlerFunc) {
	ctx, cancel := context.WithCancel(s.Context())
	w := worker.New(s.client(nil).Conn(), worker.Config{Topic: topic, Concurrency: concurrency}, handler)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

// everyPath takes the canary through the ways by which users have something stored, and reads it back.
func everyPath(s sealing) {
	c, ctx := s.client(nil), s.Context()
	is := func(what string, got []byte, want string) {
		s.Helper()
		if string(got) != want {
			s.Errorf("%s is %q, want %q", what, got, want)
		}
	}
	must[client.Topic](s)(c.CreateTopic(ctx, "mail", client.Policy{DoneRetention: new(time.Hour), MaxRetries: new(1), VisibilityTimeout: new(time.Minute)}))
	got := make(chan worker.Task, 100)
	s.handle("mail", 8, func(ctx context.Context, t worker.Task) error {
		kept, err := t.Once(ctx, "look", func(context.Context) ([]byte, error) { return []byte(canary + " kept"), nil })
		if err != nil {
			return err
		}
		if strings.HasPrefix(t.ID, "fails") {
			return errors.New(canary + " failed after " + string(kept))
		}
		got <- t
		if t.ID == "a" {
			if err := t.Enqueue(client.Task{Topic: "other", ID: "next", Payload: []byte(canary + " next"), Delay: time.Hour}); err != nil {
				return err
			}
		}
		return t.SetResult([]byte(canary + " result"))
	})
	next := func() worker.Task {
		s.Helper()
		select {
		case t := <-got:
			return t
		case <-time.After(time.Minute):
			s.Fatal("no task came")
			return worker.Task{}
		}
	}

	task := client.Task{Topic: "mail", ID: "a", Payload: []byte(canary + " payload")}
	must[client.Receipt](s)(c.Enqueue(ctx, task))
	is("payload", next().Payload, canary+" payload")
	done := must[client.Snapshot](s)(c.Wait(ctx, "mail", "a", time.Minute))
	is("result", done.Result, canary+" result")

	later := client.Task{Topic: "mail", ID: "later", Payload: []byte(canary + " later"), Delay: time.Hour}
	must[client.Receipt](s)(c.Enqueue(ctx, later))
	if again := must[client.Receipt](s)(c.Enqueue(ctx, later)); !again.Deduplicated {
		s.Error("a repeat is another task")
	}
	must[client.Receipt](s)(c.UpdateTask(ctx, "mail", "later", client.Change{Payload: []byte(canary + " edited")}))
	is("edited payload", must[client.Snapshot](s)(c.Get(ctx, "mail", "later")).Payload, canary+" edited")

	must[client.Receipt](s)(c.Enqueue(ctx, client.Task{Topic: "mail", ID: "fails", Payload: []byte(canary + " dead"), MaxRetries: new(0)}))
	dead := must[client.Snapshot](s)(c.Wait(ctx, "mail", "fails", time.Minute))
	is("error", []byte(dead.LastError), canary+" failed after "+canary+" kept")
	if shown := must[client.Snapshot](s)(c.Get(ctx, "mail", "fails")); len(shown.Journal) != 1 || string(shown.Journal[0].Value) != canary+" kept" {
		s.Errorf("journal is %v", shown.Journal)
	}

	must[client.Audience](s)(c.CreateAudience(ctx, client.Audience{Name: "all"}))
	must[[]client.RecipientResult](s)(c.PutRecipients(ctx, "all", 0, []client.Recipient{{ID: "ada", Data: []byte(canary + " data")}}))
	must[client.SchedulePut](s)(c.PutSchedule(ctx, client.Schedule{
		Topic: "mail", Name: "daily", Every: 24 * time.Hour, Task: client.Task{Payload: []byte(canary + " run")}, Audience: &client.AudienceTarget{Name: "all"},
	}))
	must[client.Triggered](s)(c.TriggerSchedule(ctx, client.Trigger{Topic: "mail", Name: "daily"}))
	run := next()
	is("payload of a run", run.Payload, canary+" run")
	is("data of a recipient", run.Run.RecipientData, canary+" data")

	must[client.Submitted](s)(c.Submit(ctx, client.Workflow{Topic: "mail", ID: "flow", Input: []byte(canary + " input"), Steps: []client.Step{
		{Name: "first", Task: client.Task{Payload: []byte(canary + " step")}},
		{Name: "second", After: client.After("first"), Input: true, Task: client.Task{Payload: []byte(canary + " step")}},
	}}))
	next()
	second := next()
	is("result of a step", second.ResultOf("first"), canary+" result")
	if flow := must[client.WorkflowStatus](s)(c.WaitWorkflow(ctx, "mail", "flow", time.Minute)); flow.State != client.WorkflowDone {
		s.Errorf("the workflow is %v: %s", flow.State, flow.Error)
	}
	for r, err := range c.StepResults(ctx, "mail", "flow", "second") {
		if is("result of the last step", r.Result, canary+" result"); err != nil {
			s.Error(err)
		}
	}
}

// TestCanaryIsNowhere: what users had stored is in no file of the store, log, metric or audit.
func TestCanaryIsNowhere(t *testing.T) {
	for _, name := range []string{Embedded, "redis"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := &Config{
				Store: name, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", ShutdownGrace: 10 * time.Second, Data: filepath.Join(dir, "data"),
				AuditLog: filepath.Join(dir, "audit"), Encryption: EncryptionConfig{Key: keyFile(t, masterOne)},
			}
			files := cfg.Data
			if name == "redis" {
				server := redistest.Start(t, "--aof-use-rdb-preamble", "no")
				cfg.Store = server.URL()
				files = fmt.Sprint(server.Do(t, "CONFIG", "GET", "dir").(map[any]any)["dir"])
			}
			n, log := encrypted(t, cfg)
			everyPath(sealing{t, n.GRPCAddr()})
			metrics := scraped(t, n)
			if err := n.Stop(); err != nil {
				t.Error(err)
			}
			searchFiles(t, files)
			audit, err := os.ReadFile(cfg.AuditLog)
			if err != nil || len(audit) == 0 {
				t.Errorf("read %d bytes of the audit: %v", len(audit), err)
			}
			for where, text := range map[string]string{"the log": log.String(), "a metric": metrics, "the audit": string(audit)} {
				if at := strings.Index(text, canary); at >= 0 {
					t.Errorf("%s has it: %.300s", where, text[max(0, at-150):])
				}
			}
			if !strings.Contains(metrics, "ddq_encryption_keys 1") || !strings.Contains(metrics, "ddq_encryption_corrupt_total 0") {
				t.Error("there are no metrics of encryption")
			}
		})
	}
}

func scraped(t *testing.T, n *Node) string {
	t.Helper()
	resp, err := http.Get("http://" + n.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || len(text) == 0 {
		t.Fatalf("read %d bytes of metrics: %v", len(text), err)
	}
	return string(text)
}

// TestEncryptedStoreNeedsItsKey: a store of before is taken on, and from then on it needs the key.
func TestEncryptedStoreNeedsItsKey(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	start := func(e EncryptionConfig) (*Node, error) {
		cfg := &Config{Store: Embedded, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, ShutdownGrace: time.Second, Data: data, Encryption: e}
		return Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	}
	enqueue := func(n *Node, id string) {
		t.Helper()
		s := sealing{t, n.GRPCAddr()}
		c := s.client(nil)
		must[client.Receipt](s)(c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: id, Payload: []byte(canary), Delay: time.Hour}))
		for _, id := range []string{"before", id} {
			if got := must[client.Snapshot](s)(c.Get(t.Context(), "mail", id)); string(got.Payload) != canary {
				t.Errorf("payload of %s is %q", id, got.Payload)
			}
		}
		c.Close()
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}
	for i, step := range []struct {
		key     EncryptionConfig
		refused string // how it is; empty: it starts
	}{
		{key: EncryptionConfig{}},
		{key: EncryptionConfig{Mode: encryptionRead, Key: keyFile(t, masterOne)}},
		{key: EncryptionConfig{}},
		{key: EncryptionConfig{Key: keyFile(t, masterOne)}},
		{key: EncryptionConfig{}, refused: "no key is given"},
		{key: EncryptionConfig{Key: keyFile(t, masterTwo)}, refused: "is not that of the store"},
		{key: EncryptionConfig{Key: keyFile(t, masterTwo, masterOne)}},
		{key: EncryptionConfig{Key: keyFile(t, masterOne)}, refused: "is not that of the store"},
		{key: EncryptionConfig{Mode: encryptionRead, Key: keyFile(t, masterTwo, masterOne)}},
	} {
		n, err := start(step.key)
		switch {
		case step.refused == "" && err != nil:
			t.Fatalf("step %d: %v", i, err)
		case step.refused == "":
			enqueue(n, map[bool]string{true: "before", false: fmt.Sprint("after-", i)}[i == 0])
		case !errors.As(err, new(ConfigError)) || !strings.Contains(err.Error(), step.refused) || !strings.Contains(err.Error(), "wrapped by master key"):
			t.Errorf("step %d: %v, want that %s", i, err, step.refused)
		}
	}
}

func TestEncryptionSettingsAreChecked(t *testing.T) {
	open := strings.TrimPrefix(keyFile(t, masterOne), "file:")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]EncryptionConfig{
		"seen by every user":   {Key: masterOne},
		"no such file":         {Key: "file:" + filepath.Join(t.TempDir(), "none")},
		"every user can read":  {Key: "file:" + open},
		"30 bytes":             {Key: keyFile(t, masterOne[:40])},
		"no key":               {Key: keyFile(t, "")},
		"there is no key":      {Key: "env:DDQ_TEST_NO_SUCH_KEY"},
		"on or read":           {Key: keyFile(t, masterOne), Mode: "off"},
		"needs --encryption-k": {Mode: encryptionRead},
	} {
		if err := e.check(); !errors.As(err, new(ConfigError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A node without a key that meets what another one has encrypted since hands nothing out, and is not ready.
func TestNodeWithoutAKeyIsNotReadyWhenOthersEncrypt(t *testing.T) {
	server := redistest.Start(t)
	start := func(name, key string) *Node {
		t.Helper()
		cfg := &Config{Store: server.URL(), GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, ShutdownGrace: time.Second, Encryption: EncryptionConfig{Key: key}}
		cfg.Actors.Node = name
		n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	without := start("without", "")
	with := start("with", keyFile(t, masterOne))
	s := sealing{t, with.GRPCAddr()}
	c := s.client(nil)
	must[client.Receipt](s)(c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: "secret", Payload: []byte(canary)}))
	c.Close()
	if err := with.Stop(); err != nil {
		t.Error(err)
	}
	conn, err := grpc.NewClient(without.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for health := healthpb.NewHealthClient(conn); ; {
		got, err := ddqv1.NewDelayQueueServiceClient(conn).Retrieve(t.Context(), &ddqv1.RetrieveRequest{Topic: "mail", MaxTasks: 1, WaitMs: 100})
		if err == nil && len(got.Deliveries) > 0 {
			t.Fatalf("it hands out %v", got.Deliveries)
		}
		if err := without.Ready(); err == nil || !strings.Contains(err.Error(), "has no key") {
			continue // it has not met the task
		}
		state, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || state.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("the health check says %v, %v", state, err)
		}
		break
	}
	if err := without.Stop(); err != nil {
		t.Error(err)
	}
}
