package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// RunQueues runs the cases of queues and receipts on a store that has them, as RunCells does those of entities.
func RunQueues(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range queueCases() {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			cells, ok := s.(store.Cells)
			if !ok {
				t.Fatalf("%T keeps no entities", s)
			}
			f := newFixture(t, s)
			c.run(&queueFixture{cellFixture{f, cells, f.now()}, cells})
		})
	}
}

// queueFixture is a store with queues, of whose shard the case is the owner.
type queueFixture struct {
	cellFixture
	queues store.Queues
}

type queueEntry struct {
	name string
	run  func(f *queueFixture)
}

func queueCases() []queueEntry {
	return []queueEntry{
		{"Queues/KeepTheOrder", queuesInOrder},
		{"Queues/AreApart", queuesApart},
		{"Queues/PagesSayWhereTheNextBegins", queuePages},
		{"Queues/PagesAreBoundedInBytes", queueBytes},
		{"Queues/NumbersRiseOverAllOfAShard", queueNumbers},
		{"Queues/NumbersFollowTheSendersClock", queueClock},
		{"Queues/FinishForgetsWhatItNames", queueFinish},
		{"Queues/FinishLeavesThoseInBetween", queueFinishApart},
		{"Queues/FinishIsTheOwners", queueFinishFenced},
		{"Queues/FinishIsPartOfTheCommit", queueFinishAtomic},
		{"Queues/EndWithTheShardButNotTheNumbers", queuesDropped},
		{"Receive/Once", receiveOnce},
		{"Receive/SomeSettledLeavesAllAsItWas", receiveSome},
		{"Receive/InAnyOrder", receiveAnyOrder},
		{"Receive/TheHeadRaisesTheFloor", receiveFloor},
		{"Receive/AFloorNeverFalls", receiveFloorStays},
		{"Receive/OfQueuesAreApart", receiveApart},
		{"Receive/AWindowOf1024", receiveWindow},
		{"Receive/TheHeadHasRoom", receiveHead},
		{"Receive/TheLast100RefusedStay", receiveRefused},
		{"Receive/RefusedAboveTheFloorStay", receiveRefusedAbove},
		{"Receive/IsPartOfTheCommit", receiveAtomic},
		{"Receive/SealedTakesMessagesOnly", receiveSealed},
		{"Receive/SealedStillSaysWhatItHas", receiveSealedAsks},
		{"Receive/AnotherServerIsRefused", receiveServer},
		{"Receive/AnIDThatLivesIsAConflict", receiveConflict},
		{"Receive/KeysAreDecidedInTheCommit", receiveKeyed},
		{"Receive/AKeyThatTheCommitChangesIsLeftOut", receiveLeftOut},
		{"Receive/OfOneCallComeOneAfterTheOther", receiveBatch},
		{"Receive/TheInboxIsAQueue", receiveInbox},
		{"Receive/AtOnceByMany", receiveConcurrent},
		{"Receipts/OnlyTheStoreWritesThem", receiptsOwn},
		{"Receipts/Names", receiptNames},
		{"Commit/KeysWithoutAReceive", commitKeyed},
		{"Commit/MalformedQueues", commitMalformed},
	}
}

// message is one of work for a topic.
func message(topic, text string) store.Message {
	return store.Message{To: store.CellID("e" + text[:min(9, len(text))]), Topic: topic, Class: store.ClassWork, Body: []byte(text)}
}

// queue is the queue of work of the fixture's shard for a topic.
func (f *queueFixture) queue(topic string) store.Queue {
	return store.Queue{Source: f.shard, Class: store.ClassWork, To: topic}
}

// from is the queue of work of a shard of another topic for that of the fixture.
func (f *queueFixture) from(topic string, n int) store.Queue {
	return store.Queue{Source: store.Shard{Topic: topic, N: n, Life: 7}, Class: store.ClassWork, To: f.shard.Topic}
}

func (f *queueFixture) send(messages ...store.Message) {
	f.Helper()
	f.commit(store.OK, store.Commit{Send: messages})
}

func (f *queueFixture) page(q store.Queue, after int64, limit int) store.MessagePage {
	f.Helper()
	page, err := f.queues.Messages(f.ctx, f.shard, q, after, limit, 1<<20)
	f.ok("messages", err)
	return page
}

// numbers of what a queue has.
func (f *queueFixture) numbers(q store.Queue) (numbers []int64) {
	f.Helper()
	for _, m := range f.page(q, 0, 10_000).Messages {
		numbers = append(numbers, m.Number)
	}
	return numbers
}

// owned makes one commit under the fence, which must have the expected status.
func (f *queueFixture) owned(want store.Status, c store.Commit) store.CommitResult {
	f.Helper()
	_, results, err := f.cells.Commit(f.ctx, f.shard, &f.fence, []store.Commit{c})
	f.ok("commit", err)
	f.statuses("commit", results, want)
	return results[0]
}

// receive makes a commit with a task for each number.
func (f *queueFixture) receive(want store.Status, q store.Queue, head int64, numbers ...int64) store.CommitResult {
	f.Helper()
	c := store.Commit{Receive: &store.Receive{Queue: q, Head: head, Numbers: numbers}}
	for _, n := range numbers {
		c.Adds = append(c.Adds, task(fmt.Sprint(q.Source.Topic, q.Source.N, "-", n), f.now().Add(long)))
	}
	return f.commit(want, c)
}

func (f *queueFixture) receipt(q store.Queue) store.Receipt {
	f.Helper()
	receipts, err := f.queues.Receipts(f.ctx, f.shard, []store.Queue{q})
	f.ok("receipts", err)
	return one(f.fixture, receipts)
}

func (f *queueFixture) isReceipt(q store.Queue, floor int64, above, refused []int64) {
	f.Helper()
	r := f.receipt(q)
	equal(f.fixture, "floor", r.Floor, floor)
	same(f.fixture, "numbers above the floor", r.Above, above)
	same(f.fixture, "refused numbers", r.Refused, refused)
}

func sorted(numbers []int64) []int64 { return slices.Sorted(slices.Values(numbers)) }

// are checks what a commit that was Received says.
func (f *queueFixture) are(result store.CommitResult, made, refused []int64) {
	f.Helper()
	same(f.fixture, "numbers that were made", sorted(result.Made), made)
	same(f.fixture, "numbers that were refused", sorted(result.Refused), refused)
}

func (f *queueFixture) pending() int64 { f.Helper(); return f.stats().Pending }

func queuesInOrder(f *queueFixture) {
	before := f.now()
	for i := range 5 {
		f.send(message("other", fmt.Sprint("a", i)), message("more", fmt.Sprint("b", i)), message("other", fmt.Sprint("c", i)))
	}
	page := f.page(f.queue("other"), 0, 100)
	equal(f.fixture, "messages", len(page.Messages), 10)
	equal(f.fixture, "head", page.Head, page.Messages[0].Number)
	equal(f.fixture, "next", page.Next, 0)
	for i, m := range page.Messages {
		want := fmt.Sprint([]string{"a", "c"}[i%2], i/2)
		equal(f.fixture, "body", string(m.Body), want)
		equal(f.fixture, "entity", m.To, store.CellID("e"+want))
		equal(f.fixture, "topic", m.Topic, "other")
		equal(f.fixture, "class", m.Class, store.ClassWork)
		if m.At < before || m.At > f.now() {
			f.Fatalf("message is of %v", m.At.Time())
		}
		if i > 0 && m.Number <= page.Messages[i-1].Number {
			f.Fatalf("number %d comes after %d", m.Number, page.Messages[i-1].Number)
		}
	}
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 15)
	equal(f.fixture, "out-box", len(f.parcels(store.OutBox)), 0)
}

func queuesApart(f *queueFixture) {
	classes := []store.Class{store.ClassWork, store.ClassCompletion, store.ClassAsk, store.ClassMove}
	want := make(map[store.Queue]int64)
	for _, life := range []uint64{0, 3, math.MaxUint64} {
		shard := store.Shard{Topic: fmt.Sprintf("lives-%x", life), N: 1}.For(life)
		for k := len(classes) - 1; k >= 0; k-- {
			for _, topic := range []string{"b", "a/b", "a"} {
				_, results, err := f.cells.Commit(f.ctx, shard, nil, []store.Commit{{Send: []store.Message{{To: "ex", Topic: topic, Class: classes[k], Body: []byte("x")}}}})
				f.ok("commit", err)
				f.statuses("commit", results, store.OK)
				q := store.Queue{Source: shard, Class: classes[k], To: topic}
				page, err := f.queues.Messages(f.ctx, shard, q, 0, 10, 1)
				f.ok("messages", err)
				equal(f.fixture, "messages", len(page.Messages), 1)
				want[q] = page.Head
				q.Source.Life++
				page, err = f.queues.Messages(f.ctx, shard, q, 0, 10, 1)
				f.ok("messages", err)
				equal(f.fixture, "messages of another incarnation", len(page.Messages), 0)
				equal(f.fixture, "their head", page.Head, 0)
			}
		}
		for _, limit := range []int{1, 5, 12, 100} {
			var all []store.QueueHead
			var after store.Queue
			for {
				heads, err := f.queues.Queues(f.ctx, shard, after, limit)
				f.ok("queues", err)
				if len(heads) > limit {
					f.Fatalf("%d queues, at most %d", len(heads), limit)
				}
				if len(heads) == 0 {
					break
				}
				all = append(all, heads...)
				after = heads[len(heads)-1].Queue
			}
			equal(f.fixture, "queues", len(all), 12)
			for i, h := range all {
				equal(f.fixture, "head of a queue", h.Number, want[h.Queue])
				if h.At == 0 {
					f.Fatalf("head of %v has no time", h.Queue)
				}
				if i > 0 && all[i-1].Queue.Compare(h.Queue) >= 0 {
					f.Fatalf("queue %v comes behind %v", h.Queue, all[i-1].Queue)
				}
			}
		}
	}
}

func queuePages(f *queueFixture) {
	for i := range 7 {
		f.send(message("other", fmt.Sprint(i)), message("more", fmt.Sprint(i)))
	}
	all := f.numbers(f.queue("other"))
	for limit := 1; limit <= 8; limit++ {
		var got []int64
		after, pages := int64(0), 0
		for {
			page := f.page(f.queue("other"), after, limit)
			equal(f.fixture, "head", page.Head, all[0])
			if len(page.Messages) > limit {
				f.Fatalf("a page of %d has %d", limit, len(page.Messages))
			}
			for _, m := range page.Messages {
				got = append(got, m.Number)
			}
			pages++
			if after = page.Next; after == 0 {
				break
			}
		}
		same(f.fixture, "messages of all pages", got, all)
		equal(f.fixture, fmt.Sprintf("pages of %d", limit), pages, (7+limit-1)/limit)
	}
	page := f.page(f.queue("other"), all[6], 3)
	equal(f.fixture, "messages behind the last", len(page.Messages), 0)
	equal(f.fixture, "next", page.Next, 0)
	equal(f.fixture, "head", page.Head, all[0])
}

func queueBytes(f *queueFixture) {
	large := strings.Repeat("x", 1<<18)
	for range 8 {
		f.send(message("other", large))
	}
	page, err := f.queues.Messages(f.ctx, f.shard, f.queue("other"), 0, 100, 1<<20)
	f.ok("messages", err)
	equal(f.fixture, "messages of a page of 1 MiB", len(page.Messages), 4)
	page, err = f.queues.Messages(f.ctx, f.shard, f.queue("other"), page.Next, 100, 1)
	f.ok("messages", err)
	equal(f.fixture, "messages of a page of a byte", len(page.Messages), 1)
	if page.Next != page.Messages[0].Number {
		f.Fatalf("next is %d behind %d", page.Next, page.Messages[0].Number)
	}
}

func queueNumbers(f *queueFixture) {
	now := f.now()
	f.send(message("a", "1"), message("b", "2"), message("a", "3"))
	f.send(message("c", "4"), message("a", "5"))
	var all []int64
	for _, topic := range []string{"a", "b", "c"} {
		all = append(all, f.numbers(f.queue(topic))...)
	}
	slices.Sort(all)
	equal(f.fixture, "numbers", len(slices.Compact(all)), 5)
	if first := store.Millis(all[0] / 1000); first < now || first > f.now() {
		f.Fatalf("the first number is of %v, want about %v", first.Time(), now.Time())
	}
}

func queueClock(f *queueFixture) {
	ahead := int64(f.now().Add(long)) * 1000
	f.commit(store.OK, store.Commit{Send: []store.Message{message("a", "1"), message("b", "2")}, Clock: ahead})
	f.commit(store.OK, store.Commit{Send: []store.Message{message("a", "3")}, Clock: 5})
	f.send(message("b", "4"))
	same(f.fixture, "numbers", append(f.numbers(f.queue("a")), f.numbers(f.queue("b"))...), []int64{ahead, ahead + 2, ahead + 1, ahead + 3})
}

func queueFinish(f *queueFixture) {
	for i := range 5 {
		f.send(message("a", fmt.Sprint(i)), message("b", fmt.Sprint(i)))
	}
	a, b := f.numbers(f.queue("a")), f.numbers(f.queue("b"))
	f.owned(store.OK, store.Commit{Finish: &store.Finish{Queue: f.queue("a"), Numbers: []int64{a[3], a[0], b[1], 1, a[3]}}})
	same(f.fixture, "what is left", f.numbers(f.queue("a")), []int64{a[1], a[2], a[4]})
	equal(f.fixture, "head", f.page(f.queue("a"), a[2], 1).Head, a[1])
	same(f.fixture, "the other queue", f.numbers(f.queue("b")), b)
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 8)
	f.owned(store.OK, store.Commit{Finish: &store.Finish{Queue: f.queue("a"), Numbers: a}})
	f.owned(store.OK, store.Commit{Finish: &store.Finish{Queue: f.queue("a"), Numbers: a}})
	heads, err := f.queues.Queues(f.ctx, f.shard, store.Queue{}, 10)
	f.ok("queues", err)
	equal(f.fixture, "queues", len(heads), 1)
	equal(f.fixture, "queue that is left", heads[0].Queue, f.queue("b"))
	equal(f.fixture, "its head", heads[0].Number, b[0])
	f.send(message("a", "x"))
	if next := f.numbers(f.queue("a"))[0]; next <= b[4] {
		f.Fatalf("number %d comes after %d", next, b[4])
	}
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 6)
}

// queueFinishApart finishes few messages that lie far from each other.
func queueFinishApart(f *queueFixture) {
	for i := range 40 {
		f.send(message("a", fmt.Sprint(i)))
	}
	a := f.numbers(f.queue("a"))
	f.owned(store.OK, store.Commit{Finish: &store.Finish{Queue: f.queue("a"), Numbers: []int64{a[39], a[20], a[0]}}})
	same(f.fixture, "what is left", f.numbers(f.queue("a")), slices.Concat(a[1:20], a[21:39]))
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 37)
}

func queueFinishFenced(f *queueFixture) {
	f.send(message("a", "x"))
	numbers := f.numbers(f.queue("a"))
	finish := []store.Commit{{Finish: &store.Finish{Queue: f.queue("a"), Numbers: numbers}}}
	former := f.fence
	f.fence = f.claim(f.shard, f.session)
	_, _, err := f.cells.Commit(f.ctx, f.shard, &former, finish)
	f.refused("finish by a former owner", err, store.ErrFenced)
	if _, _, err := f.cells.Commit(f.ctx, f.shard, nil, finish); err == nil {
		f.Fatalf("finish without a fence is taken")
	}
	same(f.fixture, "numbers", f.numbers(f.queue("a")), numbers)
}

func queueFinishAtomic(f *queueFixture) {
	f.send(message("a", "x"))
	numbers := f.numbers(f.queue("a"))
	finish := &store.Finish{Queue: f.queue("a"), Numbers: numbers}
	f.owned(store.Stale, store.Commit{Finish: finish, Puts: []store.Put{{Cell: body("uletter", "x"), If: 5}}})
	same(f.fixture, "numbers", f.numbers(f.queue("a")), numbers)
	f.owned(store.OK, store.Commit{Finish: finish, Puts: []store.Put{{Cell: body("uletter", "x"), If: 0}}})
	equal(f.fixture, "messages", len(f.numbers(f.queue("a"))), 0)
	equal(f.fixture, "letter", string(f.cell("uletter").Body), "x")
}

func queuesDropped(f *queueFixture) {
	ahead := int64(f.now().Add(long)) * 1000
	f.commit(store.OK, store.Commit{Send: []store.Message{message("a", "x")}, Clock: ahead})
	f.receive(store.OK, f.from("far", 0), 5, 5)
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	equal(f.fixture, "messages", len(f.numbers(f.queue("a"))), 0)
	heads, err := f.queues.Queues(f.ctx, f.shard, store.Queue{}, 10)
	f.ok("queues", err)
	equal(f.fixture, "queues", len(heads), 0)
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 0)
	f.isReceipt(f.from("far", 0), 0, nil, nil)
	f.send(message("a", "y"))
	same(f.fixture, "numbers", f.numbers(f.queue("a")), []int64{ahead + 1})
	equal(f.fixture, "messages in the stats", f.stats().Parcels, 1)
}

func receiveOnce(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 10, 10, 12, 17)
	f.isReceipt(q, 9, []int64{10, 12, 17}, nil)
	equal(f.fixture, "tasks", f.pending(), 3)
	f.are(f.receive(store.Received, q, 10, 10, 12, 17), []int64{10, 12, 17}, nil) // its answer was lost
	f.removed("far3-12")
	f.are(f.receive(store.Received, q, 10, 12), []int64{12}, nil) // also when its task is done and gone
	equal(f.fixture, "tasks", f.pending(), 2)
}

func (f *queueFixture) removed(id string) {
	f.Helper()
	_, results, err := f.s.Remove(f.ctx, f.shard, store.Removals(id))
	f.ok("remove", err)
	f.statuses("remove", results, store.OK)
}

func receiveSome(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 10, 12)
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 10, Refused: []int64{13}}})
	result := f.commit(store.Received, store.Commit{
		Receive: &store.Receive{Queue: q, Head: 11, Numbers: []int64{15, 13, 11}, Refused: []int64{12, 14}},
		Adds:    tasks(f.now().Add(long), "a", "b", "c"),
		Puts:    []store.Put{{Cell: body("wx", "x")}},
		Send:    []store.Message{message("other", "x"), {To: "wy", Body: []byte("x")}},
	})
	f.are(result, []int64{12}, []int64{13})
	f.isReceipt(q, 9, []int64{12, 13}, []int64{13})
	f.states(store.StateUnknown, "a", "b", "c")
	equal(f.fixture, "version of the entity", f.cell("wx").Version, 0)
	equal(f.fixture, "messages", len(f.numbers(f.queue("other")))+len(f.parcels(store.InBox)), 0)
	f.receive(store.OK, q, 11, 15, 11)
	f.isReceipt(q, 10, []int64{11, 12, 13, 15}, []int64{13})
}

func receiveAnyOrder(f *queueFixture) {
	q := f.from("far", 3)
	for _, n := range []int64{30, 10, 20, 25, 15} {
		f.receive(store.OK, q, 10, n)
	}
	f.isReceipt(q, 9, []int64{10, 15, 20, 25, 30}, nil)
	f.receive(store.OK, q, 20, 22, 35)
	f.isReceipt(q, 19, []int64{20, 22, 25, 30, 35}, nil)
	for _, n := range []int64{22, 25, 30, 35} {
		f.are(f.receive(store.Received, q, 22, n), []int64{n}, nil)
	}
	f.isReceipt(q, 19, []int64{20, 22, 25, 30, 35}, nil)
}

func receiveFloor(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 10, 14)
	f.receive(store.OK, q, 10, 12) // it waited, while 14 did not
	f.receive(store.OK, q, 14, 16)
	f.isReceipt(q, 13, []int64{14, 16}, nil)
	f.are(f.receive(store.Received, q, 10, 12), []int64{12}, nil)
	f.are(f.receive(store.Received, q, 10, 11), []int64{11}, nil) // not in the queue: nobody can have read it but before it was finished
	f.receive(store.OK, q, 15, 15)
	f.isReceipt(q, 14, []int64{15, 16}, nil)
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 100}})
	f.isReceipt(q, 99, nil, nil)
}

func receiveFloorStays(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 10, 10)
	f.receive(store.OK, q, 20, 22)
	f.receive(store.OK, q, 12, 25) // a late page
	f.isReceipt(q, 19, []int64{22, 25}, nil)
}

func receiveApart(f *queueFixture) {
	base := f.from("far", 3)
	all := []store.Queue{base, f.from("far", 2), f.from("near", 3)}
	other := base
	other.Source.Life = 8
	class := base
	class.Class = store.ClassCompletion
	all = append(all, other, class)
	for i, q := range all {
		f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5 + int64(i)}}})
	}
	receipts, err := f.queues.Receipts(f.ctx, f.shard, all)
	f.ok("receipts", err)
	equal(f.fixture, "receipts", len(receipts), len(all))
	for i := range all {
		same(f.fixture, "numbers", receipts[i].Above, []int64{5 + int64(i)})
	}
	elsewhere, err := f.queues.Receipts(f.ctx, store.Shard{Topic: "mail", N: 1}, all[:1])
	f.ok("receipts", err)
	equal(f.fixture, "floor in another shard", elsewhere[0].Floor, 0)
}

func receiveWindow(f *queueFixture) {
	q := f.from("far", 3)
	settle := func(want store.Status, head, first int64, n int) {
		f.Helper()
		numbers := make([]int64, n)
		for i := range numbers {
			numbers[i] = first + int64(i)
		}
		f.commit(want, store.Commit{Receive: &store.Receive{Queue: q, Head: head, Numbers: numbers}})
	}
	settle(store.OK, 1, 2, 1000)
	settle(store.WindowFull, 1, 2000, 25)
	settle(store.OK, 1, 2000, 24)
	settle(store.WindowFull, 1, 3000, 1)
	settle(store.WindowFull, 2, 3000, 1)
	settle(store.Received, 1, 2023, 2)
	settle(store.OK, 3, 3000, 1) // 2 left the queue
	equal(f.fixture, "numbers above the floor", len(f.receipt(q).Above), store.MaxReceive)
	settle(store.Received, 1, 2, 1)
	settle(store.OK, 4000, 4000, store.MaxReceive)
	settle(store.OK, 6000, 6000, store.MaxReceive)
	equal(f.fixture, "numbers above the floor", len(f.receipt(q).Above), store.MaxReceive)
}

// receiveHead has what is behind the head fill the window, and then the head: it must not wait for that.
func receiveHead(f *queueFixture) {
	q := f.from("far", 3)
	var behind []int64
	for n := range int64(store.MaxReceive) {
		behind = append(behind, 100+n)
	}
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 10, Numbers: behind}})
	f.commit(store.WindowFull, store.Commit{Receive: &store.Receive{Queue: q, Head: 10, Numbers: []int64{11}}})
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 10, Numbers: []int64{12, 10, 5000}, Refused: []int64{13}}})
	equal(f.fixture, "numbers above the floor", len(f.receipt(q).Above), store.MaxReceive+4)
	f.receive(store.Received, q, 10, 10)
	f.commit(store.WindowFull, store.Commit{Receive: &store.Receive{Queue: q, Head: 11, Numbers: []int64{14}}})
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 11, Refused: []int64{11}}})
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 5001, Numbers: []int64{5002}}}) // the others left the queue
	f.isReceipt(q, 5000, []int64{5002}, []int64{11, 13})

	// What a keyed task leaves to the next commit has no room of its own, and takes none from the others.
	q = f.from("far", 4)
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 10, Numbers: behind}})
	f.commit(store.OK, store.Commit{Adds: []*store.Task{f.keyed("first", "k", store.KeyReturn, 1), f.keyed("second", "k", store.KeyReturn, 2)}, Receive: &store.Receive{Queue: q, Head: 11, Numbers: []int64{12, 11}}})
	equal(f.fixture, "numbers above the floor", len(f.receipt(q).Above), store.MaxReceive+1)
	f.receive(store.Received, q, 11, 12)
	f.receive(store.OK, q, 11, 11)
}

func receiveRefused(f *queueFixture) {
	q := f.from("far", 3)
	refuse := func(head int64, numbers ...int64) {
		f.Helper()
		f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: head, Refused: numbers}})
	}
	var all []int64
	for n := int64(10); n < 140; n++ {
		refuse(n, n)
		all = append(all, n)
	}
	f.receive(store.OK, q, 1000, 1000)
	f.isReceipt(q, 999, []int64{1000}, all[30:])
	f.are(f.receive(store.Received, q, 30, 39, 40, 139), []int64{39}, []int64{40, 139})
	f.commit(store.Received, store.Commit{Receive: &store.Receive{Queue: q, Head: 40, Refused: []int64{40}}})
}

func receiveRefusedAbove(f *queueFixture) {
	q := f.from("far", 3)
	var all []int64
	for n := int64(1); n <= 300; n++ {
		all = append(all, n)
	}
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 1, Refused: all}})
	f.isReceipt(q, 0, all, all)
	result := f.commit(store.Received, store.Commit{Receive: &store.Receive{Queue: q, Head: 1, Refused: all}}) // its answer was lost
	f.are(result, nil, all)
	f.receive(store.OK, q, 51, 500)
	f.isReceipt(q, 50, append(slices.Clone(all[50:]), 500), all[50:])
	f.receive(store.OK, q, 290, 501)
	f.isReceipt(q, 289, append(slices.Clone(all[289:]), 500, 501), all[200:])
}

func receiveAtomic(f *queueFixture) {
	q := f.from("far", 3)
	receive := &store.Receive{Queue: q, Head: 5, Numbers: []int64{5, 6}}
	f.put(store.OK, 0, body("wa", "one"))
	f.commit(store.Stale, store.Commit{Receive: receive, Puts: []store.Put{{Cell: body("wa", "two"), If: 7}}})
	f.commit(store.HoldLost, store.Commit{Receive: receive, Under: []store.Holder{{ID: "absent"}}})
	f.isReceipt(q, 0, nil, nil)
	f.commit(store.OK, store.Commit{
		Receive: receive, Adds: tasks(f.now().Add(long), "a"), Puts: []store.Put{{Cell: body("wa", "two"), If: 1}},
		Send: []store.Message{{To: "wa", Body: []byte("in")}, message("other", "on")},
	})
	f.isReceipt(q, 4, []int64{5, 6}, nil)
	f.states(store.StateScheduled, "a")
	equal(f.fixture, "entity", string(f.cell("wa").Body), "two")
	equal(f.fixture, "inbox", len(f.parcels(store.InBox)), 1)
	equal(f.fixture, "queue", len(f.numbers(f.queue("other"))), 1)
}

func receiveSealed(f *queueFixture) {
	q := f.from("far", 3)
	f.put(store.OK, 0, body("wa", "one"))
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	receive := func(n int64) *store.Receive { return &store.Receive{Queue: q, Head: 5, Numbers: []int64{n}} }
	f.receive(store.Closed, q, 5, 5)
	change := []store.Put{{Cell: body("wa", "two"), If: 1}}
	f.commit(store.Closed, store.Commit{Receive: receive(5), Adds: tasks(f.now(), "a"), Puts: change})
	f.commit(store.Closed, store.Commit{Receive: receive(5), Puts: append(slices.Clone(change), store.Put{Cell: body("wb/child", "x")})})
	f.commit(store.Closed, store.Commit{Receive: &store.Receive{Queue: q, Head: 5, Refused: []int64{5}}, Puts: change})
	f.isReceipt(q, 0, nil, nil)
	equal(f.fixture, "entity", string(f.cell("wa").Body), "one")
	f.commit(store.OK, store.Commit{Receive: receive(6), Send: []store.Message{{To: "wa", Body: []byte("end")}}})
	f.commit(store.OK, store.Commit{Receive: receive(7), Puts: change})
	f.isReceipt(q, 4, []int64{6, 7}, nil)
	equal(f.fixture, "inbox", len(f.parcels(store.InBox)), 1)
}

func receiveSealedAsks(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 5, 5, 7)
	f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 5, Refused: []int64{6}}})
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.isReceipt(q, 4, []int64{5, 6, 7}, []int64{6})
	f.are(f.receive(store.Received, q, 5, 5, 6, 8), []int64{5}, []int64{6})
}

func receiveServer(f *queueFixture) {
	stamp, _, err := f.cells.Wakes(f.ctx, f.shard, store.WakeQuery{Limit: 1})
	f.ok("wakes", err)
	q := f.from("far", 3)
	receive := &store.Receive{Queue: q, Head: 5, Numbers: []int64{5}}
	if stamp.Server != 0 {
		_, _, err = f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{{Receive: receive, From: stamp.Server + 1}})
		f.refused("receive as of another server", err, store.ErrAnotherServer)
		f.isReceipt(q, 0, nil, nil)
	}
	f.commit(store.OK, store.Commit{Receive: receive, From: stamp.Server})
	f.isReceipt(q, 4, []int64{5}, nil)
}

func receiveConflict(f *queueFixture) {
	q := f.from("far", 3)
	f.scheduled("lives")
	receive := &store.Receive{Queue: q, Head: 5, Numbers: []int64{5, 6}}
	due := f.now().Add(long)
	result := f.commit(store.Conflict, store.Commit{Receive: receive, Adds: tasks(due, "new", "lives")})
	equal(f.fixture, "task in the way", result.ID, "lives")
	f.states(store.StateUnknown, "new")
	f.isReceipt(q, 0, nil, nil)
	receive.Numbers = []int64{5, 6}
	f.commit(store.OK, store.Commit{Receive: receive, Adds: tasks(due, "new")}) // 6 is there: the same fingerprint
	f.isReceipt(q, 4, []int64{5, 6}, nil)
	f.commit(store.Received, store.Commit{Receive: receive, Adds: tasks(due, "new", "lives")}) // and not a conflict
}

// keyed is a task under a key.
func (f *queueFixture) keyed(id, key string, rule store.KeyConflict, fingerprint uint64) *store.Task {
	f.Helper()
	t := task(id, f.now().Add(long))
	t.Key, t.Fingerprint = &store.Key{Text: key, OnConflict: rule, Window: long}, fingerprint
	return t
}

func receiveKeyed(f *queueFixture) {
	q := f.from("far", 3)
	_, _, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{
		f.keyed("one", "k1", store.KeyReturn, 1), f.keyed("two", "k2", store.KeyReturn, 2), f.keyed("three", "k3", store.KeyReturn, 3),
	})
	f.ok("add keyed", err)
	held := f.keyed("gone", "k4", store.KeyReturn, 4)
	held.Due = f.now() - 1000
	_, _, err = f.s.AddKeyed(f.ctx, f.shard, []*store.Task{held})
	f.ok("add keyed", err)
	f.hold("gone")
	f.scheduled("lives")
	traits := f.keyed("replacement", "k3", store.KeyReplace, 33)
	traits.Payload = []byte("of the replacement")
	commit := store.Commit{
		Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5, 6, 7, 8, 9, 10, 11, 12, 13}, Refused: []int64{14}},
		Adds: []*store.Task{
			f.keyed("free", "k0", store.KeyReject, 10),  // 5: added
			f.keyed("again", "k1", store.KeyReturn, 11), // 6: duplicate
			f.keyed("taken", "k2", store.KeyReject, 12), // 7: refused
			traits, // 8: replaced
			f.keyed("passed", "k4", store.KeyReplace, 14),  // 9: passed
			task("plain", f.now().Add(long)),               // 10
			f.keyed("lives", "k5", store.KeyReject, 15),    // 11: conflict, refused
			f.keyed("one", "k6", store.KeyReject, 1),       // 12: left out, as the commit looked at one
			f.keyed("unrelated", "k7", store.KeyReturn, 7), // 13: added
		},
		Send: []store.Message{{To: "wa", Body: []byte("x")}},
	}
	want := []store.Status{store.Added, store.Duplicate, store.Taken, store.Replaced, store.Passed, store.Added, store.Conflict, store.LeftOut, store.Added}
	result := f.commit(store.OK, commit)
	f.statuses("adds", result.Adds, want...)
	ids := []string{"free", "one", "two", "three", "passed", "plain", "lives", "one", "unrelated"}
	for i, id := range ids {
		equal(f.fixture, fmt.Sprintf("id of the task of %d", i+5), result.Adds[i].ID, id)
	}
	f.isReceipt(q, 4, []int64{5, 6, 7, 8, 9, 10, 11, 13, 14}, []int64{7, 11, 14})
	f.states(store.StateScheduled, "free", "one", "two", "three", "passed", "plain", "lives", "unrelated")
	f.states(store.StateUnknown, "again", "taken", "replacement")
	equal(f.fixture, "payload of the task that was replaced", string(f.get("three").Payload), "of the replacement")
	equal(f.fixture, "tasks", f.pending(), 8)

	again := f.commit(store.Received, commit) // its answer was lost: all is as it was
	f.are(again, []int64{5, 6, 8, 9, 10, 13}, []int64{7, 11, 14})
	equal(f.fixture, "inbox", len(f.parcels(store.InBox)), 1)
	equal(f.fixture, "version of the task that was replaced", f.get("three").Edits, 1)
	rest := f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{12}}, Adds: []*store.Task{f.keyed("one", "k6", store.KeyReject, 1)}})
	f.statuses("adds", rest.Adds, store.Duplicate) // the id lives, with the same fingerprint
	equal(f.fixture, "tasks", f.pending(), 8)
	_, taken, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{f.keyed("x", "k0", store.KeyReject, 99), f.keyed("y", "k4", store.KeyReject, 99)})
	f.ok("add keyed", err)
	f.statuses("add under keys that the commit took", taken, store.Taken, store.Taken)
}

func receiveLeftOut(f *queueFixture) {
	q := f.from("far", 3)
	f.ready("done")
	token := f.hold("done")[0]
	keyed := f.keyed("holder", "k1", store.KeyReturn, 1)
	_, _, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{keyed})
	f.ok("add keyed", err)
	result := f.commit(store.OK, store.Commit{
		Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5, 6, 7, 8}},
		Adds: []*store.Task{
			f.keyed("a", "k0", store.KeyReturn, 1), f.keyed("b", "k0", store.KeyReturn, 2),
			f.keyed("done", "k2", store.KeyReturn, 3), f.keyed("c", "k1", store.KeyReplace, 4),
		},
		Acks: []store.Ack{{ID: "done", Token: token}}, Removes: []store.Remove{{ID: "holder"}},
	})
	f.statuses("adds", result.Adds, store.Added, store.LeftOut, store.LeftOut, store.LeftOut)
	f.isReceipt(q, 4, []int64{5}, nil)
	f.states(store.StateUnknown, "b", "done", "holder", "c")
	result = f.commit(store.OK, store.Commit{
		Receive: &store.Receive{Queue: q, Head: 6, Numbers: []int64{6, 7, 8}},
		Adds:    []*store.Task{f.keyed("b", "k0", store.KeyReturn, 2), f.keyed("done", "k2", store.KeyReturn, 3), f.keyed("c", "k1", store.KeyReplace, 4)},
	})
	f.statuses("adds", result.Adds, store.Duplicate, store.Added, store.Passed)
	f.isReceipt(q, 5, []int64{6, 7, 8}, nil)
}

func receiveBatch(f *queueFixture) {
	a, b := f.from("far", 3), f.from("near", 1)
	receive := func(q store.Queue, head int64, numbers ...int64) store.Commit {
		return store.Commit{Receive: &store.Receive{Queue: q, Head: head, Numbers: numbers}, Send: []store.Message{message("other", fmt.Sprint(numbers)), {To: "wa", Body: []byte("x")}}}
	}
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{
		receive(a, 5, 5, 6), receive(b, 5, 5), receive(a, 5, 6, 7), receive(a, 7, 8), receive(b, 5, 5), receive(b, 6, 9),
	})
	f.ok("commit", err)
	f.statuses("commits", results, store.OK, store.OK, store.Received, store.OK, store.Received, store.OK)
	f.are(results[2], []int64{6}, nil)
	f.isReceipt(a, 6, []int64{8}, nil)
	f.isReceipt(b, 5, []int64{9}, nil)
	equal(f.fixture, "inbox", len(f.parcels(store.InBox)), 4)
	bodies := ""
	for _, m := range f.page(f.queue("other"), 0, 10).Messages {
		bodies += string(m.Body)
	}
	equal(f.fixture, "queue", bodies, "[5 6][5][8][9]")
	f.are(f.receive(store.Received, b, 5, 5), []int64{5}, nil)
}

// receiveInbox hands messages of the inbox on to the topic that they are for.
func receiveInbox(f *queueFixture) {
	f.commit(store.OK, store.Commit{Send: []store.Message{{To: "hx", Body: []byte("1")}, {To: "hx", Body: []byte("2")}}})
	in := f.parcels(store.InBox)
	q := store.Queue{Source: f.shard, Class: store.ClassInbox, To: f.shard.Topic}
	commit := store.Commit{
		Receive: &store.Receive{Queue: q, Head: in[0].Number, Numbers: []int64{in[0].Number, in[1].Number}}, Take: in[1].Number,
		Send: []store.Message{{To: "wx", Topic: "home", Class: store.ClassCompletion, Body: []byte("1")}, {To: "wx", Topic: "home", Class: store.ClassCompletion, Body: []byte("2")}},
	}
	f.owned(store.OK, commit)
	f.are(f.owned(store.Received, commit), []int64{in[0].Number, in[1].Number}, nil)
	equal(f.fixture, "inbox", len(f.parcels(store.InBox)), 0)
	home := store.Queue{Source: f.shard, Class: store.ClassCompletion, To: "home"}
	equal(f.fixture, "completions", len(f.numbers(home)), 2)
	// One commit receives in the shard that it finishes in.
	numbers := f.numbers(home)
	f.send(message(f.shard.Topic, "self"))
	self := f.queue(f.shard.Topic)
	own := f.numbers(self)
	f.owned(store.OK, store.Commit{
		Receive: &store.Receive{Queue: self, Head: own[0], Numbers: own}, Adds: tasks(f.now().Add(long), "self"), Finish: &store.Finish{Queue: self, Numbers: own},
	})
	f.states(store.StateScheduled, "self")
	equal(f.fixture, "own queue", len(f.numbers(self)), 0)
	same(f.fixture, "completions", f.numbers(home), numbers)
}

// receiveConcurrent has many deliver overlapping parts of a queue.
func receiveConcurrent(f *queueFixture) {
	const numbers, workers = 60, 6
	q := f.from("far", 3)
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	due := f.now().Add(long)
	for w := range workers {
		wg.Go(func() {
			for k := range numbers {
				n := int64(1 + (k*(w+1)*7+w)%numbers)
				rest := []int64{n, 1 + n%numbers}
				for len(rest) > 0 {
					c := store.Commit{Receive: &store.Receive{Queue: q, Head: 1, Numbers: rest}}
					for _, n := range rest {
						c.Send = append(c.Send, store.Message{To: "wa", Body: []byte(fmt.Sprint(n))})
						c.Adds = append(c.Adds, task(fmt.Sprint(w, "-", n), due)) // an id of each worker's own: only the receipt keeps them apart
					}
					_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{c})
					if err != nil {
						errs <- err
						return
					}
					if results[0].Status == store.OK {
						break
					}
					rest = slices.DeleteFunc(slices.Clone(rest), func(n int64) bool { return slices.Contains(results[0].Made, n) })
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		f.ok("receive", err)
	}
	seen := make(map[string]int)
	for _, m := range f.parcels(store.InBox) {
		seen[string(m.Body)]++
	}
	equal(f.fixture, "messages that were made", len(seen), numbers)
	for n, times := range seen {
		equal(f.fixture, "times that "+n+" was made", times, 1)
	}
	equal(f.fixture, "tasks", f.pending(), numbers)
}

func receiptsOwn(f *queueFixture) {
	q := f.from("far", 3)
	f.receive(store.OK, q, 5, 5)
	for _, ifVersion := range []int64{0, 1, store.AnyVersion} {
		_, _, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{{Puts: []store.Put{{Cell: body(q.ReceiptID(), "x"), If: ifVersion}}}})
		if err == nil {
			f.Fatalf("a receipt is written by a put")
		}
	}
	cells, _, err := f.cells.CellPage(f.ctx, f.shard, store.CellTally, "", 10)
	f.ok("cell page", err)
	of, is := store.ReceiptOf(one(f.fixture, cells).ID, f.shard.Topic)
	equal(f.fixture, "is a receipt", is, true)
	equal(f.fixture, "queue of the receipt", of, q)
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: store.MaxDue, Limit: 5}), "[]")
	f.put(store.Stale, cells[0].Version+1, store.Cell{ID: q.ReceiptID()})
	f.receive(store.OK, q, 5, 6)
	f.put(store.Stale, cells[0].Version, store.Cell{ID: q.ReceiptID()}) // something came meanwhile
	f.put(store.OK, cells[0].Version+1, store.Cell{ID: q.ReceiptID()})
	f.isReceipt(q, 0, nil, nil)
	f.receive(store.OK, q, 7, 7)
	f.isReceipt(q, 6, []int64{7}, nil)
}

func receiptNames(f *queueFixture) {
	long := strings.Repeat("n", store.MaxNamespaceBytes) + "/" + strings.Repeat("t", 128)
	for _, q := range []store.Queue{
		{Source: store.Shard{Topic: long, N: 65535, Life: math.MaxUint64}, Class: store.ClassMove, To: "mail"},
		{Source: store.Shard{Topic: "acme/mail", N: 0}, Class: store.ClassAsk, To: "mail"},
	} {
		of, is := store.ReceiptOf(q.ReceiptID(), "mail")
		if !is || of != q || len(q.ReceiptID()) > store.MaxCellKey {
			f.Fatalf("receipt %q of %v is that of %v", q.ReceiptID(), q, of)
		}
		f.commit(store.OK, store.Commit{Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5}}})
		f.isReceipt(q, 4, []int64{5}, nil)
	}
}

func commitKeyed(f *queueFixture) {
	f.ready("parent")
	token := f.hold("parent")[0]
	before := f.seq()
	commit := store.Commit{
		Acks: []store.Ack{{ID: "parent", Token: token}},
		Adds: []*store.Task{f.keyed("a", "k", store.KeyReject, 1), f.keyed("b", "k2", store.KeyReject, 2), task("plain", f.now().Add(long))},
	}
	f.statuses("adds", f.commit(store.OK, commit).Adds, store.Added, store.Added, store.Added)
	equal(f.fixture, "seq", f.seq(), before+1)
	f.commit(store.HoldLost, commit)
	result := f.commit(store.OK, store.Commit{Adds: []*store.Task{f.keyed("c", "k", store.KeyReject, 3), f.keyed("a", "k", store.KeyReject, 1)}})
	f.statuses("adds", result.Adds, store.Taken, store.LeftOut)
	equal(f.fixture, "state of the task that has the key", result.Adds[0].State, store.StateScheduled)
	equal(f.fixture, "stats say that there are keys", f.stats().Keys, true)
	unkeyed := f.commit(store.OK, store.Commit{Adds: tasks(f.now().Add(long), "d")})
	equal(f.fixture, "results of tasks without a key", len(unkeyed.Adds), 0)
	f.states(store.StateScheduled, "a", "b", "plain", "d")
	f.states(store.StateUnknown, "c", "parent")
}

func commitMalformed(f *queueFixture) {
	q := f.from("far", 3)
	to := q
	to.To = "other"
	class := q
	class.Class = 9
	numbers := make([]int64, store.MaxReceive+1)
	for i := range numbers {
		numbers[i] = int64(5 + i)
	}
	source := store.Finish{Queue: f.from("far", 3), Numbers: []int64{1}}
	for name, c := range map[string]store.Commit{
		"to another topic":         {Receive: &store.Receive{Queue: to, Head: 5, Numbers: []int64{5}}},
		"of an unknown class":      {Receive: &store.Receive{Queue: class, Head: 5, Numbers: []int64{5}}},
		"without a head":           {Receive: &store.Receive{Queue: q, Numbers: []int64{5}}},
		"before the head":          {Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{4}}},
		"twice":                    {Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5}, Refused: []int64{5}}},
		"too many":                 {Receive: &store.Receive{Queue: q, Head: 5, Numbers: numbers}},
		"of fewer than it adds":    {Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{5}}, Adds: tasks(5, "a", "b")},
		"beyond all clocks":        {Receive: &store.Receive{Queue: q, Head: 5, Numbers: []int64{store.MaxNumber}}},
		"a clock that is no clock": {Send: []store.Message{message("a", "x")}, Clock: store.MaxNumber},
		"sent to no topic":         {Send: []store.Message{{To: "wa", Class: store.ClassWork, Body: []byte("x")}}},
		"sent to the inbox class":  {Send: []store.Message{{To: "wa", Topic: "a", Class: store.ClassInbox, Body: []byte("x")}}},
		"finish of another source": {Finish: &source},
		"finish of too many":       {Finish: &store.Finish{Queue: f.queue("a"), Numbers: numbers}},
	} {
		if _, _, err := f.cells.Commit(f.ctx, f.shard, &f.fence, []store.Commit{c}); err == nil {
			f.Fatalf("a commit that is malformed (%s) is made", name)
		}
	}
	f.isReceipt(q, 0, nil, nil)
}
