package delivery

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
)

// MaxSettles bounds the settlements of one frame. It is the largest
// max_in_flight, and its answer is under the 4 MiB that clients take in.
const MaxSettles = 10_000

// maxUnanswered bounds the settlements of one stream that were read and not
// answered; beyond it the stream is not read. It is several times what a worker
// that obeys its credit can have.
const maxUnanswered = 65536

// unitBytes of results of acks, and of values of checkpoints, count as a settlement more: that is 64 MiB at most.
const unitBytes = 1024

// internalSequence carries settlements that the session makes itself. Workers
// number theirs from 1.
const internalSequence = 0

// session is one Subscribe stream. It owns two goroutines: receive reads and
// passes on, send writes what the outbox has. The handler only waits for the
// first of them to end, so that returning can break a Send that hangs; send
// comes last and ends the subscription.
type session struct {
	server     *Sessions
	stream     Stream
	box        *outbox
	unanswered *semaphore.Weighted
	end        chan error // why the stream is over; buffered, the first counts

	// Set by hello, before send starts.
	sub      *service.Subscription
	sequence uint64 // the last one, receive only
}

// finish ends the stream for err, unless it is over already.
func (ses *session) finish(err error) {
	if errors.Is(err, errLeft) {
		return // send ends the stream once all is answered
	}
	select {
	case ses.end <- err:
	default:
	}
}

// errLeft is how receive ends when the worker closed its side.
var errLeft = errors.New("worker sends nothing more")

// receive reads frames until the stream ends.
func (ses *session) receive() error {
	late := time.AfterFunc(ses.server.config.HandshakeTimeout, func() {
		ses.finish(status.BadStream("hello", "did not come in time"))
	})
	first, err := ses.stream.Recv()
	late.Stop()
	if err != nil {
		return ignoreEOF(err)
	}
	if err := ses.hello(first); err != nil {
		return err
	}
	for frame := first; ; {
		if err := ses.frame(frame); err != nil {
			return err
		}
		frame, err = ses.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			ses.box.leave()
			return errLeft
		case err != nil:
			return err
		case frame.Hello != nil:
			return status.BadStream("hello", "came twice")
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// hello opens the subscription and starts send.
func (ses *session) hello(f *ddqv1.SubscribeRequest) error {
	if f.Hello == nil {
		return status.BadStream("hello", "must come in the first frame")
	}
	visibility, e := wire.Span(f.Hello.VisibilityTimeoutMs, "visibility_timeout_ms")
	if e != nil {
		return e
	}
	peer := wire.Text(f.Hello.Node)
	if err := guard.AllowNode(ses.stream.Context(), peer); err != nil {
		return err
	}
	if peer != "" {
		if err := cmp.Or(ses.server.service.Fleet.CheckName(peer), ses.server.host.Nodes.Check(ses.stream.Context(), peer)); err != nil {
			return err
		}
	}
	leave, err := ses.enter(f.Hello.Topic, peer)
	if err != nil {
		return err
	}
	ses.box.inParts = f.Hello.InParts
	sub, err := ses.server.service.Delivery.Subscribe(ses.stream.Context(), subscription.Options{
		Topic:       f.Hello.Topic,
		Worker:      f.Hello.Worker,
		MaxInFlight: int(f.Hello.MaxInFlight),
		Visibility:  visibility,
		Client:      ClientOf(ses.stream.Context()),
		LocalOnly:   f.Hello.LocalShardsOnly,
		OnDemand:    f.Hello.OnDemand,
		Peer:        peer,
		MaxBytes:    int(f.Hello.MaxBytes),
		TellsSent:   true,
		InParts:     f.Hello.InParts,
	}, ses.box)
	if err != nil {
		leave()
		return err
	}
	ses.sub = sub
	ctx := ses.stream.Context()
	ses.server.host.Loops.Go(func() {
		// Deferred, so that whatever happened in send its deliveries are given back.
		defer func() {
			sub.Unsubscribe(ses.box.close())
			leave()
		}()
		ses.finish(ses.server.host.Guard(ctx, ses.send))
	})
	return nil
}

// enter counts the stream of a worker among those of its namespace until leave.
func (ses *session) enter(topic, peer string) (leave func(), err error) {
	if peer != "" {
		return func() {}, nil
	}
	return ses.server.service.Delivery.OpenStream(ses.stream.Context(), topic)
}

// frame passes on what a frame asks for.
func (ses *session) frame(f *ddqv1.SubscribeRequest) error {
	if f.Credit != nil {
		if err := ses.grant(int(*f.Credit)); err != nil {
			return err
		}
	}
	n := Count(f)
	if n == 0 {
		return nil
	}
	if n > MaxSettles {
		return status.BadStream("acks", "nacks, extends and checkpoints are more than %d together", MaxSettles)
	}
	if f.Sequence <= ses.sequence {
		return status.BadStream("sequence", "must rise with every frame that settles, from 1")
	}
	ses.sequence = f.Sequence
	weight := weightOf(f)
	if err := ses.unanswered.Acquire(ses.stream.Context(), weight); err != nil {
		return err
	}
	ses.box.expect(f.Sequence, n, weight)
	ask, refused, next := Settlements(ses.stream.Context(), ses.sub.Options.Topic, f)
	if len(refused) > 0 {
		ses.box.Settled(f.Sequence, refused)
	}
	ask, brings, next := apart(ask, next)
	if len(ask) > 0 {
		ses.sub.Settle(f.Sequence, ask)
	}
	if len(brings) > 0 { // it may wait for the store, and the stream goes on
		ses.server.host.Loops.Go(func() {
			err := ses.server.host.Guard(ses.stream.Context(), func() error {
				ses.sub.SettleNext(ses.stream.Context(), f.Sequence, brings, next)
				return nil
			})
			if err != nil {
				ses.finish(err)
			}
		})
	}
	return nil
}

// apart returns the acks by which something comes next, apart from what waits for none of that.
func apart(all []subscription.Settlement, next service.Nexts) (plain, brings []subscription.Settlement, _ service.Nexts) {
	if next == nil {
		return all, nil, nil
	}
	own := make(service.Nexts, len(next))
	for i, a := range all {
		n, ok := next[i]
		if !ok {
			plain = append(plain, a)
			continue
		}
		own[len(brings)] = n
		brings = append(brings, a)
	}
	return plain, brings, own
}

// weightOf is what the settlements of a frame count of those that are unanswered.
func weightOf(f *ddqv1.SubscribeRequest) int64 {
	bytes := 0
	for _, a := range f.Acks {
		bytes += len(a.Result) + len(a.Enqueue)*unitBytes
		for _, t := range a.Enqueue {
			bytes += len(t.GetPayload())
		}
	}
	for _, c := range f.Checkpoints {
		bytes += len(c.GetValue())
	}
	return int64(Count(f) + bytes/unitBytes)
}

func (ses *session) grant(n int) error {
	if n <= 0 {
		return status.BadStream("credit", "must be greater than 0")
	}
	if ses.box.draining() {
		return nil // whatever it brought would be given back at once
	}
	return ses.sub.Grant(n)
}

// send writes frames until the stream ends.
func (ses *session) send() error {
	stall := time.AfterFunc(time.Hour, func() { ses.finish(status.Stalled()) })
	defer stall.Stop()
	stall.Stop()
	if err := ses.write(stall, ses.subscribed()); err != nil {
		return err
	}
	for {
		select {
		case <-ses.box.wake:
			runtime.Gosched() // let other shards that are about to deliver join the frame
		case <-ses.stream.Context().Done():
			return ses.stream.Context().Err()
		}
		if err := ses.flush(stall); err != nil {
			return err
		}
		if ses.box.finished() {
			return nil
		}
	}
}

func (ses *session) subscribed() *ddqv1.SubscribeResponse {
	return &ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{
		Node:                ses.sub.Node,
		MaxInFlight:         int32(ses.sub.Options.MaxInFlight),
		VisibilityTimeoutMs: ses.sub.Options.Visibility.Milliseconds(),
	}}
}

// write sends one frame. If that takes too long the stall timer ends the
// stream, which makes Send return.
func (ses *session) write(stall *time.Timer, f *ddqv1.SubscribeResponse) error {
	stall.Reset(ses.server.config.SendStall)
	defer stall.Stop()
	return ses.stream.Send(f)
}

// flush sends everything that the outbox has.
func (ses *session) flush(stall *time.Timer) error {
	for {
		now := time.Now()
		p := ses.box.take(now)
		if p.empty() {
			return nil
		}
		ses.returnLate(&p)
		if err := ses.writeParcel(stall, &p, now); err != nil {
			ses.box.undelivered(p.tasks)
			return err
		}
		ses.sent(&p)
		ses.sub.Sent(p.bytes())
	}
}

// writeParcel sends what there is in a parcel. Once it is marshaled, its wire form is
// of no more use.
func (ses *session) writeParcel(stall *time.Timer, p *parcel, now time.Time) error {
	p.slab = ses.server.slabs.Get().(*wireSlab)
	defer func() {
		p.slab.clear()
		ses.server.slabs.Put(p.slab)
	}()
	f := p.frame(now)
	if f == nil {
		return nil
	}
	if ses.sub.Options.OnDemand {
		TellDeadlines(f.Deliveries, p.tasks)
	}
	end := ses.beginSpans(p, f)
	err := ses.write(stall, f)
	if end != nil {
		end(err == nil)
	}
	return err
}

// beginSpans returns what ends the spans of a frame, nil when there are none. Another node, which
// hands tasks on, makes those of its workers.
func (ses *session) beginSpans(p *parcel, f *ddqv1.SubscribeResponse) (end func(sent bool)) {
	if spans := ses.server.config.Spans; spans != nil && len(p.tasks) > 0 && ses.sub.Options.Peer == "" {
		return spans.Begin(p.tasks, f.Deliveries)
	}
	return nil
}

// returnLate gives back what is not worth sending. For deliveries that waited
// too long the worker gets its credit back: it never learns that it was used.
func (ses *session) returnLate(p *parcel) {
	late := append(p.stale, p.unwanted...)
	if len(late) == 0 {
		return
	}
	releases, bytes := make([]subscription.Settlement, len(late)), int64(0)
	for i := range late {
		releases[i] = Release(&late[i])
		bytes += late[i].Bytes()
	}
	ses.sub.Sent(bytes)
	ses.sub.Settle(internalSequence, releases)
	if len(p.stale) > 0 {
		ses.server.host.Stale(len(p.stale))
		ses.regrant(len(p.stale))
	}
}

// regrant gives a worker credit back that came to nothing; on demand the other
// side is told instead.
func (ses *session) regrant(n int) {
	if ses.sub.Options.OnDemand {
		ses.box.returned(n)
		return
	}
	_ = ses.sub.Grant(n) // no more than was granted before
}

// sent counts a frame as sent.
func (ses *session) sent(p *parcel) {
	for _, a := range p.settled {
		ses.unanswered.Release(a.weight)
	}
	if p.drain != nil {
		grace, stop := context.WithTimeout(ses.stream.Context(), *p.drain)
		context.AfterFunc(grace, func() { stop(); ses.finish(status.Draining()) })
	}
}

// frame is p as it goes out; nil when nothing does.
func (p *parcel) frame(now time.Time) *ddqv1.SubscribeResponse {
	if p.quiet() {
		return nil
	}
	f := &ddqv1.SubscribeResponse{Demand: p.demand, NodesChanged: p.nodes, Cancels: p.cancels}
	if len(p.tasks) > 0 {
		if p.slab == nil {
			p.slab = new(wireSlab)
		}
		f.Deliveries, f.ServerTimeMs = p.slab.deliveries(p.tasks, now), ServerTime(p.tasks, now)
	}
	for _, a := range p.settled {
		f.Settled = append(f.Settled, &a.Settled)
	}
	if p.drain != nil {
		f.Drain = &ddqv1.Drain{GraceMs: p.drain.Milliseconds()}
	}
	return f
}
