//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// transit is how long a delivery may be under way before the books call the next
// hold of its task too soon.
const transit = 1500 * time.Millisecond

// books are what is known of every task of a run: what was acknowledged, and what
// went over the wire under the workers. They are safe for concurrent use.
type books struct {
	mu     sync.Mutex
	tasks  map[string]*account
	shards []service // of the topic
	slow   bool      // deliveries may be under way for long: their age says nothing
	faults []string

	stored, settled int           // tasks acknowledged, and acked
	unsure          int           // enqueues without an answer
	wasted          int           // attempts that no worker ended
	nacked          int           // that one ended with an error
	stale           int           // deliveries that came after a later one of the same task
	reborn          int           // tasks that were done before their enqueue was answered, and stored again
	begun           time.Time     // of the last enqueue that was acknowledged
	worst           time.Duration // the latest delivery
	slowest         time.Duration // the longest enqueue
}

// account is what is known of one task.
type account struct {
	shard    int
	stored   bool // acknowledged
	answered bool // whatever the answer was
	early    bool // delivered before the answer
	attempt  int  // of the last delivery, 0 for none
	token    string
	former   string    // token of a task that had the id before, see reborn
	until    time.Time // no longer than which the hold of token lasts
	over     bool      // the worker gave the hold back
	acking   bool      // it said that it is done
	settled  bool      // and that was accepted
	history  []string
}

// note adds to what the account says when something is wrong.
func (a *account) note(what, token string) {
	a.history = append(a.history, fmt.Sprintf("%s %s %.4x", time.Now().Format("05.000"), what, token))
}

// service is how a shard was served.
type service struct {
	last time.Time     // delivery
	gap  time.Duration // the longest without one, since watch
	late time.Duration // the latest delivery, since watch
}

func newBooks() *books {
	return &books{tasks: make(map[string]*account), shards: make([]service, trafficShards)}
}

// shardOf is where the servers put an id.
func shardOf(id string) int { return int(xxhash.Sum64String(id) % trafficShards) }

// asked opens the account of a task that is about to be enqueued.
func (b *books) asked(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks[id] = &account{shard: shardOf(id)}
}

// answered notes the answer to an enqueue that began a while ago.
func (b *books) answered(id string, begun time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.tasks[id]
	a.answered, a.stored = true, err == nil
	a.note(fmt.Sprint("enqueued: ", err), "")
	b.slowest = max(b.slowest, time.Since(begun))
	if err != nil {
		b.unsure++
		return
	}
	b.stored++
	if begun.After(b.begun) {
		b.begun = begun
	}
}

// faulty notes what must not be; b.mu is held.
func (b *books) faulty(id string, a *account, format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf("%s: %s, %s", id, fmt.Sprintf(format, args...), strings.Join(a.history, ", ")))
}

// delivered notes that a worker was given a task.
func (b *books) delivered(d *ddqv1.Delivery, now time.Time) {
	id, token, attempt := d.GetTask().GetId(), string(d.GetHoldToken()), int(d.GetTask().GetRetryCount())+1
	due, hold := d.GetTask().GetExecuteTime().AsTime(), time.Duration(d.GetHoldMs())*time.Millisecond
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.tasks[id]
	if a == nil {
		b.faulty(id, &account{}, "nobody enqueued it")
		return
	}
	a.note(fmt.Sprint("attempt ", attempt), token)
	if now.Before(due) {
		b.faulty(id, a, "delivered %v early", due.Sub(now))
	}
	if attempt == 1 && a.attempt > 0 && a.early && a.acking && token != a.token {
		b.reborn++
		*a = account{shard: a.shard, stored: a.stored, answered: a.answered, former: a.token, history: a.history}
	}
	if attempt < a.attempt {
		b.stale++ // overtaken on the way; its settlement will be refused
		return
	}
	switch {
	case a.settled:
		b.faulty(id, a, "delivered again, attempt %d, after its ack was accepted", attempt)
	case attempt == a.attempt && !a.over:
		b.faulty(id, a, "delivered again under the same attempt %d", attempt)
	case attempt > a.attempt && !a.over && !b.slow && now.Before(a.until.Add(-transit)):
		b.faulty(id, a, "attempt %d was held %v before the hold in front of it ended", attempt, a.until.Sub(now))
	}
	switch {
	case attempt == a.attempt, a.attempt == 0 && attempt == 1:
	case a.over:
		b.nacked, b.wasted = b.nacked+1, b.wasted+attempt-a.attempt-1
	case a.attempt == 0:
		b.wasted += attempt - 1
	default:
		b.wasted += attempt - a.attempt
	}
	a.early = a.early || !a.answered
	a.attempt, a.token, a.until, a.over, a.acking = attempt, token, now.Add(hold), false, false
	if b.slow {
		a.until = time.Time{}
	}
	b.served(a.shard, now, now.Sub(due))
}

// served notes that a shard works; b.mu is held.
func (b *books) served(shard int, now time.Time, late time.Duration) {
	s := &b.shards[shard]
	if !s.last.IsZero() {
		s.gap = max(s.gap, now.Sub(s.last))
	}
	s.last, s.late = now, max(s.late, late)
	b.worst = max(b.worst, late)
}

// watch begins to measure how the shards are served.
func (b *books) watch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.shards {
		b.shards[i].gap, b.shards[i].late = 0, 0
	}
}

// watched says how they were served since watch.
func (b *books) watched() (gaps, late []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shards {
		gaps, late = append(gaps, s.gap.Round(time.Millisecond)), append(late, s.late.Round(time.Millisecond))
	}
	return gaps, late
}

// servedSince reports whether an enqueue that began after a moment was
// acknowledged, and every shard delivered something.
func (b *books) servedSince(since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shards {
		if !s.last.After(since) {
			return false
		}
	}
	return b.begun.After(since)
}

// delay says whether deliveries are under way for long from now on.
func (b *books) delay(slow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = slow
	for _, a := range b.tasks {
		a.until = time.Time{} // what was sent before may have been held for as long
	}
}

// settlement is one word of a worker about a task that it held.
type settlement struct {
	id, token string
	kind      settleKind
}

type settleKind uint8

const (
	ack settleKind = iota
	nack
	extend
)

// said notes that a worker settles.
func (b *books) said(id string, token []byte, kind settleKind) settlement {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.tasks[id]; a != nil && a.token == string(token) {
		a.note([...]string{ack: "ack", nack: "nack", extend: "extend"}[kind], string(token))
		a.acking, a.over = a.acking || kind == ack, a.over || kind == nack
	}
	return settlement{id, string(token), kind}
}

// accepted notes that the server agreed to an ack or nack.
func (b *books) accepted(s settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.tasks[s.id]
	switch {
	case a == nil:
		b.faulty(s.id, &account{}, "settled without an account")
	case s.kind != ack, s.token == a.former, a.settled && s.token == a.token:
	case a.token != s.token:
		b.faulty(s.id, a, "an ack was accepted under a token that is not the last one")
	default:
		a.settled = true
		a.note("acked", s.token)
		b.settled++
	}
}

// extended notes that a hold lasts until later.
func (b *books) extended(s settlement, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.tasks[s.id]; a != nil && a.token == s.token && !b.slow {
		a.until = until
	}
}

// open is how many tasks are acknowledged and were never delivered.
func (b *books) open() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.tasks {
		if a.stored && a.attempt == 0 {
			n++
		}
	}
	return n
}

func (b *books) countStored() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored
}

// check reports what must not be.
func (b *books) check(t *testing.T) {
	t.Helper()
	if lost := b.open(); lost > 0 {
		t.Errorf("%d tasks were acknowledged and never delivered", lost)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		t.Errorf("%d faults: %s", len(b.faults), strings.Join(b.faults[:min(5, len(b.faults))], "\n"))
	}
	t.Logf("%d tasks stored, %d enqueues of unknown outcome; %d acks accepted, %d attempts ended with an error, %d wasted; %d deliveries overtaken, %d tasks stored again; latest by %v, slowest enqueue %v",
		b.stored, b.unsure, b.settled, b.nacked, b.wasted, b.stale, b.reborn, b.worst.Round(time.Millisecond), b.slowest.Round(time.Millisecond))
}

// taps returns what makes a client's connection write the books.
func (b *books) taps() []grpc.DialOption {
	stream := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := open(ctx, desc, conn, method, o...)
		return &tap{ClientStream: s, books: b, sent: make(map[uint64][]settlement)}, err
	}
	call := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, do grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if r, ok := req.(*ddqv1.NackRequest); ok {
			b.said(r.GetNack().GetTaskId(), r.GetNack().GetHoldToken(), nack)
		}
		return do(ctx, method, req, reply, conn, o...)
	}
	return []grpc.DialOption{grpc.WithChainStreamInterceptor(stream), grpc.WithChainUnaryInterceptor(call)}
}

// tap is a stream whose messages go into the books.
type tap struct {
	grpc.ClientStream
	books *books

	mu   sync.Mutex
	sent map[uint64][]settlement // by sequence, until they are answered; guarded by mu
}

// SendMsg notes what a worker says.
func (s *tap) SendMsg(m any) error {
	if r, ok := m.(*ddqv1.SubscribeRequest); ok {
		var said []settlement
		for _, a := range r.GetAcks() {
			said = append(said, s.books.said(a.GetTaskId(), a.GetHoldToken(), ack))
		}
		for _, n := range r.GetNacks() {
			said = append(said, s.books.said(n.GetTaskId(), n.GetHoldToken(), nack))
		}
		for _, e := range r.GetExtends() {
			said = append(said, s.books.said(e.GetTaskId(), e.GetHoldToken(), extend))
		}
		s.mu.Lock()
		s.sent[r.GetSequence()] = said
		s.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg notes what a server says.
func (s *tap) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	r, ok := m.(*ddqv1.SubscribeResponse)
	if err != nil || !ok {
		return err
	}
	now := time.Now()
	for _, answer := range r.GetSettled() {
		s.answered(answer, now)
	}
	for _, d := range r.GetDeliveries() {
		s.books.delivered(d, now)
	}
	return nil
}

func (s *tap) answered(m *ddqv1.Settled, now time.Time) {
	results := make(map[string]*ddqv1.SettleResult, len(m.GetResults()))
	for _, r := range m.GetResults() {
		results[string(r.GetHoldToken())] = r
	}
	s.mu.Lock()
	said := s.sent[m.GetSequence()]
	delete(s.sent, m.GetSequence())
	if m.GetPart() { // nothing is said of the others yet
		var told, later []settlement
		for _, what := range said {
			if results[what.token] != nil {
				told = append(told, what)
			} else {
				later = append(later, what)
			}
		}
		said, s.sent[m.GetSequence()] = told, later
	}
	s.mu.Unlock()
	for _, what := range said {
		r := results[what.token]
		switch {
		case r.GetError() != nil:
		case what.kind == extend:
			s.books.extended(what, now.Add(time.Duration(r.GetHoldMs())*time.Millisecond))
		default:
			s.books.accepted(what)
		}
	}
}
