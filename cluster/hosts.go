package cluster

import (
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Callers returns the addresses that a node's calls may come from: where it gossips,
// where it serves when that is no host name, and the others that it tells of.
func (n *Node) Callers() []netip.Addr {
	var all []netip.Addr
	add := func(addr netip.Addr) {
		addr = addr.Unmap().WithZone("")
		if addr.IsValid() && !addr.IsUnspecified() && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	add(n.Host)
	add(hostOf(n.Addr))
	for text := range strings.SplitSeq(n.Hosts, ",") {
		addr, _ := netip.ParseAddr(text) // a malformed one is the zero address
		add(addr)
	}
	return all
}

// hostOf is the host of host:port; the zero address when it is a name.
func hostOf(addr string) netip.Addr {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.Addr{}
	}
	ip, _ := netip.ParseAddr(host)
	return ip
}

// tellHosts makes a node tell of its machine's addresses, as many as fit: the kernel
// chooses which of them a call comes from.
func (n *Node) tellHosts(addrs []net.Addr) {
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().IsGlobalUnicast() {
			continue // others cannot be called from loopback, nor from one link's addresses
		}
		with := *n
		with.Rules = math.MaxUint64 // there is to be room for it
		with.Hosts = strings.TrimPrefix(n.Hosts+","+prefix.Addr().String(), ",")
		if _, err := with.encode(); err == nil {
			n.Hosts = with.Hosts
		}
	}
}
