package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func TestMessageBeforeTheDispatcherIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool()
		defer p.Close()
		m := newMailbox(new(atomic.Bool), func(any) {})
		got := make(chan any, 2)
		go m.PostSystemMessage("system")
		go m.PostUserMessage("user")
		synctest.Wait()
		m.RegisterHandlers(invoker(func(message any) { got <- message }), p)
		m.Start()
		for range 2 {
			select {
			case <-got:
			case <-time.After(time.Minute):
				t.Fatal("a message was lost")
			}
		}
	})
}

type invoker func(any)

func (f invoker) InvokeSystemMessage(m any)           { f(m) }
func (f invoker) InvokeUserMessage(m any)             { f(m) }
func (f invoker) EscalateFailure(reason, message any) {}

var _ actor.MessageInvoker = invoker(nil)
