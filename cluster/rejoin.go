package cluster

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// rememberFor is how long a member is looked for that is missing.
const rememberFor = 24 * time.Hour

// rejoin looks for members that are missing until ctx ends.
func (m *Members) rejoin(ctx context.Context) {
	for {
		pause := m.config.RejoinEvery
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause - pause/10 + rand.N(pause/5+1)):
		}
		missing := m.missing(ctx)
		if len(missing) == 0 {
			continue
		}
		before := m.list.NumMembers()
		m.join(ctx, missing)
		if after := m.list.NumMembers(); after > before {
			m.metrics.rejoins.Inc()
			m.log.Info("found nodes again", "nodes", after-before)
		}
	}
}

// join asks members at these addresses for all they know, and returns how many
// answered.
func (m *Members) join(ctx context.Context, addrs []string) int {
	found := 0
	for _, addr := range m.resolve(ctx, addrs) {
		if ctx.Err() != nil {
			break
		}
		// One by one: the library gives up at the first name it cannot resolve.
		n, err := m.list.Join([]string{addr})
		if err != nil {
			m.log.Debug("node not reached", "addr", addr, "err", err)
		}
		found += n
	}
	return found
}

// missing are the addresses to join, and those of past members, that are no
// members now.
func (m *Members) missing(ctx context.Context) []string {
	named := m.resolve(ctx, m.config.Join)
	m.mu.Lock()
	defer m.mu.Unlock()
	there := make(map[string]bool)
	for _, p := range m.peers {
		there[p.addr] = true
	}
	var missing []string
	for _, addr := range named {
		if !there[addr] {
			missing, there[addr] = append(missing, addr), true
		}
	}
	for addr, at := range m.seen {
		switch {
		case there[addr]:
		case time.Since(at) > rememberFor:
			delete(m.seen, addr)
		default:
			missing = append(missing, addr)
		}
	}
	return missing
}

// resolve turns names into addresses; a name may stand for several.
func (m *Members) resolve(ctx context.Context, addrs []string) (found []string) {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			host, port = addr, strconv.Itoa(defaultPort)
		}
		if net.ParseIP(host) != nil || m.config.Transport != nil {
			found = append(found, net.JoinHostPort(host, port))
			continue
		}
		hosts, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			m.log.Debug("name of a node not found", "addr", addr, "err", err)
		}
		for _, h := range hosts {
			found = append(found, net.JoinHostPort(h, port))
		}
	}
	return found
}
