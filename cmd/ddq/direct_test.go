//go:build unix

package main

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// directRun is three nodes and the traffic of workers that connect to each.
type directRun struct {
	*servers
	*traffic
}

func startDirect(t *testing.T) *directRun {
	t.Helper()
	s := newServers(t, redistest.Start(t).URL(), 3)
	for range s.nodes {
		s.http = append(s.http, claimAddr(t))
	}
	s.startAll()
	r := &directRun{s, newTraffic(t)}
	r.direct = true
	r.traffic.start(s.addrs())
	awaitActive(t, r.admin, 3)
	return r
}

// metric is a metric of a node, 0 when it does not answer.
func (r *directRun) metric(node int, name string) float64 {
	reply, err := http.Get("http://" + r.http[node] + "/metrics")
	if err != nil {
		return 0
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return n
		}
	}
	return 0
}

func (r *directRun) sum(name string) (sum float64) {
	for i := range r.nodes {
		sum += r.metric(i, name)
	}
	return sum
}

// awaitDirect waits until every worker has one stream at each node, and so no node
// one at another.
func (r *directRun) awaitDirect() {
	r.traffic.Helper()
	await(r.traffic.T, "every worker to be at every node", func() bool {
		for i := range r.nodes {
			if r.metric(i, "ddq_subscriptions") != 3 {
				return false
			}
		}
		return true
	})
}

// attempts are how many no worker ended.
func (r *directRun) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wasted
}

func TestDirectWorkersTakeFromEveryNode(t *testing.T) {
	severalServers(t)
	r := startDirect(t)
	r.awaitDirect()
	r.awaitPlaced()

	before, linked := make([]float64, 3), r.sum("ddq_linked_tasks_total")
	const delivered = `ddq_tasks_total{event="delivered"}`
	for i := range before {
		before[i] = r.metric(i, delivered)
	}
	r.awaitMore(600)
	r.awaitService(time.Now())
	if n := r.sum("ddq_linked_tasks_total") - linked; n > 0 {
		t.Errorf("%v tasks took the hop", n)
	}
	owners, _ := r.owners()
	for i := range before {
		if owns := strings.Contains(strings.Join(owners, " "), "n"+strconv.Itoa(i)); owns != (r.metric(i, delivered) > before[i]) {
			t.Errorf("node %d owns shards: %v; delivered %v, and %v before", i, owns, r.metric(i, delivered), before[i])
		}
	}

	r.watch()
	drained := owners[0]
	if err := r.admin.DrainNode(t.Context(), drained); err != nil {
		t.Fatal(err)
	}
	awaitActive(t, r.admin, 2)
	r.awaitPlaced()
	r.awaitMore(200)
	if err := r.admin.UndrainNode(t.Context(), drained); err != nil {
		t.Fatal(err)
	}
	awaitActive(t, r.admin, 3)
	r.awaitPlaced()
	r.awaitMore(200)
	r.awaitService(time.Now())
	gaps, late := r.watched()
	t.Logf("drained and undrained: longest gaps %v, lateness %v", gaps, late)

	r.watch()
	if code, rest := r.nodes[1].terminate(t); code != 0 {
		t.Errorf("exit code %d, stderr %s", code, rest)
	}
	r.servers.start(1)
	awaitActive(t, r.admin, 3)
	r.awaitPlaced()
	r.awaitService(time.Now())
	r.awaitDirect()
	gaps, late = r.watched()
	t.Logf("stopped and started: longest gaps %v, lateness %v", gaps, late)
	if n := r.attempts(); n > 0 {
		t.Errorf("%d attempts were wasted on changes that were planned", n)
	}

	r.watch()
	r.nodes[2].kill()
	awaitActive(t, r.admin, 2)
	r.awaitPlaced()
	r.awaitService(time.Now())
	r.awaitMore(200)
	gaps, late = r.watched()
	t.Logf("killed: longest gaps %v, lateness %v", gaps, late)
	r.servers.start(2)
	awaitActive(t, r.admin, 3)
	r.awaitPlaced()
	r.awaitDirect()
	r.finish()
}
