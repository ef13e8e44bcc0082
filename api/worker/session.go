package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Draining ends the wait for a session whose server goes away.
var errDraining = errors.New("the server is draining")

// errSilent means that the server said nothing within connectTimeout.
var errSilent = errors.New("the server does not answer")

// session is one stream of a subscription. It owns a reading and a writing
// goroutine, gone once retire returns.
type session struct {
	sub     *subscription
	rpc     subscribeStream
	cancel  context.CancelFunc
	wake    chan struct{} // there may be something to send
	silent  chan struct{} // closed to end the writer
	written chan struct{} // the writer is gone
	drain   chan struct{} // the server asked for an end
	done    chan struct{} // the reader is gone
	heard   chan struct{} // something was answered after it left
	err     error         // why; set before done is closed
	node    string        // that serves it
	limit   int           // tasks in flight that the server agreed to

	// Guarded by sub.mu.
	credit
	pace
	attached bool    // it speaks for the subscription
	settle   []*held // outcomes to send
	extend   []*held // holds to ask more of
}

type subscribeStream = grpc.BidiStreamingClient[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]

// stay keeps the subscription connected until ctx ends. It returns an error when
// the server refuses for good.
func (s *subscription) stay(ctx context.Context) error {
	if s.w.fleet != nil {
		return s.stayDirect(ctx)
	}
	return s.stayConnected(ctx, &place{rpc: s.rpc, moved: func(bool) {}})
}

// place is where a subscription keeps a session.
type place struct {
	rpc   ddqv1.DelayQueueServiceClient
	node  string          // that has to serve there; empty for any, which then takes from all
	again <-chan struct{} // there is a reason to connect at once
	moved func(open bool) // is called when a session opened, and when it ended
}

// stayConnected keeps a session at a place until ctx ends. It returns an error
// when the server refuses for good.
func (s *subscription) stayConnected(ctx context.Context, at *place) error {
	pauses := reconnects()
	var outage interruption
	var x *session
	defer func() { s.dismiss(x) }()
	for {
		next, err := s.connect(ctx, at)
		if err == nil {
			opened := time.Now()
			s.w.events.report(Event{Kind: Connected, Topic: s.topic, Node: at.node})
			s.w.cfg.Logger.Log(ctx, min(outage.over(), at.level(nil)), "subscribed", "topic", s.topic, "node", next.node)
			s.handOver(x, next)
			x = next
			at.moved(true)
			err = x.wait(ctx)
			at.moved(false)
			if !errors.Is(err, errDraining) {
				s.dismiss(x)
			}
			if time.Since(opened) > steadyAfter {
				pauses.Reset()
			}
		}
		if ctx.Err() != nil || s.isOver() {
			return nil
		}
		s.w.events.report(Event{Kind: Disconnected, Topic: s.topic, Node: at.node, Err: err})
		if refusal(err) && at.node == "" {
			return err
		}
		s.w.fleet.refresh()
		pause, why := max(pauses.NextBackOff(), retryAfter(err)), "subscription interrupted; connecting again"
		if status.Code(err) == codes.NotFound {
			pause, why = topicPause/2+rand.N(topicPause/2), "topic does not exist; waiting for it"
		}
		s.w.cfg.Logger.Log(ctx, outage.level(at.level(err), time.Now()), why, "topic", s.topic, "node", at.node, "err", err)
		select {
		case <-time.After(pause):
		case <-at.again:
		case <-ctx.Done():
			return nil
		}
	}
}

// level is how much is made of a session that ends with err: a node's tasks come from
// others then, and a server that drains is one that is stopped with care.
func (at *place) level(err error) slog.Level {
	switch {
	case at.node != "":
		return slog.LevelDebug
	case errors.Is(err, errDraining):
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// reconnects are pauses of random length, from nothing to longestPause at most, so that
// workers that lost a server together do not come back together. Together with the pauses
// of the connection (see client.Config) they bring a worker back within a second.
func reconnects() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     longestPause / 8,
		RandomizationFactor: 1, // from nothing to twice the interval
		Multiplier:          2,
		MaxInterval:         longestPause / 2,
	}
}

// connect opens a stream, which outlives ctx, and waits for the server's word.
func (s *subscription) connect(ctx context.Context, at *place) (*session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	hasty := context.AfterFunc(ctx, cancel)
	late := time.AfterFunc(connectTimeout, cancel)
	agreed := (*ddqv1.Subscribed)(nil)
	rpc, err := at.rpc.Subscribe(life, grpc.ForceCodecV2(codec.Proto), grpc.WaitForReady(at.node != ""))
	if err == nil {
		agreed, err = s.greet(rpc, at)
	}
	if !late.Stop() {
		err = errSilent
	}
	if !hasty() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	x := &session{
		sub:     s,
		rpc:     rpc,
		cancel:  cancel,
		wake:    make(chan struct{}, 1),
		silent:  make(chan struct{}),
		written: make(chan struct{}),
		drain:   make(chan struct{}),
		done:    make(chan struct{}),
		heard:   make(chan struct{}, 1),
		node:    agreed.GetNode(),
		limit:   int(agreed.GetMaxInFlight()),

		credit: credit{onDemand: at.node != ""},
	}
	go x.read()
	go x.write()
	return x, nil
}

// greet sends the hello and waits for its answer. Credit follows once the
// server has agreed.
func (s *subscription) greet(rpc subscribeStream, at *place) (*ddqv1.Subscribed, error) {
	hello := &ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{
		Topic:               s.topic,
		Worker:              s.w.cfg.Name,
		MaxInFlight:         int32(s.w.cfg.MaxInFlight),
		MaxBytes:            s.w.maxBytes(),
		VisibilityTimeoutMs: millis(s.w.cfg.VisibilityTimeout),
		LocalShardsOnly:     at.node != "",
		OnDemand:            at.node != "",
	}}
	if err := rpc.Send(hello); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} // on EOF, Recv has the reason
	reply, err := rpc.Recv()
	if err != nil {
		return nil, err
	}
	if reply.GetSubscribed() == nil {
		return nil, status.Error(codes.Internal, "the server did not answer the hello")
	}
	if got := reply.GetSubscribed().GetNode(); at.node != "" && got != at.node {
		return nil, status.Errorf(codes.Unavailable, "node %s answers where %s should", got, at.node)
	}
	return reply.GetSubscribed(), nil
}

// wait returns when the session broke or ctx ends, and when its server drains
// unless that is one of several.
func (x *session) wait(ctx context.Context) error {
	drain := x.drain
	if x.onDemand {
		drain = nil
	}
	select {
	case <-drain:
		return errDraining
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read hands on what the server sends until the stream ends.
func (x *session) read() {
	defer close(x.done)
	defer x.cancel()
	for {
		m, err := x.rpc.Recv()
		if err != nil {
			x.err = err
			return
		}
		if len(m.GetDeliveries()) > 0 {
			x.sub.receive(x, m.GetDeliveries())
		}
		for _, answer := range m.GetSettled() {
			x.sub.answered(x, answer)
		}
		if len(m.GetCancels()) > 0 {
			x.sub.canceledBy(m.GetCancels())
		}
		if m.GetDemand() != nil {
			x.sub.demanded(x, int(m.GetDemand().GetReady()), int(m.GetDemand().GetReturned()))
		}
		if m.GetDrain() != nil {
			x.drained()
		}
		if m.GetNodesChanged() || m.GetDrain() != nil {
			x.sub.w.fleet.refresh()
		}
	}
}

// drained stops taking from this session; what runs is settled on it until
// another has taken its place.
func (x *session) drained() {
	x.sub.mu.Lock()
	defer x.sub.mu.Unlock()
	if x.draining {
		return
	}
	x.draining = true
	close(x.drain)
	x.sub.releaseWaiting(x)
	poke(x.wake) // there may be nothing to wait for
}

// write sends whatever there is to say, as one frame, until the session is
// silenced, broken, or drained and done.
func (x *session) write() {
	defer close(x.written)
	var r ddqv1.SubscribeRequest
	gap := time.NewTimer(settleGap)
	defer gap.Stop()
	for {
		ok, pause := x.sub.take(x, &r)
		if ok {
			if x.rpc.Send(&r) != nil {
				x.cancel() // the reader learns why; the frame is said again on the next stream
				return
			}
			continue
		}
		if x.sub.spent(x) {
			_ = x.rpc.CloseSend() // fails only when the stream is broken
			return
		}
		var over <-chan time.Time
		if pause > 0 {
			gap.Reset(pause)
			over = gap.C
		}
		select {
		case <-x.wake:
			runtime.Gosched() // let other handlers that are about to finish join the frame
		case <-over:
		case <-x.silent:
			return
		case <-x.done:
			return
		}
	}
}

// retire ends a session that has left. Deliveries that cross the goodbye are
// given back.
func (s *subscription) retire(x *session) {
	close(x.silent)
	defer time.AfterFunc(flushTimeout, x.cancel).Stop()
	<-x.written
	_ = x.rpc.CloseSend() // fails only when the stream is broken
	<-x.done
}

// handBack releases, one by one, what came too late for any stream.
func (s *subscription) handBack() {
	s.mu.Lock()
	rest := s.settle
	s.settle = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for _, h := range rest {
		if h.nack == nil || !h.nack.Release {
			continue // its answer is missing, which flush has said
		}
		_, err := s.rpc.Nack(ctx, &ddqv1.NackRequest{Topic: s.topic, Nack: h.nack}, grpc.ForceCodecV2(codec.Proto))
		if err != nil {
			s.w.cfg.Logger.Warn("task not given back", "topic", s.topic, "task", h.ack.TaskId, "err", err)
			return // the others wait for their holds to end, too
		}
		s.w.events.report(Event{Kind: Released, Topic: s.topic, Tasks: 1})
	}
}

// refusal reports whether trying again is pointless. A topic that does not exist may be
// made yet, or again: a worker need not start after it, nor end with it.
func refusal(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented,
		codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}

// retryAfter returns how long the server asked to wait.
func retryAfter(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
