package node

import "testing"

func TestOnlyAPortThatIsNotSaidIsTheBoundOne(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1:4711", "[::1]:0": "[::1]:4711", "queue.example:0": "queue.example:4711", ":0": ":4711",
		"10.0.0.1:9090": "10.0.0.1:9090", "": "", "nonsense": "nonsense",
	} {
		if got := withPort(addr, "127.0.0.1:4711"); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
	if got := withPort("127.0.0.1:0", "@socket"); got != "127.0.0.1:0" {
		t.Errorf("of a socket without ports: %q", got)
	}
}
