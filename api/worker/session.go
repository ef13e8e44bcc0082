package worker

import (
	"context"
	"errors"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Draining ends the wait for a session whose server goes away.
var errDraining = errors.New("the server is draining")

// errSilent means that the server said nothing within connectTimeout.
var errSilent = errors.New("the server does not answer")

// session is one stream of a subscription. It owns a reading and a writing
// goroutine, gone once retire returns.
type session struct {
	link
	sub     *subscription
	rpc     subscribeStream
	fleet   *fleet // to look at when the server says so; nil unless Direct
	cancel  context.CancelFunc
	silent  chan struct{} // closed to end the writer
	written chan struct{} // the writer is gone
	drain   chan struct{} // the server asked for an end
	done    chan struct{} // the reader is gone
	err     error         // why; set before done is closed
	node    string        // that serves it
}

type subscribeStream = grpc.BidiStreamingClient[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]

// startSession begins the session of a stream on which the server has agreed to a
// subscription. cancel ends the stream.
func startSession(sub *subscription, f *fleet, rpc subscribeStream, agreed *ddqv1.Subscribed, onDemand bool, cancel context.CancelFunc) *session {
	x := &session{
		link: link{
			limit:  int(agreed.GetMaxInFlight()),
			wake:   make(chan struct{}, 1),
			heard:  make(chan struct{}, 1),
			credit: credit{onDemand: onDemand},
		},
		sub:     sub,
		rpc:     rpc,
		fleet:   f,
		cancel:  cancel,
		silent:  make(chan struct{}),
		written: make(chan struct{}),
		drain:   make(chan struct{}),
		done:    make(chan struct{}),
		node:    agreed.GetNode(),
	}
	go x.read()
	go x.write()
	return x
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

// broken is why the session ended, where something that it sent may be why; else nil.
func (x *session) broken() error {
	select {
	case <-x.done:
	default:
		return nil
	}
	switch status.Code(x.err) {
	case codes.InvalidArgument, codes.Internal:
		return x.err
	case codes.ResourceExhausted:
		if retryAfter(x.err) == 0 {
			return x.err
		}
	}
	return nil
}

// read hands on what the server sends until the stream ends.
func (x *session) read() {
	defer close(x.done)
	defer x.cancel()
	m := new(ddqv1.SubscribeResponse)
	for {
		if err := x.rpc.RecvMsg(m); err != nil {
			x.err = err
			return
		}
		if len(m.GetDeliveries()) > 0 {
			x.sub.receive(&x.link, m.GetDeliveries(), m.GetServerTimeMs())
		}
		for _, answer := range m.GetSettled() {
			x.sub.answered(&x.link, answer)
		}
		if len(m.GetCancels()) > 0 {
			x.sub.canceledBy(m.GetCancels())
		}
		if m.GetDemand() != nil {
			x.sub.demanded(&x.link, int(m.GetDemand().GetReady()), int(m.GetDemand().GetReturned()))
		}
		if m.GetDrain() != nil {
			x.drained()
		}
		if m.GetNodesChanged() || m.GetDrain() != nil {
			x.fleet.refresh()
		}
		leaveTasks(m)
	}
}

// leaveTasks has the next frame not overwrite what handlers keep of the tasks of this one, their
// payloads above all.
func leaveTasks(m *ddqv1.SubscribeResponse) {
	for _, d := range m.GetDeliveries() {
		d.HoldToken, d.Journal = nil, nil
		if d.Task != nil {
			d.Task.Reset()
		}
	}
}

// drained stops taking from this session; what runs is settled on it until
// another has taken its place.
func (x *session) drained() {
	if x.sub.drained(&x.link) {
		close(x.drain)
	}
}

// write sends whatever there is to say, as one frame, until the session is
// silenced, broken, or drained and done.
func (x *session) write() {
	defer close(x.written)
	var r ddqv1.SubscribeRequest
	gap := time.NewTimer(settleGap)
	defer gap.Stop()
	for {
		ok, pause := x.sub.take(&x.link, &r)
		if ok {
			if x.rpc.Send(&r) != nil {
				x.cancel() // the reader learns why; the frame is said again on the next stream
				return
			}
			continue
		}
		if x.sub.spent(&x.link) {
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

// hearOut waits for the answers that the session, which has left, still has.
func (x *session) hearOut() {
	late := time.NewTimer(hearingTimeout)
	defer late.Stop()
	for !x.sub.heardOut(&x.link) {
		select {
		case <-x.heard:
		case <-x.done:
			return
		case <-late.C:
			return
		}
	}
}

// retire ends a session that has left. Deliveries that cross the goodbye are
// given back.
func (x *session) retire() {
	close(x.silent)
	defer time.AfterFunc(flushTimeout, x.cancel).Stop()
	<-x.written
	_ = x.rpc.CloseSend() // fails only when the stream is broken
	<-x.done
}
