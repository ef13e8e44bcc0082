package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestSealWaitsForAReplica: a failover must not open the shard again, whatever else is waited for.
func TestSealWaitsForAReplica(t *testing.T) {
	primary := redistest.StartTCP(t)
	replica := redistest.StartReplica(t, primary)
	s := claim(t, open(t, "redis://"+primary.Addr()+"?wait_timeout=500ms"))
	replica.Pause()
	if _, _, err := s.Add(t.Context(), s.shard, newTasks(1, 1)); err != nil {
		t.Errorf("add without a replica: %v", err)
	}
	if err := s.Seal(t.Context(), s.shard); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("seal without the replica: %v, want %v", err, store.ErrUnknown)
	}
	replica.Resume()
	eventually(t, "seal with the replica", func() error { return s.Seal(t.Context(), s.shard) })
}

// TestQueuesAreStreamsThatGo also sees the schema rise with the first message and not before, and messages and
// receipts that cannot be read.
func TestQueuesAreStreamsThatGo(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	commit := func(c store.Commit) error {
		_, results, err := s.Commit(t.Context(), s.shard, &s.fence, []store.Commit{c})
		if err == nil && results[0].Status != store.OK {
			t.Errorf("commit is %v", results[0].Status)
		}
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(want any, args ...any) {
		t.Helper()
		if got := server.Do(t, args...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v is %v, want %v", args, got, want)
		}
	}
	prefix := fmt.Sprintf("ddq:{%s:%d}:", s.shard.Topic, s.shard.N)
	must(commit(store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa", Body: []byte("x")}}}}))
	is(2, "HGET", prefix+"owner", "schema")
	send := store.Commit{}
	for i := range 5 {
		send.Send = append(send.Send, store.Message{To: "ex", Topic: "other", Class: store.ClassWork, Body: []byte{byte(i)}})
	}
	must(commit(send))
	is(3, "HGET", prefix+"owner", "schema")
	is(5, "HGET", prefix+"owner", "queued")
	stream := fmt.Sprintf("%squeues:1:%016x:other", prefix, s.shard.Life)
	is(5, "XLEN", stream)

	q := store.Queue{Source: s.shard, Class: store.ClassWork, To: "other"}
	page, err := s.Messages(t.Context(), s.shard, q, 0, 9, 1<<20)
	must(err)
	last := page.Messages[4].Number
	for i := range 3 { // two messages that cannot be read, and a third
		server.Do(t, "XADD", stream, fmt.Sprint(last+int64(i)+1, "-0"), "p", "damaged")
	}
	var read int
	var unreadable []int64
	for after, first := int64(0), true; first || after != 0; first = false {
		page, err = s.Messages(t.Context(), s.shard, q, after, 1, 1<<20)
		must(err)
		read, unreadable, after = read+len(page.Messages), append(unreadable, page.Unreadable...), page.Next
	}
	if want := []int64{last + 1, last + 2, last + 3}; read != 5 || !slices.Equal(unreadable, want) {
		t.Errorf("%d messages are read, and %v cannot be, want 5 and %v", read, unreadable, want)
	}
	numbers := unreadable
	page, err = s.Messages(t.Context(), s.shard, q, 0, 9, 1<<20)
	must(err)
	for _, m := range page.Messages {
		numbers = append(numbers, m.Number)
	}
	must(commit(store.Commit{Finish: &store.Finish{Queue: q, Numbers: numbers}}))
	is(0, "EXISTS", stream, prefix+"queues")

	from := store.Queue{Source: store.Shard{Topic: "far", Life: 7}, Class: store.ClassWork, To: s.shard.Topic}
	receive := store.Commit{Receive: &store.Receive{Queue: from, Head: 5, Numbers: []int64{6}}}
	must(commit(receive))
	server.Do(t, "HSET", prefix+"cells", string(from.ReceiptID()), "damaged")
	if err := commit(receive); !errors.Is(err, store.ErrReceipt) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("with a damaged receipt a commit is answered %v", err)
	}
	if _, err := s.Receipts(t.Context(), s.shard, []store.Queue{from}); !errors.Is(err, store.ErrReceipt) {
		t.Errorf("a damaged receipt is answered %v", err)
	}

	must(commit(send))
	must(s.DropShard(t.Context(), s.shard))
	is(0, "EXISTS", stream, prefix+"queues")
}

// TestOwnerOfADroppedShardExpires unless a topic has the shard again.
func TestOwnerOfADroppedShardExpires(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	of := func(life uint64) store.Shard { return store.Shard{Topic: s.shard.Topic, N: s.shard.N, Life: life} }
	owner := fmt.Sprintf("ddq:{%s:%d}:owner", s.shard.Topic, s.shard.N)
	expires := func(want bool) {
		t.Helper()
		if left := server.Do(t, "PTTL", owner).(int64); left > 0 != want || left > int64(7*24*time.Hour/time.Millisecond) {
			t.Errorf("the owner record has %d ms left, want some: %v", left, want)
		}
	}
	for life := uint64(1); life <= 2; life++ {
		if _, _, err := s.Add(t.Context(), of(life), newTasks(1, 1)); err != nil {
			t.Fatal(err)
		}
		expires(false)
		if err := s.DropShard(t.Context(), of(life)); err != nil {
			t.Fatal(err)
		}
		expires(true)
		if _, _, err := s.Add(t.Context(), of(life), newTasks(1, 1)); !errors.Is(err, store.ErrSealed) {
			t.Errorf("a topic that was dropped is answered %v", err)
		}
		if err := s.OpenShard(t.Context(), of(life+1), store.ShardLife{Topic: life, Ended: true}); err != nil {
			t.Fatal(err)
		}
		expires(false)
	}
}
