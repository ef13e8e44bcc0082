package loglevel_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client/loglevel"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// As all times of a client.
func TestUntilIsInUTC(t *testing.T) {
	at, err := loglevel.Until(&ddqv1.SetLogLevelResponse{UntilUnixMs: 60_001}, nil)
	if want := time.Date(1970, 1, 1, 0, 1, 0, 1e6, time.UTC); err != nil || at != want {
		t.Errorf("it ends at %v, %v, want %v", at, err, want)
	}
	if none, _ := loglevel.Until(new(ddqv1.SetLogLevelResponse), nil); !none.IsZero() {
		t.Errorf("nothing was turned on, until %v", none)
	}
}
