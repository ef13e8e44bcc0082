package node

import (
	"strings"
	"testing"
)

func TestListenersOffLoopbackNeedInsecure(t *testing.T) {
	for _, tc := range []struct {
		addr string
		ok   bool
	}{
		{"127.0.0.1:0", true}, {"127.8.8.8:1", true}, {"[::1]:9090", true}, {"localhost:9090", true},
		{":9090", false}, {"0.0.0.0:9090", false}, {"[::]:9090", false}, {"192.0.2.1:1", false}, {"example.com:1", false},
		{"9090", false}, {"", false},
	} {
		if err := checkListener("grpc-addr", tc.addr, false); (err == nil) != tc.ok {
			t.Errorf("checkListener(%q) = %v, want ok %v", tc.addr, err, tc.ok)
		}
	}
	if err := checkListener("grpc-addr", "0.0.0.0:9090", true); err != nil {
		t.Errorf("with --insecure: %v", err)
	}
}

func TestStoreNameHidesThePassword(t *testing.T) {
	cfg := Config{Store: "redis://user:secret@127.0.0.1:6379/1"}
	if name := cfg.StoreName(); strings.Contains(name, "secret") || !strings.Contains(name, "127.0.0.1:6379") {
		t.Errorf("StoreName = %q", name)
	}
}
