package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is how many a cluster has.
const slots = 16384

// Cluster is a Redis Cluster of servers of its own, which notices within about a
// second that a master is gone.
type Cluster struct {
	host    string
	servers []*Server
	ids     map[*Server]string // of the nodes
}

// StartCluster starts a cluster with replicas for each master and waits until it
// serves. It is gone when the test ends.
func StartCluster(tb TB, masters, replicas int) *Cluster {
	tb.Helper()
	return StartClusterAt(tb, Loopback, masters, replicas)
}

// StartClusterAt is StartCluster on another address of this machine.
func StartClusterAt(tb TB, host string, masters, replicas int) *Cluster {
	tb.Helper()
	c := &Cluster{host: host, ids: make(map[*Server]string)}
	for range masters * (1 + replicas) {
		c.add(tb)
	}
	for i, s := range c.servers {
		s.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			s.Do(tb, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		}
		c.meet(tb, s)
	}
	c.awaitKnown(tb)
	for i, s := range c.servers[masters:] {
		s.Do(tb, "CLUSTER", "REPLICATE", c.ids[c.servers[i%masters]])
	}
	for i, s := range c.servers {
		await(tb, s, "CLUSTER INFO", "cluster_state:ok")
		if i < masters {
			awaitReplicas(tb, s, replicas)
		}
	}
	c.awaitRoles(tb, masters)
	return c
}

// add starts a node that knows no other.
func (c *Cluster) add(tb TB) *Server {
	tb.Helper()
	s := startTCP(tb, c.host, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-allow-replica-migration", "no",
		"--cluster-port", claimPort(tb, c.host))
	c.servers = append(c.servers, s)
	c.ids[s] = s.Do(tb, "CLUSTER", "MYID").(string)
	return s
}

func (c *Cluster) meet(tb TB, s *Server) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(s.addr)
	bus := s.Do(tb, "CONFIG", "GET", "cluster-port").(map[any]any)["cluster-port"]
	c.servers[0].Do(tb, "CLUSTER", "MEET", host, port, bus)
}

// awaitKnown waits until every node knows every other. Redis forgets about a meeting
// that takes longer than a second, as on a machine with much else to do.
func (c *Cluster) awaitKnown(tb TB) {
	tb.Helper()
	for _, s := range c.servers {
		met := time.Now()
		eventually(tb, "nodes know each other", func() error {
			if time.Since(met) > 3*time.Second {
				met = time.Now()
				c.meet(tb, s)
			}
			nodes := s.Do(tb, "CLUSTER", "NODES").(string)
			if n := strings.Count(nodes, " connected"); n != len(c.servers) || strings.Contains(nodes, "handshake") {
				return fmt.Errorf("%d of %d are known:\n%s", n, len(c.servers), nodes)
			}
			return nil
		})
	}
}

// awaitRoles waits until all nodes agree on who is a replica.
func (c *Cluster) awaitRoles(tb TB, masters int) {
	tb.Helper()
	for _, s := range c.servers {
		eventually(tb, "roles are known", func() error {
			nodes := s.Do(tb, "CLUSTER", "NODES").(string)
			if n := strings.Count(nodes, "master "); n != masters {
				return fmt.Errorf("%d masters, want %d:\n%s", n, masters, nodes)
			}
			return nil
		})
	}
}

// URL is what a client connects to.
func (c *Cluster) URL() string {
	addrs := make([]string, min(3, len(c.servers)))
	for i := range addrs {
		addrs[i] = c.servers[i].addr
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// Join starts one more master, which has no slots.
func (c *Cluster) Join(tb TB) *Server {
	tb.Helper()
	s := c.add(tb)
	c.meet(tb, s)
	c.awaitKnown(tb)
	await(tb, s, "CLUSTER INFO", "cluster_state:ok")
	return s
}

// Masters returns the nodes that are masters by their own account.
func (c *Cluster) Masters(tb TB) []*Server {
	tb.Helper()
	return primaries(tb, c.servers)
}

// MasterOf returns the master that serves a key, and the key's slot.
func (c *Cluster) MasterOf(tb TB, key string) (*Server, int64) {
	tb.Helper()
	s, slot := c.masterOf(tb, key)
	if s == nil {
		tb.Fatalf("no master has slot %d of %s", slot, key)
	}
	return s, slot
}

// masterOf returns no master when none that runs says that it serves the key.
func (c *Cluster) masterOf(tb TB, key string) (*Server, int64) {
	tb.Helper()
	masters := c.Masters(tb)
	slot := masters[0].Do(tb, "CLUSTER", "KEYSLOT", key).(int64)
	for _, s := range masters {
		for _, entry := range s.Do(tb, "CLUSTER", "SLOTS").([]any) {
			e := entry.([]any)
			if first, last := e[0].(int64), e[1].(int64); slot < first || slot > last {
				continue
			}
			if e[2].([]any)[2] == c.ids[s] {
				return s, slot
			}
		}
	}
	return nil, slot
}

// AwaitTakeover waits until a running master serves a key again, with a replica
// of its own, and all running nodes agree that the cluster works.
func (c *Cluster) AwaitTakeover(tb TB, key string) {
	tb.Helper()
	eventually(tb, "another master takes over", func() error {
		for _, s := range c.servers {
			if s.answers() && !strings.Contains(s.Do(tb, "CLUSTER", "INFO").(string), "cluster_state:ok") {
				return fmt.Errorf("%s says that the cluster is down", s.addr)
			}
		}
		if s, slot := c.masterOf(tb, key); s == nil || onlineReplicas(tb, s) == 0 {
			return fmt.Errorf("slot %d has no master with a replica", slot)
		}
		return nil
	})
}

// Patience sets how long a master may be silent before it is taken to be gone, a
// second until it is set. A server that is started again forgets it.
func (c *Cluster) Patience(tb TB, d time.Duration) {
	tb.Helper()
	for _, s := range c.servers {
		if s.answers() {
			s.Do(tb, "CONFIG", "SET", "cluster-node-timeout", d.Milliseconds())
		}
	}
}

// Flush removes everything.
func (c *Cluster) Flush(tb TB) {
	tb.Helper()
	for _, s := range c.Masters(tb) {
		s.Do(tb, "FLUSHALL")
	}
}

// Move moves the slot of a key to another master, one key at a time; it calls
// between before each of them and once more before it is over.
func (c *Cluster) Move(tb TB, key string, to *Server, between func()) {
	tb.Helper()
	from, slot := c.MasterOf(tb, key)
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	host, port, _ := net.SplitHostPort(to.addr)
	for {
		between()
		keys := from.Do(tb, "CLUSTER", "GETKEYSINSLOT", slot, 1).([]any)
		if len(keys) == 0 {
			break
		}
		from.Do(tb, "MIGRATE", host, port, keys[0], 0, 10_000)
	}
	for _, s := range append([]*Server{to, from}, c.Masters(tb)...) {
		s.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
}

// primaries returns those of the running servers that are nobody's replica.
func primaries(tb TB, servers []*Server) (found []*Server) {
	tb.Helper()
	for _, s := range servers {
		if s.answers() && s.Do(tb, "ROLE").([]any)[0] == "master" {
			found = append(found, s)
		}
	}
	return found
}

// awaitReplicas waits until replicas follow a server.
func awaitReplicas(tb TB, s *Server, replicas int) {
	tb.Helper()
	eventually(tb, "replicas follow", func() error {
		if n := onlineReplicas(tb, s); n != replicas {
			return fmt.Errorf("%d of %d are online", n, replicas)
		}
		return nil
	})
}

func onlineReplicas(tb TB, s *Server) int {
	tb.Helper()
	return strings.Count(s.Do(tb, "INFO", "replication").(string), "state=online")
}

// awaitAck waits until a replica of s has confirmed something.
func awaitAck(tb TB, s *Server) {
	tb.Helper()
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	opts.PoolSize = 1 // WAIT is about what its own connection did
	client := redis.NewClient(opts)
	defer client.Close()
	ctx := context.Background()
	eventually(tb, "replica confirms", func() error {
		if err := client.Publish(ctx, "replica", "are you there").Err(); err != nil { // which changes no key
			return err
		}
		if n, err := client.Do(ctx, "WAIT", 1, 100).Int(); err != nil || n < 1 {
			return fmt.Errorf("%d replicas confirm: %w", n, err)
		}
		return nil
	})
}

// await waits until the answer to a command has some words in it.
func await(tb TB, s *Server, command, words string) {
	tb.Helper()
	var args []any
	for _, arg := range strings.Fields(command) {
		args = append(args, arg)
	}
	eventually(tb, command, func() error {
		if answer := fmt.Sprint(s.Do(tb, args...)); !strings.Contains(answer, words) {
			return fmt.Errorf("the answer is without %q: %s", words, answer)
		}
		return nil
	})
}

// AwaitFollows waits until the server follows another one and hears from it.
func (s *Server) AwaitFollows(tb TB) {
	tb.Helper()
	await(tb, s, "INFO replication", "master_link_status:up")
}

// eventually does something until it works, for as long as a minute.
func eventually(tb TB, what string, do func() error) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("%s: %v", what, err)
		}
	}
}
