package actors

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestTopicsWithoutRetriesByDefault(t *testing.T) {
	for given, want := range map[int]int{0: 3, 7: 7, -1: 0} {
		if got := (Config{Topic: store.Topic{MaxRetries: given}}).WithDefaults().Topic.MaxRetries; got != want {
			t.Errorf("%d retries where %d are set; want %d", got, given, want)
		}
	}
}
