package port

import (
	"net"
	"testing"
)

func mustClaim(t *testing.T) *Claim {
	t.Helper()
	c, err := New(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Release() })
	return c
}

func TestClaimedPortIsNotGivenAgain(t *testing.T) {
	c := mustClaim(t)
	if again, err := claim(Loopback, c.Number); err == nil {
		t.Errorf("%s was given twice", again.Addr())
	}
	if elsewhere, err := claim("127.0.0.2", c.Number); err == nil {
		t.Errorf("%s was given while %s is claimed", elsewhere.Addr(), c.Addr())
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := claim(Loopback, c.Number)
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestServerListensOnItsClaim(t *testing.T) {
	c := mustClaim(t)
	for range 2 { // and does so again
		l, err := net.Listen("tcp", c.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPortOfAStrangerIsNotGiven(t *testing.T) {
	c := mustClaim(t)
	for network, listen := range map[string]func(string) (interface{ Close() error }, error){
		"tcp": func(addr string) (interface{ Close() error }, error) { return net.Listen("tcp", addr) },
		"udp": func(addr string) (interface{ Close() error }, error) { return net.ListenPacket("udp", addr) },
	} {
		stranger, err := listen(c.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.probe(); err == nil {
			t.Errorf("%s: the probe finds nobody at %s", network, c.Addr())
		}
		if err := stranger.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
