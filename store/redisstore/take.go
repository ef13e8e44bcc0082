package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// taking numbers the rates and caps of one Take as its script does, from 1.
type taking struct {
	q           *store.Take
	rates, caps []store.LimitKey
	number      map[store.Limit]int
}

func newTaking(q *store.Take) *taking {
	t := &taking{q: q, number: make(map[store.Limit]int)}
	t.of(store.Limit{Key: store.LimitKey{Topic: q.Topic}, Rate: true})
	t.of(store.Limit{Key: store.CapKey(q.Topic, "")})
	t.of(store.Limit{Key: store.CapKey(q.Topic, store.NamespaceCap)})
	return t
}

// of is the number of a rate or cap.
func (t *taking) of(l store.Limit) int64 {
	n, known := t.number[l]
	if !known {
		all := &t.caps
		if l.Rate {
			all = &t.rates
		}
		*all = append(*all, l.Key)
		n = len(*all)
		t.number[l] = n
	}
	return int64(n)
}

// ofWant is the number of the rate and cap of the keys of a want, 0 for those without a limit.
func (t *taking) ofWant(w *store.Want) (rate, most int64) {
	if w.RateKey != "" && t.q.Limits.KeyRate.Limited() {
		rate = t.of(store.Limit{Key: store.LimitKey{Topic: t.q.Topic, Key: w.RateKey}, Rate: true})
	}
	if w.CapKey != "" && t.q.Limits.KeyConcurrency > 0 {
		most = t.of(store.Limit{Key: store.CapKey(t.q.Topic, w.CapKey)})
	}
	return rate, most
}

// keys are those of the script. In a Cluster the cap of the namespace lies in another slot, and is not looked at there.
func (t *taking) keys(s *core) []string {
	keys := make([]string, 0, 1+3*len(t.rates)+3*len(t.caps))
	keys = append(keys, s.limitKey("calls", t.rates[0]))
	for _, k := range t.rates {
		keys = append(keys, s.limitKey("rate", k), s.limitKey("line", k), s.limitKey("line-turns", k))
	}
	for i, k := range t.caps {
		if i == 1 && s.conn.IsCluster() {
			k = t.caps[0]
		}
		keys = append(keys, s.limitKey("held", k), s.limitKey("waiting", k), s.limitKey("turns", k))
	}
	return keys
}

// args are those of the script. They number what the keys are of.
func (t *taking) args(taken int) *args {
	q := t.q
	tail := newArgs(16+2*len(q.Wants)+len(q.Holders)+2*len(q.Free), 1024)
	groups := permitGroups(q.Free)
	tail.int(int64(len(groups)))
	for _, g := range groups {
		tail.int(t.of(store.Limit{Key: q.Free[g[0]].Key}))
		tail.int(int64(len(g)))
		for _, i := range g {
			tail.tok(q.Free[i].Holder)
		}
	}
	marks := q.Marks()
	tail.int(int64(len(marks)))
	for _, m := range marks {
		tail.int(t.of(store.Limit{Key: m.Key, Rate: true}))
		tail.int(int64(m.Kind))
		tail.int(m.From)
		tail.int(m.To)
	}
	tail.int(int64(len(q.Leave)))
	for _, l := range q.Leave {
		tail.int(int64(bit(l.Rate)))
		tail.int(t.of(l))
	}
	tail.int(int64(len(q.Holders)))
	for _, h := range q.Holders {
		tail.tok(h)
	}
	tail.int(int64(len(q.Wants)))
	for i := range q.Wants {
		rate, most := t.ofWant(&q.Wants[i])
		tail.int(rate)
		tail.int(most)
	}

	a := newArgs(25+len(tail.ends), 256+len(tail.buf))
	a.str(strconv.FormatUint(q.Call, 10))
	a.str(q.Node)
	a.str(store.LineName(q.Node, q.Topic, t.caps[1]))
	a.int(int64(q.Until))
	a.int(q.Ahead().Microseconds())
	a.int(int64(bit(q.Limits.DeadLetter)))
	a.int(int64(len(t.rates)))
	a.int(int64(len(t.caps)))
	a.int(int64(taken))
	for _, r := range [...]store.Rate{q.Limits.Rate, q.Limits.KeyRate} {
		a.int(int64(r.Kind))
		a.int(int64(r.Count))
		a.int(r.Period.Microseconds())
		a.int(int64(r.Most()))
	}
	a.int(int64(q.Limits.Concurrency))
	a.int(int64(q.Limits.Namespace))
	a.int(int64(q.Limits.KeyConcurrency))
	a.int(min(q.Life, store.MaxTokenLife).Microseconds())
	a.append(tail)
	return a
}

// Take implements store.Taker. Replicas are waited for where there are caps, as by Acquire.
func (s *limits) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	switch {
	case !s.conn.IsCluster():
		return s.takeOnce(ctx, q, -1)
	case s.byTopic:
		return s.takeInCluster(ctx, q)
	}
	return nil, store.ErrNoTake
}

// takeInCluster takes permits of the namespace before all else, for each holder that may have a want, and frees those
// behind that were not used: its cap lies elsewhere. In its line nodes keep their turns, as for Acquire.
func (s *limits) takeInCluster(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	key := store.CapKey(q.Topic, store.NamespaceCap)
	here, free := *q, []store.Permit(nil)
	here.Free, here.Leave = nil, nil
	for _, p := range q.Free {
		if p.Key == key {
			free = append(free, p)
		} else {
			here.Free = append(here.Free, p)
		}
	}
	waits := store.Acquire{Key: key, Max: q.Limits.Namespace, Node: store.LineName(q.Node, q.Topic, key), Until: q.Until}
	leaves := false
	for _, l := range q.Leave {
		if l.Key == key {
			leaves = true
		} else {
			here.Leave = append(here.Leave, l)
		}
	}
	told, err := s.freeOf(ctx, free)
	if err != nil {
		return nil, err
	}
	taken := -1
	if q.Limits.Namespace > 0 {
		waits.Holders = q.Holders[:min(len(q.Holders), len(q.Wants))]
		taken = 0
		if leaves || len(waits.Holders) > 0 {
			got, err := s.Acquire(ctx, []store.Acquire{waits})
			if err != nil {
				return nil, err
			}
			taken = got[0].N
		}
	}
	reply, err := s.takeOnce(ctx, &here, taken)
	if err != nil && !errors.Is(err, store.ErrUnavailable) || taken < 0 {
		return reply, err
	}
	used, lacked := 0, false
	if reply != nil {
		for i := range reply.Wants {
			switch w := &reply.Wants[i]; {
			case w.Status == store.Granted:
				used++
			case w.Status == store.NoPermit && w.Lacks.Key == key:
				lacked = true
			}
		}
	}
	if taken < len(waits.Holders) && !lacked { // it waits for none
		waits.Holders = nil
		if _, err := s.Acquire(ctx, []store.Acquire{waits}); err != nil {
			return nil, err
		}
	}
	var unused []store.Permit
	for i := used; i < taken; i++ {
		unused = append(unused, store.Permit{Key: key, Holder: q.Holders[i]})
	}
	again, freeErr := s.freeOf(ctx, unused)
	if err := errors.Join(err, freeErr); err != nil {
		return nil, err
	}
	if len(again) > 0 {
		told = again
	}
	for i, name := range told {
		n := store.Notice{Limit: store.Limit{Key: key}, After: time.Duration(min(2, i)) * store.LineTurn}
		if n.Node, n.Topic = store.FromLine(name, q.Topic); name != waits.Node {
			reply.Notices = append(reply.Notices, n)
		}
	}
	return reply, nil
}

// freeOf frees permits of one key, and returns the names in line for it.
func (s *limits) freeOf(ctx context.Context, permits []store.Permit) ([]string, error) {
	if len(permits) == 0 {
		return nil, nil
	}
	waiting, err := s.Free(ctx, permits)
	if err != nil {
		return nil, err
	}
	return waiting[0], nil
}

// takeOnce runs the script. Of the namespace so many permits are taken already; -1: the script takes them.
func (s *limits) takeOnce(ctx context.Context, q *store.Take, taken int) (*store.TakeReply, error) {
	t := newTaking(q)
	a := t.args(taken)
	v, err := s.conn.RunAndWait(ctx, s.lua.take, q.Limits.Capped() && len(q.Holders) > 0, t.keys(s.core), a.values())
	if err != nil {
		return nil, conn.WriteError("take", err)
	}
	reply, ok := t.decode(text(v))
	if !ok {
		return nil, conn.WriteError("take", fmt.Errorf("%w: %.200q", conn.ErrReply, v))
	}
	return reply, nil
}

// replyInput reads what a script packed.
type replyInput struct {
	b     string
	short bool
}

func (in *replyInput) bytes(n int) string {
	if len(in.b) < n {
		in.b, in.short = "", true
		return string(make([]byte, n))
	}
	b := in.b[:n]
	in.b = in.b[n:]
	return b
}

func (in *replyInput) byte() byte  { return in.bytes(1)[0] }
func (in *replyInput) two() int    { return int(binary.BigEndian.Uint16([]byte(in.bytes(2)))) }
func (in *replyInput) four() int64 { return int64(binary.BigEndian.Uint32([]byte(in.bytes(4)))) }
func (in *replyInput) eight() int64 {
	return int64(binary.BigEndian.Uint64([]byte(in.bytes(8))))
}
func (in *replyInput) moment() time.Time { return time.UnixMicro(in.eight()).UTC() }

// decode reads the answer of the script; false: it is none.
func (t *taking) decode(b string) (*store.TakeReply, bool) {
	q, in := t.q, &replyInput{b: b}
	reply := &store.TakeReply{Now: in.moment(), Wants: make([]store.Taking, len(q.Wants))}
	reached := in.two()
	if reached > len(q.Wants) {
		return nil, false
	}
	for i := range reached {
		w, got := &q.Wants[i], &reply.Wants[i]
		switch status := store.TakeStatus(in.byte()); status {
		case store.Granted:
			receipt := store.TokenReceipt{RateKey: w.RateKey}
			if w.RateKey != "" && q.Limits.KeyRate.Limited() {
				receipt.Key = store.TokenMark{Kind: q.Limits.KeyRate.Kind, From: in.eight(), To: in.eight()}
			}
			if q.Limits.Rate.Limited() {
				receipt.Topic = store.TokenMark{Kind: q.Limits.Rate.Kind, From: in.eight(), To: in.eight()}
			}
			*got = q.Granted(reply.Now, receipt)
		case store.NoToken, store.OverRate:
			*got = store.Taking{Status: status, Lacks: store.Limit{Key: store.LimitKey{Topic: q.Topic}, Rate: true}}
			if in.byte() == 1 {
				got.Lacks.Key.Key = w.RateKey
			}
			if status == store.NoToken {
				got.Again = in.moment()
			}
		case store.NoPermit:
			key := [...]string{w.CapKey, "", store.NamespaceCap}[(in.byte()+2)%3]
			*got = store.Taking{Status: status, Lacks: store.Limit{Key: store.CapKey(q.Topic, key)}, Again: in.moment()}
		default:
			return nil, false
		}
	}
	for range in.two() {
		n := store.Notice{Limit: store.Limit{Rate: in.byte() == 1}}
		all := t.caps
		if n.Limit.Rate {
			all = t.rates
		}
		i := in.two()
		if i < 1 || i > len(all) {
			return nil, false
		}
		n.Limit.Key = all[i-1]
		n.After = time.Duration(in.four()) * time.Microsecond
		n.Node, n.Topic = store.FromLine(in.bytes(in.two()), q.Topic)
		reply.Notices = append(reply.Notices, n)
	}
	reply.Lost = in.two()
	return reply, !in.short && in.b == ""
}
