package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client/token"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// place is where a subscription keeps a session.
type place struct {
	rpc   ddqv1.DelayQueueServiceClient
	node  string          // that has to serve there; empty for any, which then takes from all
	again <-chan struct{} // there is a reason to connect at once
	moved func(open bool) // is called when a session opened, and when it ended
}

// stayConnected keeps a session at a place until ctx ends. It returns an error
// when the server refuses for good.
func (t *topicWorker) stayConnected(ctx context.Context, at *place) error {
	pauses := reconnects()
	var outage interruption
	var x *session
	var taken time.Time // when a server took the subscription last
	defer func() { t.dismiss(x) }()
	for {
		next, err := t.connect(ctx, at)
		refused := at.node == "" && refusal(err) && !passingRefusal(err, taken)
		if err == nil {
			opened := time.Now()
			t.events.report(Event{Kind: Connected, Topic: t.sub.topic, Node: at.node})
			t.cfg.Logger.Log(ctx, min(outage.over(), at.level(nil)), "subscribed", "topic", t.sub.topic, "node", next.node)
			t.handOver(x, next)
			x = next
			at.moved(true)
			err = x.wait(ctx)
			at.moved(false)
			taken = time.Now()
			if !errors.Is(err, errDraining) {
				t.dismiss(x)
			}
			if time.Since(opened) > steadyAfter {
				pauses.Reset()
			}
		}
		if ctx.Err() != nil || t.isOver() {
			return nil
		}
		t.events.report(Event{Kind: Disconnected, Topic: t.sub.topic, Node: at.node, Err: err})
		if refused {
			return err
		}
		t.fleet.refresh()
		pause, why := max(pauses.NextBackOff(), retryAfter(err)), "subscription interrupted; connecting again"
		switch status.Code(err) {
		case codes.Unauthenticated:
			pause, why = topicPause/4+rand.N(topicPause/4), "credentials do not count; connecting again with those that there are then"
		case codes.NotFound:
			pause, why = topicPause/2+rand.N(topicPause/2), "topic does not exist; waiting for it"
		}
		t.cfg.Logger.Log(ctx, outage.level(at.level(err), time.Now()), why, "topic", t.sub.topic, "node", at.node, "err", err)
		select {
		case <-time.After(pause):
		case <-at.again:
		case <-ctx.Done():
			return nil
		}
	}
}

// level is how much is made of a session that ends with err: a node's tasks come from
// others then, a server that drains is one that is stopped with care, and tokens are renewed.
func (at *place) level(err error) slog.Level {
	switch {
	case at.node != "":
		return slog.LevelDebug
	case errors.Is(err, errDraining), errors.Is(err, token.ErrStreamEnded):
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
func (t *topicWorker) connect(ctx context.Context, at *place) (*session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	hasty := context.AfterFunc(ctx, cancel)
	late := time.AfterFunc(connectTimeout, cancel)
	agreed := (*ddqv1.Subscribed)(nil)
	rpc, err := at.rpc.Subscribe(life, grpc.ForceCodecV2(codec.Proto), grpc.WaitForReady(at.node != ""))
	if err == nil {
		agreed, err = t.greet(rpc, at)
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
	return startSession(t.sub, t.fleet, rpc, agreed, at.node != "", cancel), nil
}

// greet sends the hello and waits for its answer. Credit follows once the
// server has agreed.
func (t *topicWorker) greet(rpc subscribeStream, at *place) (*ddqv1.Subscribed, error) {
	hello := &ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{
		Topic:               t.sub.topic,
		Worker:              t.cfg.Name,
		MaxInFlight:         int32(t.cfg.MaxInFlight),
		MaxBytes:            t.cfg.maxBytes(),
		VisibilityTimeoutMs: millis(t.cfg.VisibilityTimeout),
		LocalShardsOnly:     at.node != "",
		OnDemand:            at.node != "",
		InParts:             true,
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

// refusal reports whether trying again is pointless when a server does not take a subscription. A topic that does not exist may be
// made yet, or again: a worker need not start after it, nor end with it.
func refusal(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented,
		codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}

// passingRefusal reports whether credentials that do not count may do so again. They did when a server
// took the subscription last, and their successors may be a moment late. Not for long: a worker ends with
// credentials that were revoked. A source without a token, and a server that cannot ask an issuer, say
// UNAVAILABLE, which ends none.
func passingRefusal(err error, taken time.Time) bool {
	return status.Code(err) == codes.Unauthenticated && !taken.IsZero() && time.Since(taken) < credentialsGrace
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
