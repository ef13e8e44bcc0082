package peer

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	greetTimeout = 5 * time.Second // for the answer to the hello
	closeTimeout = 5 * time.Second // for what still comes after the goodbye
)

type subscribeStream = grpc.BidiStreamingClient[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]

// remoteSubscription is one Subscribe stream to another node. Its run owns a second
// goroutine, which sends credit.
type remoteSubscription struct {
	options subscription.Options
	link    fleet.Link
	wake    chan struct{} // there may be something to send

	mu      sync.Mutex
	credit  int  // to grant; guarded by mu
	leaving bool // nothing more is granted, and the stream ends; guarded by mu
}

func newSubscription(o subscription.Options, link fleet.Link) *remoteSubscription {
	return &remoteSubscription{options: o, link: link, wake: make(chan struct{}, 1)}
}

// Grant gives credit for n deliveries.
func (s *remoteSubscription) Grant(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credit += n
	s.poke()
}

// Close ends the subscription in order.
func (s *remoteSubscription) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	s.poke()
}

// poke wakes the writer. The caller holds mu.
func (s *remoteSubscription) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns the credit to send, and whether to say goodbye instead.
func (s *remoteSubscription) take() (credit int, leave bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	credit, s.credit = s.credit, 0
	return credit, s.leaving
}

// run plays the whole life of the subscription.
func (s *remoteSubscription) run(ctx context.Context, queue ddqv1.DelayQueueServiceClient) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rpc, err := s.open(ctx, cancel, queue)
	if err == nil {
		s.link.Opened()
		var writer sync.WaitGroup
		writer.Go(func() { s.write(ctx, cancel, rpc) })
		err = s.read(ctx, rpc)
		cancel()
		writer.Wait()
	}
	s.link.Closed(err)
}

// open says hello and waits for the answer.
func (s *remoteSubscription) open(ctx context.Context, cancel func(), queue ddqv1.DelayQueueServiceClient) (subscribeStream, error) {
	late := time.AfterFunc(greetTimeout, cancel)
	rpc, err := queue.Subscribe(ctx)
	if err != nil {
		return nil, err
	}
	err = rpc.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{
		Topic:               s.options.Topic,
		Worker:              s.options.Worker,
		MaxInFlight:         int32(s.options.MaxInFlight),
		VisibilityTimeoutMs: s.options.Visibility.Milliseconds(),
		LocalShardsOnly:     s.options.LocalOnly,
		OnDemand:            s.options.OnDemand,
		Node:                s.options.Peer,
		MaxBytes:            int64(s.options.MaxBytes),
	}})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} // on EOF, Recv has the reason
	_, err = rpc.Recv()
	if !late.Stop() {
		err = errSilent
	}
	return rpc, err
}

// read hands on what comes until the stream ends.
func (s *remoteSubscription) read(ctx context.Context, rpc subscribeStream) error {
	draining := false
	for {
		s.link.Await(ctx)
		m, err := rpc.Recv()
		switch {
		case errors.Is(err, io.EOF) && draining:
			return errDraining
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if len(m.Deliveries) > 0 {
			s.link.Deliver(deliveriesOf(s.options.Topic, m.Deliveries))
		}
		if m.Demand != nil {
			s.link.Demand(int(m.Demand.Ready), int(m.Demand.Returned))
		}
		if len(m.Cancels) > 0 {
			s.link.Cancel(cancelsOf(m.Cancels))
		}
		if m.Drain != nil {
			draining = true
			s.Close()
		}
	}
}

// write sends credit as it is granted, and goodbye at the end.
func (s *remoteSubscription) write(ctx context.Context, cancel func(), rpc subscribeStream) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		credit, leave := s.take()
		if leave {
			_ = rpc.CloseSend() // fails only when the stream is broken, which read knows
			late := time.AfterFunc(closeTimeout, cancel)
			<-ctx.Done()
			late.Stop()
			return
		}
		if credit > 0 && rpc.Send(&ddqv1.SubscribeRequest{Credit: new(int32(credit))}) != nil {
			return // read knows why
		}
	}
}
