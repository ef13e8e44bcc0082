package cluster

import (
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestCallersOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		node Node
		want []string
	}{
		"none":              {Node{Addr: "b:9090"}, nil},
		"where it gossips":  {Node{Addr: "b:9090", Host: netip.MustParseAddr("10.0.0.2")}, []string{"10.0.0.2"}},
		"where it serves":   {Node{Addr: "10.1.0.2:9090", Host: netip.MustParseAddr("10.0.0.2")}, []string{"10.0.0.2", "10.1.0.2"}},
		"both are one":      {Node{Addr: "10.0.0.2:9090", Host: netip.MustParseAddr("::ffff:10.0.0.2")}, []string{"10.0.0.2"}},
		"others of its own": {Node{Addr: "[fd00::2]:9090", Hosts: "10.0.0.2,fd00::3"}, []string{"fd00::2", "10.0.0.2", "fd00::3"}},
		"malformed":         {Node{Addr: "b", Hosts: ",x,10.0.0.2/8,10.0.0.2,"}, []string{"10.0.0.2"}},
		"every address":     {Node{Addr: "0.0.0.0:9090", Hosts: "::,0.0.0.0"}, nil},
		"an IPv6 link":      {Node{Addr: "b:1", Host: netip.MustParseAddr("fe80::1%eth0")}, []string{"fe80::1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, addr := range c.node.Callers() {
				got = append(got, addr.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNodeTellsOfTheAddressesThatFit(t *testing.T) {
	addrs := []net.Addr{
		&net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(8, 32)},
		&net.IPNet{IP: net.IPv4(10, 0, 0, 2), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)},
		&net.UnixAddr{Name: "x"},
		&net.IPNet{IP: net.ParseIP("fd00::2"), Mask: net.CIDRMask(64, 128)},
	}
	n := Node{Name: "b", Addr: "b:9090"}
	if n.tellHosts(addrs); n.Hosts != "10.0.0.2,fd00::2" {
		t.Errorf("tells of %q", n.Hosts)
	}
	n = Node{Name: "b", Addr: "b:9090", Zone: strings.Repeat("z", 445)}
	n.tellHosts(addrs)
	if b, err := n.encode(); err != nil || n.Hosts == "10.0.0.2,fd00::2" {
		t.Errorf("tells of %q in %d bytes: %v", n.Hosts, len(b), err)
	}
	n = Node{Name: "b", Addr: "b:9090", Zone: strings.Repeat("z", 415)}
	n.tellHosts(addrs)
	n.Rules = math.MaxUint64
	if b, err := n.encode(); err != nil || n.Hosts == "" {
		t.Errorf("tells of %q in %d bytes with rules: %v", n.Hosts, len(b), err)
	}
}
