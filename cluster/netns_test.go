//go:build linux

package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/cluster"
)

// TestMain lets the test binary be a node of TestNodesInNamespaces: it prints whom
// it sees until its standard input ends.
func TestMain(m *testing.M) {
	if addr := os.Getenv("DDQ_TEST_NODE"); addr != "" {
		if err := beNode(addr, os.Getenv("DDQ_TEST_JOIN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beNode(addr, join string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := cluster.Start(ctx, cluster.Config{
		Node:     cluster.Node{Name: addr, Addr: addr},
		Addr:     addr,
		Join:     []string{join},
		Insecure: true,
		Profile:  cluster.Local,
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	for {
		select {
		case <-ctx.Done():
			return m.Close()
		case <-m.Changed():
			fmt.Println(len(m.Nodes()))
		}
	}
}

// rig is a switch and nodes, each in a network namespace of its own.
type rig struct {
	*testing.T
	sw    string
	nodes []*process
}

type process struct {
	*exec.Cmd
	port string // of the switch
	sees chan string
}

func (r *rig) ip(args ...string) {
	r.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		r.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// namespace makes one, which goes with the test.
func (r *rig) namespace(name string) string {
	r.Helper()
	name = fmt.Sprintf("ddq%d-%s", os.Getpid(), name)
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		r.Skipf("no network namespaces here: %v: %s", err, out)
	}
	r.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	r.ip("-n", name, "link", "set", "lo", "up")
	return name
}

func (r *rig) start(n int) {
	r.Helper()
	ns, port := r.namespace(fmt.Sprint("n", n)), fmt.Sprint("p", n)
	r.ip("-n", r.sw, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns)
	r.ip("-n", r.sw, "link", "set", port, "master", "br0", "up")
	r.ip("-n", ns, "addr", "add", fmt.Sprintf("10.77.0.%d/24", n), "dev", "eth0")
	r.ip("-n", ns, "link", "set", "eth0", "up")

	p := &process{Cmd: exec.Command("ip", "netns", "exec", ns, os.Args[0]), port: port, sees: make(chan string, 1000)}
	p.Env = append(os.Environ(), fmt.Sprintf("DDQ_TEST_NODE=10.77.0.%d:7946", n), "DDQ_TEST_JOIN=10.77.0.1:7946")
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		r.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.sees <- lines.Text()
		}
	}()
	r.Cleanup(func() {
		_ = in.Close()
		late := time.AfterFunc(10*time.Second, func() { _ = p.Process.Kill() })
		defer late.Stop()
		<-read
		_ = p.Wait()
	})
	r.nodes = append(r.nodes, p)
}

// see waits until a node sees so many.
func (r *rig) see(node, count int, within time.Duration) {
	r.Helper()
	late := time.After(within)
	for {
		select {
		case got := <-r.nodes[node].sees:
			if got == fmt.Sprint(count) {
				return
			}
		case <-late:
			r.Fatalf("node %d does not see %d nodes after %v", node+1, count, within)
		}
	}
}

func TestNodesInNamespaces(t *testing.T) {
	switch _, err := exec.LookPath("ip"); {
	case testing.Short():
		t.Skip("takes a minute")
	case err != nil || os.Geteuid() != 0:
		t.Skip("needs root and ip(8) for network namespaces")
	}
	r := &rig{T: t}
	r.sw = r.namespace("sw")
	r.ip("-n", r.sw, "link", "add", "br0", "type", "bridge")
	r.ip("-n", r.sw, "link", "set", "br0", "up")
	for n := 1; n <= 3; n++ {
		r.start(n)
	}
	const busy = time.Minute // what a machine with other work may take
	for n := range 3 {
		r.see(n, 3, busy)
	}

	third := r.nodes[2]
	if err := third.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.see(0, 2, busy)
	r.see(1, 2, busy)
	if err := third.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.see(0, 3, busy)
	r.see(1, 3, busy)

	r.ip("-n", r.sw, "link", "set", third.port, "nomaster")
	r.see(0, 2, busy)
	r.see(1, 2, busy)
	r.see(2, 1, busy)
	time.Sleep(40 * time.Second) // longer than the library remembers the dead; nothing to await
	r.ip("-n", r.sw, "link", "set", third.port, "master", "br0")
	for n := range 3 {
		r.see(n, 3, busy)
	}
}
