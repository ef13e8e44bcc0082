//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// lateToken is a token that programs are given while they run.
type lateToken struct{ text atomic.Pointer[string] }

func (l *lateToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	text := l.text.Load()
	if text == nil {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + *text}, nil
}

func (*lateToken) RequireTransportSecurity() bool { return false }

// Authentication is turned on in a fleet as docs/operating.md says, node by node and under traffic, and nothing
// is lost. DDQ_TEST_OLD_BIN names a ddq of an older version, which the nodes are at first.
func TestTurningAuthenticationOnLosesNothing(t *testing.T) {
	severalServers(t)
	root := filepath.Join(t.TempDir(), "root.token")
	s := newServers(t, redistest.Start(t).URL(), 3, "--gossip-key", strings.Repeat("a1", 32), "--lease-ttl", "20s")
	base := s.settings
	if old := os.Getenv("DDQ_TEST_OLD_BIN"); old != "" {
		for i := range s.behind {
			s.behind[i] = []string{"sh", "-c", `shift; exec "$DDQ_TEST_OLD_BIN" "$@"`, "sh"}
		}
	}
	s.startAll()
	x, token := newTraffic(t), new(lateToken)
	x.hold = 20 * time.Second
	x.start(s.addrs(), grpc.WithPerRPCCredentials(token))
	awaitActive(t, x.admin, 3)
	restart := func(settings ...string) {
		t.Helper()
		s.settings = append(base[:len(base):len(base)], settings...)
		for i, p := range s.nodes {
			x.awaitMore(100)
			s.behind[i] = nil
			if code, rest := p.terminate(t); code != 0 {
				t.Fatalf("node %d: exit code %d, stderr %s", i, code, rest)
			}
			s.start(i)
			awaitActive(t, x.admin, 3)
			x.awaitPlaced()
			x.awaitService(time.Now())
		}
	}
	restart("--auth", "off")
	restart("--auth", "token", "--auth-mode", "observe", "--insecure", "--root-token", "file:"+root)
	token.text.Store(new(makeToken(t, s.addrs(), root)))
	restart("--auth", "token", "--root-token", "file:"+root)

	stranger, err := client.Dial(s.addrs(), client.Config{MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Enqueue(t.Context(), client.Task{Topic: trafficTopic}); !errors.Is(err, client.ErrDenied) {
		t.Errorf("without a token: %v", err)
	}
	x.finish()
	t.Logf("%d tasks, %d attempts wasted, %d enqueues not answered", x.countStored(), x.wasted, x.unsure)
}

// makeToken makes a token for the programs of the traffic, with that of a file.
func makeToken(t *testing.T, addrs, root string) string {
	t.Helper()
	text, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(addrs, client.Config{Token: strings.TrimSpace(string(text)), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, secret, err := c.CreateToken(t.Context(), access.NewToken{Name: "traffic", Grants: []access.Grant{
		{Verbs: []string{"enqueue", "work", "read"}, Namespace: "*", Topics: "*"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
