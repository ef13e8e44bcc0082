package actors

import (
	"cmp"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// supervisor is the root actor: the parent of the topics.
type supervisor struct {
	*runtime.Runtime
	shards shard.Config
	topics map[string]*Topic
	opened int // so that a topic that is opened anew has names of its own
}

// Receive handles one message; it never waits.
func (s *supervisor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *openTopic:
		m.reply <- s.open(c, m.topic)
	case *closeTopic:
		s.close(c, m)
	case *tellTopics:
		for _, ref := range ordered.All(s.topics, cmp.Compare) {
			s.Send(ref.pid, m.message)
		}
	}
}

func (s *supervisor) open(c actor.Context, topic store.Topic) *Topic {
	if ref := s.topics[topic.Name]; ref != nil {
		return ref
	}
	ref := &Topic{rt: s.Runtime, ready: make(chan struct{}), turn: s.opened % Beats}
	ref.shared.Settings = s.shards
	ref.shared.Reachable = func(n int) bool { return ref.opened.Load() && ref.shard(n) != nil }
	ref.shared.Current.Store(&topic)
	s.opened++
	name := fmt.Sprintf("%s-%d", store.FlatName(topic.Name), s.opened)
	ref.pid = actor.NewPID(c.Self().Address, c.Self().Id+"/"+name)
	shards := layoutOf(s.Runtime, ref.pid, &topic, nil)
	ref.layout.Store(&shards)
	s.topics[topic.Name] = ref
	props := s.Props(func() actor.Actor { return newTopicActor(s.Runtime, ref) })
	if _, err := c.SpawnNamed(props, name); err != nil {
		panic(fmt.Sprintf("spawn topic %s: %v", topic.Name, err)) // one per name: a bug
	}
	return ref
}

func (s *supervisor) close(c actor.Context, m *closeTopic) {
	ref := s.topics[m.name]
	delete(s.topics, m.name)
	if ref == nil {
		close(m.done)
		return
	}
	stopped := c.PoisonFuture(ref.pid)
	s.Restarts.Run(func() {
		defer close(m.done)
		stopped.Wait()
	})
}
