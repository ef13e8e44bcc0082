package actors

import (
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// topicState is what the parts of a topic's actor share. It owns a goroutine for each
// pause, gone once end returns.
type topicState struct {
	*runtime.Runtime
	ref         *Topic
	topic       *store.Topic
	log         *slog.Logger
	core        *dispatch.Topic
	subscribers map[int64]*subscription.Subscriber // by id
	by          actor.Actor                        // this incarnation, as its store calls name it
	draining    *drainTopic                        // nil: it does not drain

	stop chan struct{}
	wg   sync.WaitGroup // of pauses
}

func newTopicState(rt *runtime.Runtime, ref *Topic, by actor.Actor) *topicState {
	topic := ref.shared.Current.Load()
	return &topicState{
		Runtime:     rt,
		ref:         ref,
		topic:       topic,
		log:         rt.Log,
		core:        dispatch.NewTopic(topic.Name),
		subscribers: make(map[int64]*subscription.Subscriber),
		by:          by,
		stop:        make(chan struct{}),
	}
}

// end waits for the goroutines.
func (t *topicState) end() {
	close(t.stop)
	t.wg.Wait()
}

// after sends the topic a message after a pause.
func (t *topicState) after(d time.Duration, m any) {
	t.wg.Go(func() {
		pause := time.NewTimer(d)
		defer pause.Stop()
		select {
		case <-pause.C:
			t.Send(t.ref.pid, m)
		case <-t.stop:
		}
	})
}

// done tells the topic what a store call came to. Safe from any goroutine.
func (t *topicState) done(result any) { t.Send(t.ref.pid, &runtime.CallDone{By: t.by, Result: result}) }
