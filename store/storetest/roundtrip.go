package storetest

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func roundTripCases() []entry {
	return []entry{
		{"RoundTrip/EveryField", roundTripFields},
		{"RoundTrip/Payloads", roundTripPayloads},
		{"RoundTrip/BigPayloadsInOneBatch", roundTripBig},
		{"RoundTrip/IDs", roundTripIDs},
		{"RoundTrip/TopicsAndNodes", roundTripNames},
	}
}

// storesOwn are the fields of a task that the caller does not decide, the key, of which
// only the text is kept, and the cell that it tells: see RunCells.
var storesOwn = []string{"Encrypted", "Key", "Indexed", "Attempt", "LastError", "Edits", "Tells", "Journal"}

// checkTask compares what the caller gave with what came back. An empty and an
// absent list of bytes or attributes are the same.
func checkTask(f *fixture, what string, got, want store.Task) {
	f.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range w.NumField() {
		name := w.Type().Field(i).Name
		if slices.Contains(storesOwn, name) || w.Field(i).Kind() == reflect.Slice && w.Field(i).Len()+g.Field(i).Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			f.Fatalf("%s: %s is %.200v, want %.200v", what, name, reflect.Indirect(g.Field(i)), reflect.Indirect(w.Field(i)))
		}
	}
	equal(f, what+": version", got.Version(), want.Version())
}

// checkFull checks that a task has something in every field that the caller decides.
func checkFull(f *fixture, t *store.Task) {
	f.Helper()
	v := reflect.ValueOf(*t)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(storesOwn, name) {
			f.Fatalf("the sample has no %s", name)
		}
	}
}

// survives checks that a task comes back as it was from every state.
func (f *fixture) survives(t *store.Task) {
	f.Helper()
	want := *t
	f.add(t)
	checkTask(f, "pending", f.get(t.ID).Task, want)
	holds := holdsOf(long, t.ID)
	_, held := f.tryHold(holds, store.OK)
	checkTask(f, "held", *held[0].Task, want)
	checkTask(f, "running", f.get(t.ID).Task, want)
	f.nack(store.Nack{ID: t.ID, Token: holds[0].Token, Error: "no luck"})
	retried := f.get(t.ID)
	want.Due = retried.Due
	checkTask(f, "pending again", retried.Task, want)
	waitUntil(f, f.s, retried.Due)
	token := f.hold(t.ID)[0]
	f.ack(long, store.OK, store.Ack{ID: t.ID, Token: token})
	done := f.get(t.ID)
	want.Due = done.Due // of no meaning any more
	checkTask(f, "done", done.Task, want)
}

func roundTripFields(f *fixture) {
	now := f.now()
	f.survives(&store.Task{ID: "bare", Due: now, MaxRetries: 0})
	full := &store.Task{
		ID:      "full",
		Payload: []byte("payload"),
		Attributes: []store.Attribute{
			{Key: "b", Value: "second key, first place"}, {Key: "a", Value: ""}, {Key: "trace-parent", Value: "00-ünïcode-✓"},
			{Key: "a", Value: "again"}, {Key: strings.Repeat("k", 64), Value: strings.Repeat("v", 1024)},
		},
		Due:            now,
		Created:        now - 12345,
		Expires:        now.Add(87600 * long),
		Visibility:     12*long + time.Millisecond,
		MaxRetries:     1000,
		HandlerTimeout: 90 * time.Second,
		Backoff:        &store.Backoff{Kind: store.BackoffExponential, Base: 1500 * time.Millisecond, Max: 24 * long, Jitter: 100},
		Traits: &store.Traits{
			Priority: 9, FairnessKey: "tenant", FairnessWeight: 1000, RateKey: "rate", ConcurrencyKey: "concurrency", OrderingKey: "order",
		},
		RunOf: &store.RunOf{Schedule: "nightly", Occurrence: now - 1, Recipient: "ada", RecipientData: []byte("x")},
		StepOf: &store.StepOf{
			Workflow: "order-17", Topic: "orders", Kind: "order", Name: "ship", Copy: 3, Try: 2, Starts: 4, Undo: true, Input: []byte("in"), Cut: true,
			Inputs:  []store.StepInput{{Step: "charge", Copy: 1, End: store.StepDone, Size: 2, Result: []byte("ok")}, {Step: "approve", End: store.StepFailed, Error: "late"}},
			Journal: []store.JournalEntry{{Name: "weigh", Value: []byte("2 kg"), Kept: 17}},
		},
		Cause:       &store.Cause{Topic: "orders", ID: "17"},
		Trace:       &store.Trace{ID: [16]byte{0, 1, 15: 0xff}, Span: [8]byte{0, 2, 7: 0xfe}, Flags: 3, State: "vendor=a, other=b"},
		Fingerprint: math.MaxUint64,
	}
	checkFull(f, full)
	f.survives(full)
	for id, retries := range map[string]int{"topics": -1, "none": 0, "one": 1, "many": 1 << 20} {
		t := task(id, now)
		t.MaxRetries = retries
		f.survives(t)
	}
	for kind := store.BackoffFixed; kind <= store.BackoffExponential; kind++ {
		t := task("backoff-"+string('0'+rune(kind)), now)
		t.Backoff = &store.Backoff{Kind: kind, Base: time.Millisecond * time.Duration(kind)}
		f.survives(t)
	}
	for id, state := range map[string]string{"bare-trace": "", "long-trace": "k=" + strings.Repeat("v", store.MaxTraceState-2)} {
		t := task(id, now)
		t.Trace = &store.Trace{ID: [16]byte{15: 1}, Span: [8]byte{7: 1}, State: state}
		f.survives(t)
	}
	for id, due := range map[string]store.Millis{"first": 1, "before": now - 1, "decade": now.Add(87600 * long), "9999": 253402300799999} {
		t := task("due-"+id, due)
		f.add(t)
		checkTask(f, t.ID, f.get(t.ID).Task, *t)
	}
}

// everyByte returns n bytes in which every byte value occurs, if n allows.
func everyByte(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

func roundTripPayloads(f *fixture) {
	for id, payload := range map[string][]byte{
		"nil": nil, "empty": {}, "zero": {0}, "bytes": everyByte(256), "newlines": []byte("\r\n$5\r\n*\x00"),
		"64KiB": everyByte(64 << 10), "1MiB": everyByte(1 << 20),
	} {
		t := task(id, f.now())
		t.Payload = payload
		f.survives(t)
	}
}

func roundTripBig(f *fixture) {
	batch := tasks(f.now(), numbered(12)...)
	for i, t := range batch {
		t.Payload = everyByte(1<<20 - i)
	}
	f.add(batch...)
	for some := range slices.Chunk(batch, 3) { // as many as fit into an answer
		_, held := f.tryHold(holdsOf(long, some[0].ID, some[1].ID, some[2].ID), repeat(store.OK, 3)...)
		for i, t := range some {
			checkTask(f, t.ID, *held[i].Task, *t)
		}
	}
	equal(f, "number of listed tasks", len(f.walk(store.KindRunning, 5)), 12)
}

// oddIDs returns ids that are legal and tempt a store into confusion, in order.
func oddIDs() []string {
	ids := []string{
		"a", "A", "aa", "a ", " a", " ", "a:b", "a/b", "a|b", `a"b`, "a'b", `a\b`, "a\\n", "a%00", "a*", "a?", "[a]", "{a}", "{a", "a}", "<a>", "a,b", "a;b", "a=b", "a&b",
		"0", "00", "-1", "1", "1.0", "1e3", "+inf", "-inf", "(1", "[1", "inf", "nan", "nil", "null", "true", "+", "-", "~", "!", "#", "$1", "@", "^", "_", "`",
		"0x10", "9007199254740993", "9007199254740992", "18446744073709551616",
		"ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNO", "ABCDEFGHIJKLMNOPQ", // 16 bytes, as long as a packed UUID
		"0123456789abcdef0123456789abcdef",                      // 32 hex digits
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c",                  // canonical
		"0190F3A4-7C1E-7B3A-9D52-3F6F0E8A1B2C",                  // upper case
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2C",                  // mixed
		"0190f3a47c1e7b3a9d523f6f0e8a1b2c",                      // without hyphens
		"{0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c}",                // in braces
		"urn:uuid:0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c",         // as URN
		"00000000-0000-0000-0000-000000000000",                  // nil
		"ffffffff-ffff-ffff-ffff-ffffffffffff",                  // max
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2",                   // a digit short
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2cc",                 // a digit long
		"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2g",                  // not hex
		"0190f3a47c-1e-7b3a-9d52-3f6f0e8a1b2c",                  // hyphen elsewhere
		"f47ac10b-58cc-4372-a567-0e02b2c3d479", "0190f3a4-7c1e", // another version, a prefix
		strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("~", 128),
	}
	var printable []byte
	for c := byte(' '); c <= '~'; c++ {
		printable = append(printable, c)
		ids = append(ids, "c"+string(c))
	}
	ids = append(ids, string(printable))
	slices.Sort(ids)
	return slices.Compact(ids)
}

func roundTripIDs(f *fixture) {
	ids := oddIDs()
	batch := tasks(f.now()-1000, ids...)
	for i, t := range batch {
		t.Fingerprint = uint64(i)
	}
	f.add(batch...)
	equal(f, "number of pending tasks", f.stats().Pending, int64(len(ids)))
	same(f, "pending tasks", slices.Sorted(slices.Values(f.window())), ids)
	_, held := f.tryHold(holdsOf(long, ids...), repeat(store.OK, len(ids))...)
	for i, id := range ids {
		equal(f, "id of the held task", held[i].Task.ID, id)
		equal(f, "payload of the held task", string(held[i].Task.Payload), "payload of "+id)
		got := f.get(id)
		equal(f, "id", got.ID, id)
		equal(f, "fingerprint", got.Fingerprint, uint64(i))
	}
}

// roundTripNames uses topics and nodes with every character that is allowed.
func roundTripNames(f *fixture) {
	for _, topic := range []string{"0", "A", "a", "a.b", "a_b", "a-b", "Mail.High_prio-2", strings.Repeat("t", 128), "a..b", "9-_."} {
		node := "node " + topic + ":/{}\"'\\*"
		session := f.begin(node, long)
		f.shard = store.Shard{Topic: topic, N: 255}
		f.fence = f.claim(f.shard, session)
		equal(f, "owner", f.stats().Owner, node)
		f.ready("a")
		holds := holdsOf(long, "a")
		holds[0].Worker = "worker " + node
		f.tryHold(holds, store.OK)
		equal(f, "worker", f.get("a").Worker, "worker "+node)
		equal(f, "worker among the running", f.walkRunning(10)["a"].Worker, "worker "+node)
		equal(f, "number of tasks", f.stats().Running, 1)
	}
}
