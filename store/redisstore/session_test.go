package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// The clock of Redis was an hour ahead when a node renewed its session for the last time.
func TestSessionOfAClockThatWasAheadIsOver(t *testing.T) {
	server := redistest.Start(t)
	s, shard := open(t, server.URL()), store.Shard{Topic: "mail"}
	dead := store.Session{Node: "dead", Start: store.NewToken(), TTL: time.Minute, Begin: true}
	live := store.Session{Node: "live", Start: store.NewToken(), TTL: time.Minute, Begin: true}
	for _, session := range []store.Session{dead, live} {
		if _, err := s.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Claim(t.Context(), shard, dead); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Claim(t.Context(), shard, live); !errors.Is(err, store.ErrOwned) {
		t.Fatalf("claim while the owner lives: %v, want %v", err, store.ErrOwned)
	}
	server.Do(t, "HSET", "ddq:node:{dead}", "expires", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
	if _, _, err := s.Claim(t.Context(), shard, live); err != nil {
		t.Errorf("claim of a shard whose owner's session ends in an hour, with a lease of a minute: %v", err)
	}
}

func TestRenewalSaysWhereTheOtherProcessOfTheNameIs(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	session := store.Session{Node: "n1", Start: store.NewToken(), TTL: time.Minute, Addr: "10.0.0.9:9090", Begin: true}
	if _, err := s.RenewSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	_, err := s.RenewSession(t.Context(), store.Session{Node: "n1", Start: store.NewToken(), TTL: time.Minute})
	if !errors.Is(err, store.ErrSessionLost) || !strings.Contains(err.Error(), session.Addr) {
		t.Errorf("error is %v, want %v with the address %s", err, store.ErrSessionLost, session.Addr)
	}
}

// Every connection is in a WAIT that no replica answers.
func TestRenewalDoesNotQueueBehindCallsThatWaitForReplicas(t *testing.T) {
	server := redistest.Start(t)
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL() + "?wait_replicas=1&wait_timeout=3s", PoolSize: 1}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	session := store.Session{Node: "n1", Start: store.NewToken(), TTL: time.Minute}
	if _, err := s.RenewSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	added := make(chan error, 1)
	go func() {
		_, _, err := s.Add(t.Context(), store.Shard{Topic: "mail"}, []*store.Task{{ID: "a", Due: 1, Created: 1}})
		added <- err
	}()
	for !strings.Contains(fmt.Sprint(server.Do(t, "INFO", "clients")), "blocked_clients:1") {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.RenewSession(t.Context(), session); err != nil {
		t.Error(err)
	}
	select {
	case err := <-added:
		t.Errorf("the renewal waited for the add, which ended with %v", err)
	default:
		<-added
	}
}
