package fleet_test

import (
	"net/netip"
	"testing"

	"github.com/ddq-io/ddq/actors/fleet"
)

func TestAMemberCallsFromItsHosts(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []string
		from  string
		want  bool
	}{
		"no host is known":       {nil, "10.0.0.2", false},
		"its host":               {[]string{"10.0.0.3", "10.0.0.2"}, "10.0.0.2", true},
		"IPv4 over IPv6":         {[]string{"10.0.0.2"}, "::ffff:10.0.0.2", true},
		"another host":           {[]string{"10.0.0.2"}, "10.0.0.4", false},
		"loopback elsewhere":     {[]string{"10.0.0.2"}, "127.0.0.1", false},
		"loopback of this host":  {[]string{"127.0.0.1"}, "127.0.0.9", true},
		"the other loopback":     {[]string{"127.0.0.1"}, "::1", true},
		"from outside, loopback": {[]string{"127.0.0.1"}, "10.0.0.2", false},
		"no address":             {[]string{"127.0.0.1", "10.0.0.2"}, "", false},
		"an address of a link":   {[]string{"fe80::1"}, "fe80::1%eth0", true},
	} {
		t.Run(name, func(t *testing.T) {
			m := fleet.Member{Name: "b"}
			for _, h := range c.hosts {
				m.Hosts = append(m.Hosts, netip.MustParseAddr(h))
			}
			from, _ := netip.ParseAddr(c.from)
			if got := m.CallsFrom(from); got != c.want {
				t.Errorf("calls from %s: %v", c.from, got)
			}
		})
	}
}
