package cluster

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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

// joinAtOnce is how many addresses are tried at the same time: those behind a
// partition do not answer until a timeout, and must not hold up the others.
const joinAtOnce = 16

// join asks members at these addresses for all they know, and returns how many
// answered. It does not wait for them when ctx ends, or the node does.
func (m *Members) join(ctx context.Context, addrs []string) int {
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	var found atomic.Int64
	todo, all := make(chan string, len(addrs)), make(chan struct{})
	for _, addr := range addrs {
		todo <- addr
	}
	close(todo)
	var tries sync.WaitGroup
	for range min(joinAtOnce, len(addrs)) {
		tries.Go(func() {
			for addr := range todo {
				if ctx.Err() != nil || m.run.Err() != nil {
					return
				}
				n, err := m.list.Join([]string{addr})
				if err != nil {
					m.log.Debug("node not reached", "addr", addr, "err", err)
				}
				found.Add(int64(n))
			}
		})
	}
	m.done.Go(func() { tries.Wait(); close(all) })
	select {
	case <-all:
	case <-ctx.Done():
	}
	return int(found.Load())
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
	add := func(addr string) {
		if !there[addr] {
			missing, there[addr] = append(missing, addr), true
		}
	}
	for _, addr := range named {
		add(addr)
	}
	for name, last := range m.seen {
		if _, ok := m.peers[name]; ok {
			continue
		}
		if time.Since(last.at) > rememberFor {
			delete(m.seen, name)
			continue
		}
		add(last.addr)
	}
	return missing
}

// joinsOthers reports whether the node was told of another one than itself. A name that
// nobody is found under is one.
func (m *Members) joinsOthers(ctx context.Context) bool {
	return len(m.config.Join) > 0 && !slices.Equal(m.resolve(ctx, m.config.Join), []string{m.Addr()})
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
