package redisstore

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func FuzzDecodeHold(f *testing.F) {
	good := strings.Repeat("t", 16) + "\x00\x00\x01\x8c\x00\x00\x00\x00" + "\x00\x00\x00\x03" + "\x00\x06worker1700000000000"
	for _, s := range []string{"", good, good[:29], good[:30], good[:33], good + "x", good[:36]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := decodeHold(s)
		if err != nil {
			return
		}
		if len(s) < holdSize || string(h.Token[:]) != s[:16] || !strings.HasPrefix(s[holdSize:], h.Worker) {
			t.Errorf("%q was read as %+v", s, h)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	b, err := appendRecord(nil, &store.Task{Payload: []byte("p"), Created: 1, Expires: 5, Visibility: time.Second, MaxRetries: 3, Fingerprint: math.MaxUint64})
	if err != nil {
		f.Fatal(err)
	}
	for i := range b {
		f.Add(b[:i])
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var task store.Task
		if decodeRecord(string(b), &task) != nil {
			return
		}
		again, err := appendRecord(nil, &task)
		if err != nil {
			t.Fatal(err)
		}
		var same store.Task
		if err := decodeRecord(string(again), &same); err != nil {
			t.Fatalf("%x was read as %+v, which is not readable: %v", b, task, err)
		}
		if once, err := appendRecord(nil, &same); err != nil || !bytes.Equal(once, again) {
			t.Errorf("%x was read as %+v, and that as %+v, %v", b, task, same, err)
		}
		decodeNote(string(b)) // whatever Redis holds
	})
}

func FuzzParseMillis(f *testing.F) {
	for _, s := range []string{"0", "-1", "1700000000000", "1.5", "inf", "-inf", "nan", "1e300", "9007199254740993"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ms, err := parseMillis(s); err != nil && ms != 0 {
			t.Errorf("%q gives %d and %v", s, ms, err)
		}
	})
}

// FuzzShardKeys checks that all keys of a shard have the same hash tag, which is
// no other shard's, for every name that may be a topic's.
func FuzzShardKeys(f *testing.F) {
	f.Add("mail", 0, "mail", 1)
	f.Add("a.b-c_d", 12, "a", 2)
	f.Fuzz(func(t *testing.T, topic string, n int, otherTopic string, otherN int) {
		if strings.ContainsAny(topic+otherTopic, "{}:") || n < 0 || otherN < 0 {
			t.Skip("no topic or shard is called that")
		}
		keys, others := newShardKeys(store.Shard{Topic: topic, N: n}), newShardKeys(store.Shard{Topic: otherTopic, N: otherN})
		same := topic == otherTopic && n == otherN
		for i, key := range keys {
			if hashTag(key) != hashTag(keys[0]) {
				t.Errorf("%s and %s lie in different slots", key, keys[0])
			}
			if (key == others[i]) != same || (hashTag(key) == hashTag(others[i])) != same {
				t.Errorf("%s and %s: same shard is %v", key, others[i], same)
			}
		}
	})
}

// hashTag is the part of a key that decides its slot.
func hashTag(key string) string {
	_, after, _ := strings.Cut(key, "{")
	tag, _, found := strings.Cut(after, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}

// TestHeaderOfAPlainTask fixes what the fast paths of the scripts rely on.
func TestHeaderOfAPlainTask(t *testing.T) {
	b, err := appendRecord(nil, &store.Task{Fingerprint: 0x0102030405060708})
	if err != nil {
		t.Fatal(err)
	}
	if b[0] != 16 || binary.BigEndian.Uint64(b[1:]) != 0x0102030405060708 {
		t.Errorf("header is %x", b)
	}
}

func TestChunksKeepTheOrderOfAnID(t *testing.T) {
	ids := make([]string, 0, 2500)
	for i := range 2500 {
		ids = append(ids, string(rune('a'+i%2))+strings.Repeat("x", i/5))
	}
	next := make(map[string]int)
	for i, id := range ids {
		if _, known := next[id]; !known {
			next[id] = i
		}
	}
	count := 0
	for _, chunk := range chunks(len(ids), func(i int) string { return ids[i] }, func(int) int { return maxBytes / 100 }) {
		seen := make(map[string]bool)
		for _, i := range chunk {
			count++
			if seen[ids[i]] {
				t.Fatalf("%.10q is twice in a chunk", ids[i])
			}
			seen[ids[i]] = true
			if i < next[ids[i]] {
				t.Fatalf("item %d of %.10q comes after item %d", i, ids[i], next[ids[i]])
			}
			next[ids[i]] = i
		}
		if len(chunk) > 100 {
			t.Errorf("a chunk has %d items of a hundredth each", len(chunk))
		}
	}
	if count != len(ids) {
		t.Errorf("chunks have %d items, want %d", count, len(ids))
	}
}

// An attempt from before there were due times and traces of attempts is read, and what is cut short is
// left out.
func TestAttemptsOfBeforeAreRead(t *testing.T) {
	who := "workernode\x04\x00\x00\x00\x00\x00\x00\x00\x07" + string([]byte{markHeld})
	entry := func(marks int, rest string) string {
		b := binary.BigEndian.AppendUint32(nil, uint32(attemptSize+len(who)+len(rest)))
		b = append(b, byte(store.OutcomeFailed), 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9)
		b = binary.BigEndian.AppendUint16(b, uint16(len(who)|marks))
		return string(b) + who + rest
	}
	due, trace := "\x00\x00\x00\x00\x00\x00\x00\x08", "0123456789abcdef"
	want := store.Attempt{Number: 3, Worker: "worker", Node: "node", Started: 7, Ended: 9, Outcome: store.OutcomeFailed, Error: "no"}
	if h := decodeHistory(entry(0, "no")); len(h.Attempts) != 1 || h.Attempts[0] != want {
		t.Errorf("read as %+v", h)
	}
	if want.Due = 8; decodeHistory(entry(keptDue, due+"no")).Attempts[0] != want {
		t.Error("the due time is not read")
	}
	copy(want.Trace[:], trace)
	both := entry(keptDue|keptTrace, due+trace+"no")
	if h := decodeHistory(both + entry(0, "no")); len(h.Attempts) != 2 || h.Attempts[0] != want {
		t.Errorf("read as %+v", h)
	}
	if h := decodeHistory(entry(keptDue|keptTrace, due+"no")); len(h.Attempts) != 0 {
		t.Errorf("what is cut short is read as %+v", h)
	}
}
