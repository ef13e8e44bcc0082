package service

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// TestARepeatedEditKnowsItsOwn has an answer be lost, and somebody else make another edit of the same version:
// each field that an edit changes tells the two apart.
func TestARepeatedEditKnowsItsOwn(t *testing.T) {
	was := store.Task{ID: "a", Payload: []byte("x"), Visibility: time.Second, HandlerTimeout: time.Second, Expires: 5, MaxRetries: 3}
	for name, change := range map[string]func(*store.Task){
		"nothing":         func(*store.Task) {},
		"payload":         func(t *store.Task) { t.Payload = []byte("y") },
		"attributes":      func(t *store.Task) { t.Attributes = []store.Attribute{{Key: "a"}} },
		"visibility":      func(t *store.Task) { t.Visibility++ },
		"handler timeout": func(t *store.Task) { t.HandlerTimeout++ },
		"expiry":          func(t *store.Task) { t.Expires++ },
		"retries":         func(t *store.Task) { t.MaxRetries++ },
		"backoff":         func(t *store.Task) { t.Backoff = &store.Backoff{Base: time.Second} },
		"priority":        func(t *store.Task) { t.Traits = &store.Traits{Priority: 3} },
	} {
		there := was
		there.Edits++
		change(&there)
		ask := was
		if got := made(&store.Edit{ID: "a", Task: &ask}, &store.Snapshot{Task: there, State: store.StateReady}); got != (name == "nothing") {
			t.Errorf("%s is another one: taken for its own: %v", name, got)
		}
	}
}
