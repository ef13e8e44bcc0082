package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/port"
)

// TestStrangersLeaveTheStoreItsDescriptors: a process that may have 120 files open goes on storing while 300
// connections send half of a request, and serves others once these are gone.
func TestStrangersLeaveTheStoreItsDescriptors(t *testing.T) {
	const limit = 120
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	web := claim.Addr()
	p := startProcessIn(t, []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, limit)},
		"--grpc-addr", "127.0.0.1:0", "--http-addr", web, "--store", "embedded", "--data", t.TempDir())
	c, err := client.Dial(p.addr, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	enqueue := func(payload []byte) {
		t.Helper()
		if _, err := c.Enqueue(ctx, client.Task{Topic: "mail", Payload: payload, Delay: time.Hour}); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
	}
	enqueue(nil) // the client is connected

	gone := make(chan struct{})
	for range 300 {
		go stranger(web, gone)
	}
	for !strings.Contains(p.said(), "new connections wait") && p.descriptors(t) < limit-1 {
		select {
		case <-ctx.Done():
			t.Fatal("the strangers do not fill the process")
		case <-time.After(10 * time.Millisecond):
		}
	}
	for range 140 { // through its log, which is written anew every 64 MiB
		enqueue(make([]byte, 1<<20))
	}
	if n := p.descriptors(t); n > limit-10 {
		t.Errorf("%d of %d descriptors are taken", n, limit)
	}
	close(gone)
	began := time.Now()
	for {
		answer, err := (&http.Client{Timeout: time.Second}).Get("http://" + web + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
			t.Fatalf("%s\n%s", answer.Status, p.said())
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	t.Logf("served %v after the strangers went", time.Since(began))
	enqueue(nil)
	if said := p.said(); strings.Contains(said, "not written any more") {
		t.Error(said)
	}
}

// stranger sends half of a request, again and again, until gone is closed.
func stranger(addr string, gone <-chan struct{}) {
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return // the test is over
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.WriteString(conn, "GET /v1/topics HTTP/1.1\r\nHost: localh")
			_, _ = io.Copy(io.Discard, conn)
		}()
		select {
		case <-ended:
			conn.Close()
		case <-gone:
			conn.Close()
			<-ended
			return
		}
	}
}

// descriptors is how many descriptors a process has.
func (p *process) descriptors(t *testing.T) int {
	t.Helper()
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
