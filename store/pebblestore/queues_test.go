package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

var workQueue = store.Queue{Source: cellShard, Class: store.ClassWork, To: "other"}

func sendWork(t *testing.T, s *Store, texts ...string) {
	t.Helper()
	var c store.Commit
	for _, text := range texts {
		c.Send = append(c.Send, store.Message{To: "ex", Topic: "other", Class: store.ClassWork, Body: []byte(text)})
	}
	mustCommit(t, s, c)
}

func messages(t *testing.T, s *Store, after int64, limit int) store.MessagePage {
	t.Helper()
	page, err := s.Messages(t.Context(), cellShard, workQueue, after, limit, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestQueuesOutliveARestart also has the layout be that of queues, and numbers go on.
func TestQueuesOutliveARestart(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	mustCommit(t, s, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa", Body: []byte("x")}}}})
	checkLayout(t, s, layoutCells)
	ahead := int64(1 << 51)
	mustCommit(t, s, store.Commit{Send: []store.Message{{To: "ex", Topic: "other", Class: store.ClassWork, Body: []byte("one")}}, Clock: ahead})
	checkLayout(t, s, layoutQueues)
	from := store.Queue{Source: store.Shard{Topic: "far", Life: 7}, Class: store.ClassWork, To: cellShard.Topic}
	mustCommit(t, s, store.Commit{Receive: &store.Receive{Queue: from, Head: 5, Numbers: []int64{6}, Refused: []int64{7}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openMem(t, fs)
	checkLayout(t, s, layoutQueues)
	sendWork(t, s, "two")
	if page := messages(t, s, 0, 9); page.Head != ahead || len(page.Messages) != 2 || page.Messages[1].Number != ahead+1 {
		t.Errorf("the queue has %+v", page)
	}
	mustCommit(t, s, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sb", Body: []byte("x")}}}})
	checkLayout(t, s, layoutQueues)
	receipts, err := s.Receipts(t.Context(), cellShard, []store.Queue{from})
	if err != nil || receipts[0].Floor != 4 || !slices.Equal(receipts[0].Above, []int64{6, 7}) || !slices.Equal(receipts[0].Refused, []int64{7}) {
		t.Errorf("the receipt is %+v: %v", receipts, err)
	}
}

func TestLayoutIsThatOfQueuesOnceSomethingIsReceived(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	from := store.Queue{Source: store.Shard{Topic: "far"}, Class: store.ClassWork, To: cellShard.Topic}
	mustCommit(t, s, store.Commit{Receive: &store.Receive{Queue: from, Head: 5, Numbers: []int64{6}}})
	checkLayout(t, s, layoutQueues)
}

// TestUnreadableMessagesAreNamed: they keep nobody from reading on, and go when they are finished.
func TestUnreadableMessagesAreNamed(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	fence := claim(t, s, cellShard)
	sendWork(t, s, "0", "1", "2", "3", "4", "5")
	var numbers []int64
	for _, m := range messages(t, s, 0, 9).Messages {
		numbers = append(numbers, m.Number)
	}
	bad := []int64{numbers[0], numbers[2], numbers[3], numbers[5]}
	b := s.dir.DB().NewBatch()
	for _, n := range bad {
		key := appendMessageKey(nil, s.shards.get(cellShard, false).number, workQueue, n)
		if err := errors.Join(b.Delete(key, nil), b.Set(key, []byte("\xff"), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit <= 7; limit++ {
		var read, unreadable []int64
		after, pages := int64(0), 0
		for {
			page := messages(t, s, after, limit)
			if page.Head != numbers[0] {
				t.Fatalf("head is %d, want %d", page.Head, numbers[0])
			}
			for _, m := range page.Messages {
				read = append(read, m.Number)
			}
			unreadable = append(unreadable, page.Unreadable...)
			if pages++; page.Next == 0 || pages > 9 {
				break
			}
			after = page.Next
		}
		if !slices.Equal(read, []int64{numbers[1], numbers[4]}) || !slices.Equal(unreadable, bad) {
			t.Errorf("pages of %d have %v, and cannot read %v", limit, read, unreadable)
		}
	}
	if _, _, err := s.Commit(t.Context(), cellShard, &fence, []store.Commit{{Finish: &store.Finish{Queue: workQueue, Numbers: bad}}}); err != nil {
		t.Fatal(err)
	}
	if page := messages(t, s, 0, 9); page.Head != numbers[1] || len(page.Messages) != 2 || len(page.Unreadable) != 0 {
		t.Errorf("what is left is %+v", page)
	}
}

// TestUnreadableReceiptReceivesNothing: what it said could be made twice.
func TestUnreadableReceiptReceivesNothing(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	from := store.Queue{Source: store.Shard{Topic: "far"}, Class: store.ClassWork, To: cellShard.Topic}
	receive := store.Commit{Receive: &store.Receive{Queue: from, Head: 5, Numbers: []int64{6}}}
	mustCommit(t, s, receive)
	key := appendCellKey(nil, s.shards.get(cellShard, false).number, from.ReceiptID())
	var stored []byte
	if err := s.dir.Read(key, func(b []byte) error { stored = bytes.Clone(b); return nil }); err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"head": {0xff}, "body": stored[:len(stored)-3]} {
		if err := s.dir.Set(key, damaged); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Commit(t.Context(), cellShard, nil, []store.Commit{receive}); !errors.Is(err, store.ErrReceipt) {
			t.Errorf("with a damaged %s a commit is answered %v", name, err)
		}
		if _, err := s.Receipts(t.Context(), cellShard, []store.Queue{from}); !errors.Is(err, store.ErrReceipt) {
			t.Errorf("with a damaged %s the receipt is answered %v", name, err)
		}
	}
}

// BenchmarkReceive is of 128 messages a commit, whose queue begins before them.
func BenchmarkReceive(b *testing.B) {
	s := openMem(b, vfs.NewMem())
	from := store.Queue{Source: store.Shard{Topic: "far"}, Class: store.ClassWork, To: cellShard.Topic}
	numbers := make([]int64, 128)
	for i := 0; b.Loop(); i++ {
		for k := range numbers {
			numbers[k] = int64(1 + i*128 + k)
		}
		c := store.Commit{Receive: &store.Receive{Queue: from, Head: max(1, numbers[0]-256), Numbers: numbers}, Send: []store.Message{{To: "wa", Body: []byte(fmt.Sprint(i))}}}
		if _, results, err := s.Commit(b.Context(), cellShard, nil, []store.Commit{c}); err != nil || results[0].Status != store.OK {
			b.Fatalf("%v: %v", results, err)
		}
	}
}
