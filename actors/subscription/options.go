package subscription

import (
	"time"
)

// Options are one worker's wishes for one topic.
type Options struct {
	Topic       string
	Worker      string
	MaxInFlight int           // 0: 1,000; at most Limits.MaxInFlight
	Visibility  time.Duration // 0: the topic's
	Client      string        // user agent of the worker's program, for people
	LocalOnly   bool          // of shards that this node owns
	Peer        string        // the node that subscribes on demand; empty for a worker
	OnDemand    bool          // credit that finds no ready task comes back, see Outbox.Demand

	// MaxBytes bounds the bodies that are out of the store for the subscription and not
	// sent. 0, and at most: Config.SubscriptionBytes.
	MaxBytes int
	// TellsSent has what the outbox took count until Subscription.Sent is told of it.
	TellsSent bool
	// InParts has the outbox hear of what is settled while other settlements of a frame take long.
	InParts bool
}

// ByNode reports whether it is another node that subscribes, for a worker of its own.
func (o *Options) ByNode() bool { return o.OnDemand && o.Peer != "" }
