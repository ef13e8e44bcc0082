//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/audits"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestTheAuditLogsOfAFleetAreOne: any node lists what was done at all, and says whose chain is broken, and
// who is silent.
func TestTheAuditLogsOfAFleetAreOne(t *testing.T) {
	s := &servers{T: t, settings: []string{"--store", redistest.Start(t).URL()}, nodes: make([]*process, 3)}
	var logs []string
	for i := range 3 {
		logs = append(logs, filepath.Join(t.TempDir(), "audit"))
		s.behind = append(s.behind, []string{"env", "DDQ_AUDIT_LOG=" + logs[i]})
		s.grpc, s.gossip = append(s.grpc, claimAddr(t)), append(s.gossip, claimAddr(t))
	}
	var clients []*client.Client
	for i := range 3 {
		s.start(i)
		c, err := client.Dial(s.nodes[i].addr, client.Config{Timeout: time.Minute, MaxElapsed: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	awaitActive(t, clients[0], 3)
	awaitActive(t, clients[2], 3)
	var want []string
	for i, c := range clients {
		topic := fmt.Sprint("topic-", i)
		if _, err := c.CreateTopic(t.Context(), topic, client.Policy{}); err != nil {
			t.Fatal(err)
		}
		want = append([]string{fmt.Sprintf("n%d done %s", i, topic), fmt.Sprintf("n%d asked %s", i, topic)}, want...)
	}
	list := func(missing *audits.Missing) (all []string) {
		t.Helper()
		for r, err := range clients[2].AuditRecords(t.Context(), audits.Filter{Method: "CreateTopic"}, missing) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(r.Node, " ", r.Outcome, " ", r.Name))
		}
		return all
	}
	missing := new(audits.Missing)
	if got := list(missing); !slices.Equal(got, want) || len(missing.Silent)+len(missing.WithoutLog) != 0 {
		t.Errorf("listed are %q, %+v", got, missing)
	}

	text, err := os.ReadFile(logs[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs[1], []byte(strings.Replace(string(text), "topic-1", "topic-7", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	chains, err := clients[0].VerifyAudit(t.Context())
	if err != nil || len(chains) != 3 {
		t.Fatal(chains, err)
	}
	for i, c := range chains {
		if broken := c.State == audits.Broken; broken != (i == 1) || !broken && c.State != audits.Whole {
			t.Errorf("the chain of %s is %v: %s", c.Node, c.State, c.Error)
		}
	}
}
