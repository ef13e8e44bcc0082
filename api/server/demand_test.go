package server

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// subscribeOnDemand opens a stream as another node does, which has the topic already.
func (r *rig) subscribeOnDemand() subscriber {
	r.Helper()
	_, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "t"})
	if status.Code(err) != codes.AlreadyExists {
		must(r, err)
	}
	s := r.open()
	s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Worker: "w", LocalShardsOnly: true, OnDemand: true, Node: "b"}})
	if f := s.next(); f.Subscribed.GetNode() == "" {
		r.Fatalf("first frame is %v", f)
	}
	return s
}

func TestCreditOnDemandComesBackUnused(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		s := r.subscribeOnDemand()
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		if f := s.next(); f.Demand.GetReady() != 1 || f.Demand.GetReturned() != 0 || len(f.Deliveries) != 0 {
			r.Fatalf("got %v, want a demand for 1", f)
		}
		s.send(&ddqv1.SubscribeRequest{Credit: proto.Int32(5)})
		delivered, returned := 0, 0
		for delivered == 0 || returned == 0 {
			f := s.next()
			for _, d := range f.Deliveries {
				if delivered++; d.Task.HoldDeadline == nil {
					r.Error("the node is not told when the hold ends")
				}
			}
			returned += int(f.Demand.GetReturned())
		}
		if delivered != 1 || returned != 4 {
			r.Errorf("%d delivered and %d returned of a credit of 5 for 1 task", delivered, returned)
		}
		must(r, s.CloseSend())
	})
}

// otherNode grants like the node at the other end: for what it was told is ready,
// as far as its workers have room.
type otherNode struct {
	subscriber
	ready, room int
	got         map[string]bool
}

func (n *otherNode) take(f *ddqv1.SubscribeResponse) {
	for _, d := range f.Deliveries {
		n.got[d.Task.Id] = true
		n.room++ // it is worked off at once
	}
	if f.Demand != nil {
		n.ready = int(f.Demand.Ready)
		n.room += int(f.Demand.Returned)
	}
	if grant := min(n.ready, n.room); grant > 0 {
		n.send(&ddqv1.SubscribeRequest{Credit: proto.Int32(int32(grant))})
		n.ready, n.room = n.ready-grant, n.room-grant
	}
}

// Deliveries that waited too long for a node that was slow to read go back. That
// must not make it believe that there is nothing left to grant credit for.
func TestASlowNodeGetsEveryTaskInTheEnd(t *testing.T) {
	fleetBubble(t, Config{SendStall: time.Hour}, func(r *rig) {
		const tasks, room = 40, 15
		for i := range tasks {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(i), Payload: make([]byte, 512<<10), VisibilityTimeoutMs: 4000})
		}
		n := &otherNode{r.subscribeOnDemand(), 0, room, map[string]bool{}}
		for n.ready == 0 && n.room == room {
			n.take(n.next())
		}
		time.Sleep(3 * time.Second) // more than half of a hold; nobody reads
		frames := make(chan *ddqv1.SubscribeResponse)
		go func() {
			defer close(frames)
			for {
				f, err := n.Recv()
				if err != nil {
					return
				}
				select {
				case frames <- f:
				case <-n.Context().Done(): // all tasks have come, and more than tasks came
					return
				}
			}
		}()
		late := time.After(time.Minute)
		for len(n.got) < tasks {
			select {
			case f := <-frames:
				n.take(f)
			case <-late:
				r.Fatalf("%d of %d tasks came within a minute; %d believed ready, room for %d", len(n.got), tasks, n.ready, n.room)
			}
		}
		if stale := valueOf(r, r.server.metrics.stale); stale == 0 {
			r.Error("no delivery was too late: nothing was tested")
		}
	})
}
