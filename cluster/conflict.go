package cluster

import (
	"errors"
	"fmt"
	"net"
)

// ErrNameTaken is the answer of Start when another node has the same name and is
// there. The later one of the two gets it.
var ErrNameTaken = errors.New("another node of the fleet has this name")

// conflict takes note that a name is said to be at two addresses. It may be that a
// node came back elsewhere before the others gave up its former life: then it ends
// by itself. If both are alive, they see themselves and not each other; the claims
// in the store keep them apart, and a person has to stop one.
func (m *Members) conflict(name, addr, other string) {
	m.metrics.conflicts.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.self.Name {
		m.rivals[other] = true
	}
	m.refused(name, fmt.Errorf("two nodes have this name, at %s and at %s", addr, other))
}

// rival returns where another node of this name answers, empty when none does. One
// that does not answer has crashed, and its name is free as soon as that is noticed.
func (m *Members) rival() string {
	m.mu.Lock()
	var addrs []string
	for addr := range m.rivals {
		addrs = append(addrs, addr)
	}
	clear(m.rivals)
	m.mu.Unlock()
	for _, addr := range addrs {
		at, err := net.ResolveUDPAddr("udp", addr)
		if err != nil {
			continue
		}
		for range 3 { // packets get lost
			if _, err := m.list.Ping(m.config.Node.Name, at); err == nil {
				return addr
			}
		}
	}
	return ""
}
