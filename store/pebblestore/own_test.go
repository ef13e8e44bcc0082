package pebblestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// A session ends in an hour, with a lease of a minute: the clock was ahead when it was
// renewed for the last time.
func TestSessionOfAClockThatWasAheadIsOver(t *testing.T) {
	s, shard := openMem(t, vfs.NewMem()), store.Shard{Topic: "mail"}
	sessions := map[string]store.Session{}
	for _, node := range []string{"dead", "live"} {
		sessions[node] = store.Session{Node: node, Start: store.NewToken(), TTL: time.Minute, Begin: true}
		if _, err := s.RenewSession(t.Context(), sessions[node]); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Claim(t.Context(), shard, sessions["dead"]); err != nil {
		t.Fatal(err)
	}
	s.sessions.mu.Lock()
	dead := s.sessions.byNode["dead"]
	dead.Expires = dead.Expires.Add(time.Hour)
	s.sessions.byNode["dead"] = dead
	s.sessions.mu.Unlock()
	if _, _, err := s.Claim(t.Context(), shard, sessions["live"]); err != nil {
		t.Errorf("claim of the dead node's shard: %v", err)
	}
}
