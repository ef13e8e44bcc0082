package engine

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is the library's, made safe to post to from the moment the actor's name
// can be found. The library publishes the name first and gives the mailbox its
// dispatcher after that: who posts in between dereferences nil.
type mailbox struct {
	actor.Mailbox
	ready chan struct{} // closed once there is a dispatcher
	over  *atomic.Bool  // the actor has stopped
	late  func(message any)
}

func newMailbox(over *atomic.Bool, late func(message any)) actor.Mailbox {
	return &mailbox{actor.Unbounded()(), make(chan struct{}), over, late}
}

// RegisterHandlers is called once, by the spawner.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, d actor.Dispatcher) {
	m.Mailbox.RegisterHandlers(&answering{invoker, m.over, m.late}, d)
	close(m.ready)
}

// PostUserMessage waits for the spawner, which is a few instructions from done.
func (m *mailbox) PostUserMessage(message any) {
	<-m.ready
	m.Mailbox.PostUserMessage(message)
}

// PostSystemMessage waits like PostUserMessage.
func (m *mailbox) PostSystemMessage(message any) {
	<-m.ready
	m.Mailbox.PostSystemMessage(message)
}

// answering fails the messages that an actor left in its mailbox when it stopped. The
// library drops them, and their callers would wait for ever.
type answering struct {
	actor.MessageInvoker
	over *atomic.Bool
	late func(message any)
}

// InvokeUserMessage hands the actor a message while it lives.
func (a *answering) InvokeUserMessage(message any) {
	if a.over.Load() {
		a.late(actor.UnwrapEnvelopeMessage(message))
		return
	}
	a.MessageInvoker.InvokeUserMessage(message)
}

// noteStop is middleware: it records that the actor has stopped.
func noteStop(over *atomic.Bool) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
			next(c, env)
			if _, stopped := env.Message.(*actor.Stopped); stopped {
				over.Store(true)
			}
		}
	}
}
