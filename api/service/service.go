package service

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Service is the use cases of a node: what its API is asked for, checked and carried out.
// Its methods are safe for concurrent use while the node runs, wait for their answer, and
// return *problem.Error throughout.
type Service struct {
	node   *actors.Node
	limits *limits
	nudge  func(*store.Topic)
	tails  tails
}

// limits check requests.
type limits actors.Limits

// New returns the use cases of a node. indexNow is told of a topic whose indexed attributes
// changed; nil: nobody is.
func New(node *actors.Node, indexNow func(*store.Topic)) *Service {
	if indexNow == nil {
		indexNow = func(*store.Topic) {}
	}
	return &Service{node: node, limits: (*limits)(&node.Config().Limits), nudge: indexNow}
}

// Node is the node whose use cases they are.
func (s *Service) Node() *actors.Node { return s.node }

// Describe says what the node is and what is wrong with it.
func (s *Service) Describe(ctx context.Context) (ServerStatus, error) {
	info, err := s.node.Store().Info(ctx)
	if err != nil {
		return ServerStatus{}, problem.AsError(err)
	}
	if err := s.node.ReadClock(ctx); err != nil {
		return ServerStatus{}, problem.AsError(err)
	}
	status := ServerStatus{
		Node:       s.node.Config().Node,
		Store:      info,
		Warnings:   info.Warnings,
		StoreNow:   s.node.Clock().Millis(),
		Uptime:     time.Since(s.node.Started()),
		Limits:     actors.Limits(*s.limits),
		Visibility: s.node.Config().Topic.Visibility,
	}
	if by := s.node.Spread(); by > actors.ClockSpread {
		status.Warnings = append(status.Warnings, actors.SpreadText(by))
	}
	if off := time.Until(s.node.Clock().Now()); off.Abs() > actors.ClockJump {
		status.Warnings = append(status.Warnings, fmt.Sprintf("the store's clock is %v off this node's", off.Round(time.Millisecond)))
	}
	return status, nil
}

// ServerStatus describes the node.
type ServerStatus struct {
	Node       string
	Store      store.Info
	Warnings   []string
	StoreNow   store.Millis
	Uptime     time.Duration
	Limits     actors.Limits
	Visibility time.Duration // default of new topics
}
