package tap

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/ledger"
)

// tape is a ledger in memory, and the server of a stream: it answers with one frame.
type tape struct {
	grpc.ClientConnInterface
	grpc.ClientStream
	answer *ddqv1.SubscribeResponse
	lines  []string
	calls  uint64
}

func (p *tape) Append(events ...ledger.Event) {
	for _, e := range events {
		p.lines = append(p.lines, fmt.Sprintf("%s %s %s/%s%s %s%s", e.Kind, e.Op, e.Task, e.Token, e.Name, e.Result, e.Reason))
	}
}

func (p *tape) NextCall() uint64 {
	p.calls++
	return p.calls
}

func (p *tape) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return p, nil
}

func (p *tape) SendMsg(any) error { return nil }

func (p *tape) RecvMsg(m any) error {
	*m.(*ddqv1.SubscribeResponse) = ddqv1.SubscribeResponse{Settled: p.answer.GetSettled()}
	return nil
}

// TestWhatAFrameSaysIsWrittenDown has one of each, of which some did not go well.
func TestWhatAFrameSaysIsWrittenDown(t *testing.T) {
	a, b := []byte{0xa}, []byte{0xb}
	p := &tape{answer: &ddqv1.SubscribeResponse{Settled: []*ddqv1.Settled{{Sequence: 7, Results: []*ddqv1.SettleResult{
		{TaskId: "t", HoldToken: a, Error: &ddqv1.Error{Reason: "HOLD_LOST"}},
		{TaskId: "u", HoldToken: b, Name: "charge", Already: true},
		{TaskId: "u", HoldToken: b, Name: "ship", Error: &ddqv1.Error{Reason: "HOLD_LOST"}},
	}}}}}
	s, err := New(p, "mail", p).NewStream(t.Context(), nil, ddqv1.DelayQueueService_Subscribe_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	err = s.SendMsg(&ddqv1.SubscribeRequest{
		Sequence: 7, Acks: []*ddqv1.Ack{{TaskId: "t", HoldToken: a}}, Nacks: []*ddqv1.Nack{{TaskId: "v", HoldToken: a}}, Extends: []*ddqv1.Extend{{TaskId: "u", HoldToken: b}},
		Checkpoints: []*ddqv1.Checkpoint{{TaskId: "u", HoldToken: b, Name: "charge"}, {TaskId: "u", HoldToken: b, Name: "ship"}, {TaskId: "u", HoldToken: b, Name: "mail"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(new(ddqv1.SubscribeResponse)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"call ack t/0a ", "call nack v/0a ", "call extend u/0b ", "call checkpoint u/0bcharge ", "call checkpoint u/0bship ", "call checkpoint u/0bmail ",
		"answer ack t/0a refusedHOLD_LOST", "answer nack v/0a ok", "answer extend u/0b ok",
		"answer checkpoint u/0bcharge already", "answer checkpoint u/0bship refusedHOLD_LOST", "answer checkpoint u/0bmail ok",
	}
	if !slices.Equal(p.lines, want) {
		t.Errorf("it is\n%q, want\n%q", p.lines, want)
	}
}

// TestAnAnswerInPartsSaysNothingOfTheRest, which may be refused later.
func TestAnAnswerInPartsSaysNothingOfTheRest(t *testing.T) {
	a, b := []byte{0xa}, []byte{0xb}
	p := &tape{answer: &ddqv1.SubscribeResponse{Settled: []*ddqv1.Settled{
		{Sequence: 7, Part: true, Results: []*ddqv1.SettleResult{{TaskId: "t", HoldToken: a}}},
		{Sequence: 7, Results: []*ddqv1.SettleResult{{TaskId: "u", HoldToken: b, Error: &ddqv1.Error{Reason: "HOLD_LOST"}}}},
	}}}
	s, err := New(p, "mail", p).NewStream(t.Context(), nil, ddqv1.DelayQueueService_Subscribe_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	err = s.SendMsg(&ddqv1.SubscribeRequest{Sequence: 7, Acks: []*ddqv1.Ack{{TaskId: "t", HoldToken: a}, {TaskId: "u", HoldToken: b}}})
	if err == nil {
		err = s.RecvMsg(new(ddqv1.SubscribeResponse))
	}
	want := []string{"call ack t/0a ", "call ack u/0b ", "answer ack t/0a ok", "answer ack u/0b refusedHOLD_LOST"}
	if err != nil || !slices.Equal(p.lines, want) {
		t.Errorf("got %q, want %q: %v", p.lines, want, err)
	}
}
