package engine

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Props makes one actor, which is restarted by a strategy. late is given each message
// that reaches it when it has stopped.
func Props(producer actor.Producer, p *Pool, n *RestartStrategy, late func(message any)) *actor.Props {
	over := new(atomic.Bool)
	return actor.PropsFromProducer(producer,
		actor.WithDispatcher(p),
		actor.WithMailbox(func() actor.Mailbox { return newMailbox(over, late) }),
		actor.WithSupervisor(n),
		actor.WithReceiverMiddleware(n.LogPanics, noteStop(over)))
}
