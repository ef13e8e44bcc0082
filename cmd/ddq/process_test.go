//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Exit codes of the binary.
const (
	exitFailed = 1
	exitUsage  = 2
)

// buildOnce makes the real binary for the tests that need a process of its own.
var buildOnce = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(builtIn(), 0o700); err != nil {
		return "", err
	}
	return binary.Build(builtIn())
})

func builtIn() string { return filepath.Join(os.TempDir(), fmt.Sprintf("ddq-test-%d", os.Getpid())) }

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(builtIn())
	os.Exit(code)
}

// process is a running `ddq server`.
type process struct {
	cmd  *exec.Cmd
	addr string
	read chan struct{} // closed at the end of stderr

	mu   sync.Mutex
	rest []byte // stderr after the first line that names the address; guarded by mu
}

// Write records what the process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	return len(b), nil
}

// said is what the process has said since it began to serve.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.rest)
}

// startProcess runs the binary and waits until it serves.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return startProcessIn(t, nil, args...)
}

// startProcessIn is startProcess behind a command that runs the binary.
func startProcessIn(t *testing.T, prefix []string, args ...string) *process {
	t.Helper()
	name, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	line := slices.Concat(prefix, []string{name, "server", "--http-addr", "off"}, args)
	p := &process{cmd: exec.Command(line[0], line[1:]...), read: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	r := bufio.NewReader(stderr)
	var head strings.Builder
	for p.addr == "" {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			t.Fatalf("the server ended: %s", head.String())
		}
		if _, after, ok := strings.Cut(line, "msg=serving addr="); ok {
			p.addr, _, _ = strings.Cut(after, " ")
		}
	}
	go func() {
		defer close(p.read)
		_, _ = io.Copy(p, r) // until the process ends
	}()
	return p
}

// kill ends the process as a power cut would, and waits for it. It may be called
// twice.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.read
	p.cmd.Wait()
}

// terminate asks the process to stop and returns its exit code and its last words.
func (p *process) terminate(t *testing.T) (code int, rest string) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.read
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), p.said()
}

// refusal runs a server that cannot start and returns its exit code and stderr.
func refusal(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	name, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, append([]string{"server", "--grpc-addr", "127.0.0.1:0", "--http-addr", "off"}, args...)...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestSIGTERMExitsZero(t *testing.T) {
	p := startProcess(t, "--grpc-addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	if code, rest := p.terminate(t); code != 0 || !strings.Contains(rest, "msg=stopped") {
		t.Errorf("exit code %d, stderr %s", code, rest)
	}
}

func TestServerThatCannotStartSaysWhyInOneLine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, "--grpc-addr", "127.0.0.1:0", "--data", data)
	for _, tc := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"locked data directory", []string{"--data", data}, exitFailed, []string{data, "in use", "--data"}},
		{"redis down", []string{"--store", "redis://:secret@127.0.0.1:1"}, exitFailed, []string{"127.0.0.1:1", "is it running"}},
		{"port taken", []string{"--data", filepath.Join(t.TempDir(), "data"), "--grpc-addr", p.addr}, exitFailed, []string{p.addr, "taken"}},
		{"data is a file", []string{"--data", "/dev/null"}, exitFailed, []string{"/dev/null"}},
		{"not loopback", []string{"--data", data, "--grpc-addr", "0.0.0.0:0"}, exitUsage, []string{"--insecure"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stderr := refusal(t, tc.args...)
			lines := 1
			if tc.code == exitUsage {
				lines = 2 // and where to read more
			}
			if code != tc.code || strings.Count(stderr, "\n") != lines {
				t.Errorf("exit code %d, want %d; stderr %q, want %d lines", code, tc.code, stderr, lines)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr %q lacks %q", stderr, want)
				}
			}
			if strings.Contains(stderr, "secret") {
				t.Errorf("stderr %q shows the password", stderr)
			}
		})
	}
}

// The ledger test: ten thousand tasks in flight, the server killed among them
// together with one of two workers, and started again on what it left.
func TestKilledServerLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Run("embedded", func(t *testing.T) {
		killedServer(t, "--data", filepath.Join(t.TempDir(), "data"))
	})
	t.Run("redis", func(t *testing.T) {
		redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
		killedServer(t, "--store", redis.URL())
	})
}

const (
	ledgerTasks = 10_000
	ledgerTopic = "ledger"
	ledgerHeld  = 2_000 // tasks that the two workers hold when the server dies
)

// ledger holds what was acknowledged against what was delivered.
type ledger struct {
	mu    sync.Mutex
	acked [ledgerTasks]bool // guarded by mu, as all that follows
	attempts
	held int // handlers that wait for the kill

	all  chan struct{} // closed when every task was delivered
	many chan struct{} // closed when ledgerHeld handlers wait
	dead chan struct{} // closed when the server was killed
}

func killedServer(t *testing.T, args ...string) {
	args = append(args, "--grpc-addr", claimAddr(t))
	p := startProcess(t, args...)
	conn, err := client.Dial(p.addr, client.Config{Timeout: time.Minute, MaxElapsed: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	policy := client.Policy{VisibilityTimeout: new(2 * time.Second), MaxRetries: new(100)}
	if _, err := conn.CreateTopic(t.Context(), ledgerTopic, policy); err != nil {
		t.Fatal(err)
	}
	l := &ledger{attempts: newAttempts(ledgerTasks), all: make(chan struct{}), many: make(chan struct{}), dead: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	var parties sync.WaitGroup
	parties.Go(func() {
		if err := l.work(ctx, conn); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	doomed, err := client.Dial(p.addr, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	parties.Go(func() { l.work(ctx, doomed) }) // which cannot end well
	parties.Go(func() { l.produce(t, ctx, conn) })

	l.await(t, conn, "many tasks in flight", l.many)
	p.kill()
	doomed.Close()
	close(l.dead)
	p = startProcess(t, args...)
	l.await(t, conn, "every task", l.all)
	awaitEmpty(t, conn)
	stop()
	parties.Wait()

	l.check(t)
	if code, rest := p.terminate(t); code != 0 {
		t.Errorf("the second server: exit code %d, stderr %s", code, rest)
	}
}

// produce enqueues tasks that are due over three seconds, also while the server
// is down: the client repeats what was not answered.
func (l *ledger) produce(t *testing.T, ctx context.Context, conn *client.Client) {
	const batch = 100
	due := time.Now().Add(300 * time.Millisecond)
	for first := 0; first < ledgerTasks; first += batch {
		tasks := make([]client.Task, batch)
		for i := range tasks {
			tasks[i] = client.Task{Topic: ledgerTopic, ID: fmt.Sprint(first + i), Due: due.Add(time.Duration(first+i) * 3 * time.Second / ledgerTasks)}
		}
		if _, err := conn.EnqueueBatch(ctx, tasks); err != nil {
			t.Errorf("enqueue: %v", err)
			return
		}
		l.mu.Lock()
		for i := range tasks {
			l.acked[first+i] = true
		}
		l.mu.Unlock()
	}
}

// work holds on to its share of many tasks until the server is dead, and then
// acks them.
func (l *ledger) work(ctx context.Context, conn *client.Client) error {
	cfg := worker.Config{Topic: ledgerTopic, Concurrency: ledgerHeld / 2, MaxInFlight: ledgerHeld / 2}
	return worker.New(conn.Conn(), cfg, worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
		if l.deliver(task, time.Now()) {
			<-l.dead
		}
		return nil
	})).Run(ctx)
}

// deliver notes a delivery and reports whether its handler is to wait for the kill.
func (l *ledger) deliver(task worker.Task, now time.Time) (wait bool) {
	i := numberOf(&task)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts.deliver(i, &task, now, l.acked[i])
	if l.tasks == ledgerTasks {
		closeOnce(l.all)
	}
	if l.held == ledgerHeld {
		return false
	}
	if l.held++; l.held == ledgerHeld {
		close(l.many)
	}
	return true
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func (l *ledger) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := 0
	for i, acked := range l.acked {
		if acked && l.highest[i] == 0 {
			lost++
		}
	}
	if lost+l.early+len(l.doubles) > 0 {
		t.Errorf("lost %d, early %d, delivered again under the same attempt %v; want none", lost, l.early, l.doubles)
	}
	if l.repeats == 0 {
		t.Error("no task was delivered again: the worker that died held none")
	}
	t.Logf("%d tasks, %d delivered again under a higher attempt", l.tasks, l.repeats)
}

// await fails the test when something does not happen for a long time.
func (l *ledger) await(t *testing.T, conn *client.Client, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(time.Minute):
		status, err := conn.DescribeTopic(t.Context(), ledgerTopic)
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Fatalf("waited a minute for %s: delivered %d, repeats %d, held %d, topic %+v, %v",
			what, l.tasks, l.repeats, l.held, status.Depth, err)
	}
}

// awaitEmpty waits until every task is settled.
func awaitEmpty(t *testing.T, conn *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := conn.DescribeTopic(ctx, ledgerTopic)
		if err != nil {
			t.Fatalf("waiting for the last tasks, %+v: %v", s.Depth, err)
		}
		if s.Depth.Done = 0; s.Depth == (client.Depth{}) {
			return
		}
		<-tick.C
	}
}
