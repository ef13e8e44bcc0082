package actors

import "github.com/asynkron/protoactor-go/actor"

// mailbox is the library's, made safe to post to from the moment the actor's name
// can be found. The library publishes the name first and gives the mailbox its
// dispatcher after that: who posts in between dereferences nil.
type mailbox struct {
	actor.Mailbox
	ready chan struct{} // closed once there is a dispatcher
}

func newMailbox() actor.Mailbox {
	return &mailbox{actor.Unbounded()(), make(chan struct{})}
}

// RegisterHandlers is called once, by the spawner.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, d actor.Dispatcher) {
	m.Mailbox.RegisterHandlers(invoker, d)
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
