//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Hosts of a fleet whose frames are looked at; the nodes are 1 and 2.
const (
	capturedRedis  = 3
	capturedClient = 4
)

// TestTLSHidesPayloadsOnTheNetwork looks for a payload in all frames between a client, two nodes that pass
// tasks on to each other, and their Redis, each on a host of its own. Without TLS it is found there.
func TestTLSHidesPayloadsOnTheNetwork(t *testing.T) {
	severalServers(t)
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS is %v", on), func(t *testing.T) {
			const canary = "canary-of-a-payload"
			l := startLab(t, capturedClient)
			s, cfg := capturedFleet(t, l, on)
			cfg.DialOptions = []grpc.DialOption{l.from(capturedClient)}
			c, err := client.Dial(s.grpc[0], cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			awaitActive(t, c, len(s.nodes))
			if _, err := c.CreateTopic(t.Context(), "mail", client.Policy{Shards: new(16)}); err != nil {
				t.Fatal(err)
			}
			look := l.capture(canary)
			const tasks = 64 // some of them for each node
			for i := range tasks {
				if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: fmt.Sprint(i), Payload: []byte(canary)}); err != nil {
					t.Fatal(err)
				}
			}
			work(t, c, "mail", tasks)
			for hop, f := range look() {
				if f.frames == 0 || f.found == on {
					t.Errorf("%s: %d frames, and the payload in one: %v", hop, f.frames, f.found)
				}
			}
		})
	}
}

// work handles so many tasks of a topic, all of them through the node that the client calls.
func work(t *testing.T, c *client.Client, topic string, tasks int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var left atomic.Int64
	left.Store(int64(tasks))
	w := worker.New(c.Conn(), worker.Config{Topic: topic, Concurrency: tasks}, worker.HandlerFunc(func(context.Context, worker.Task) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	}))
	if err := w.Run(ctx); err != nil && ctx.Err() == nil || left.Load() > 0 {
		t.Fatalf("%d tasks are left: %v", left.Load(), err)
	}
}

// capturedFleet starts a Redis and two nodes, and returns what a client needs to know.
func capturedFleet(t *testing.T, l *lab, secure bool) (*servers, client.Config) {
	t.Helper()
	s := &servers{T: t, nodes: make([]*process, 2)}
	for host := 1; host <= len(s.nodes); host++ {
		s.grpc, s.gossip, s.behind = append(s.grpc, l.addr(host, 9090)), append(s.gossip, l.addr(host, 7946)), append(s.behind, l.enter(host))
	}
	redis, bind := l.addr(capturedRedis, 6379), []string{"--bind", "10.78.0.3", "--protected-mode", "no"}
	var cfg client.Config
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if secure {
		certified(t, dir, "certs", "ca")
		certified(t, dir, "certs", "node", "lab", "--hosts", "10.78.0.1,10.78.0.2,10.78.0.3")
		ca, cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "lab.crt"), filepath.Join(dir, "lab.key")
		redistest.StartBehind(t, l.enter(capturedRedis), append(bind, "--tls-port", "6379", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", "no")...)
		s.settings = []string{"--store", "rediss://" + redis, "--store-ca", ca, "--tls-cert", cert, "--tls-key", key, "--tls-ca", ca, "--auth", "token", "--root-token", "file:" + root,
			"--gossip-key", strings.Repeat("ab", 32)}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(contents(t, ca)) {
			t.Fatal("there is no authority")
		}
		cfg.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	} else {
		redistest.StartBehind(t, l.enter(capturedRedis), append(bind, "--port", "6379")...)
		s.settings = []string{"--store", "redis://" + redis, "--insecure"}
	}
	for i := range s.nodes {
		s.start(i)
	}
	if secure {
		cfg.Token = strings.TrimSpace(string(contents(t, root))) // the first node made it
	}
	return s, cfg
}

// captured is what was seen of a way between two hosts.
type captured struct {
	frames int
	found  bool // what was looked for, in one of them
}

// capture looks for text in what hosts send to each other from now on. The function that it returns ends
// that, and tells what was seen on the ways that tasks take, in either direction.
func (l *lab) capture(text string) func() map[string]captured {
	names := map[int]string{1: "node 1", 2: "node 2", capturedRedis: "Redis", capturedClient: "client"}
	ways := map[string]captured{"node 1 and client": {}, "node 1 and node 2": {}, "node 1 and Redis": {}, "node 2 and Redis": {}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tap = func(from, to int, frame []byte) {
		a, b := min(from, to), max(from, to)
		way := names[a] + " and " + names[b]
		if seen, known := ways[way]; known {
			ways[way] = captured{seen.frames + 1, seen.found || bytes.Contains(frame, []byte(text))}
		}
	}
	return func() map[string]captured {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tap = nil
		return ways
	}
}

// certified runs a command that makes certificates, in a folder.
func certified(t *testing.T, dir string, args ...string) {
	t.Helper()
	ddq, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), ddq, append(args, "--dir", dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ddq %v: %v\n%s", args, err, out)
	}
}

func contents(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
