// Package port gives ports to servers that take one by number: those that must find
// their port again when they are started again, or that others have to know before.
// All that asks here, in whatever process of the machine, gets another port.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range lies below the ports that systems give to connections. Its even numbers are
// given out; the odd one above is the lock of each.
const (
	first = 20_000
	count = 5_000
)

// Loopback is where a lock is held, whatever host the port is for.
const Loopback = "127.0.0.1"

// Claim is a port that nobody else is given until Release, or until the process ends. The
// port itself is free for a server to listen on.
type Claim struct {
	Number int
	host   string
	lock   net.Listener // on the next port: the system lets one process have it
}

// New claims a port of an address of this machine that nobody listens on, over TCP or UDP.
func New(host string) (*Claim, error) {
	for range 100 {
		if c, err := claim(host, first+2*rand.IntN(count)); err == nil {
			return c, nil
		}
	}
	return nil, errors.New("no port is free")
}

func claim(host string, number int) (*Claim, error) {
	lock, err := net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(number+1)))
	if err != nil {
		return nil, err
	}
	c := &Claim{Number: number, host: host, lock: lock}
	if err := c.probe(); err != nil {
		return nil, errors.Join(err, c.Release())
	}
	return c, nil
}

// probe looks for a program that listens without having asked here.
func (c *Claim) probe() error {
	l, err := net.Listen("tcp", c.Addr())
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	p, err := net.ListenPacket("udp", c.Addr())
	if err != nil {
		return err
	}
	return p.Close()
}

// Addr is the host and the port.
func (c *Claim) Addr() string { return net.JoinHostPort(c.host, strconv.Itoa(c.Number)) }

// Release lets others have the port. The server on it should be gone.
func (c *Claim) Release() error { return c.lock.Close() }
