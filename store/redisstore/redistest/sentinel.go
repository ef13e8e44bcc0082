package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sentinel is a primary with two replicas and three sentinels, which notice
// within about a second that the primary is gone.
type Sentinel struct {
	servers   []*Server
	sentinels []*Server
}

// primaryName is what the sentinels call the primary.
const primaryName = "main"

// StartSentinel starts the servers and the sentinels and waits until they know
// each other. All are gone when the test ends.
func StartSentinel(tb TB) *Sentinel {
	tb.Helper()
	return StartSentinelAt(tb, Loopback)
}

// StartSentinelAt is StartSentinel on another address of this machine.
func StartSentinelAt(tb TB, at string) *Sentinel {
	tb.Helper()
	primary := startTCP(tb, at)
	set := &Sentinel{servers: []*Server{primary}}
	host, port, _ := net.SplitHostPort(primary.addr)
	for range 2 {
		set.servers = append(set.servers, StartReplica(tb, primary))
	}
	awaitReplicas(tb, primary, 2)
	for range 3 {
		set.sentinels = append(set.sentinels, startSentinel(tb, host, port))
	}
	for _, s := range set.sentinels {
		eventually(tb, "sentinels know each other", func() error {
			info := s.Do(tb, "INFO", "sentinel").(string)
			if !strings.Contains(info, "status=ok") || !strings.Contains(info, "slaves=2,sentinels=3") {
				return fmt.Errorf("%s", info)
			}
			return nil
		})
	}
	return set
}

func startSentinel(tb TB, host, port string) *Server {
	tb.Helper()
	own := claimPort(tb, host)
	s := newServer(tb)
	s.addr = net.JoinHostPort(host, own)
	path := filepath.Join(s.dir, "conf")
	conf := strings.Join([]string{
		"bind " + host,
		"protected-mode no",
		"port " + own,
		"unixsocket " + s.socket,
		"dir " + s.dir,
		fmt.Sprintf("sentinel monitor %s %s %s 2", primaryName, host, port),
		"sentinel down-after-milliseconds " + primaryName + " 1000",
		"sentinel failover-timeout " + primaryName + " 5000",
		"sentinel parallel-syncs " + primaryName + " 2",
		"",
	}, "\n")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.start([]string{path, "--sentinel"})
	return s
}

// URL is what a client connects to.
func (set *Sentinel) URL() string {
	addrs := make([]string, len(set.sentinels))
	for i, s := range set.sentinels {
		addrs[i] = s.addr
	}
	return "redis-sentinel://" + strings.Join(addrs, ",") + "/" + primaryName
}

// Primary returns the server that is the primary by its own account.
func (set *Sentinel) Primary(tb TB) *Server {
	tb.Helper()
	var found []*Server
	eventually(tb, "one server is the primary", func() error {
		if found = primaries(tb, set.servers); len(found) != 1 {
			return fmt.Errorf("%d are", len(found))
		}
		return nil
	})
	return found[0]
}

// AwaitTakeover waits until there is a primary with a replica of its own.
func (set *Sentinel) AwaitTakeover(tb TB) {
	tb.Helper()
	eventually(tb, "another primary takes over", func() error {
		if onlineReplicas(tb, set.Primary(tb)) == 0 {
			return errors.New("it has no replica yet")
		}
		return nil
	})
}

// Patience sets how long the primary may be silent before it is taken to be gone, a
// second until it is set.
func (set *Sentinel) Patience(tb TB, d time.Duration) {
	tb.Helper()
	for _, s := range set.sentinels {
		s.Do(tb, "SENTINEL", "SET", primaryName, "down-after-milliseconds", d.Milliseconds())
	}
}

// HandOver asks the sentinels to make another server the primary.
func (set *Sentinel) HandOver(tb TB) {
	tb.Helper()
	set.sentinels[0].Do(tb, "SENTINEL", "FAILOVER", primaryName)
}
