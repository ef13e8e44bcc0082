package service

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/forecasts"
	"github.com/ddq-io/ddq/api/service/nodes"
	"github.com/ddq-io/ddq/api/service/overview"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/steps"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/api/service/undeliverable"
	"github.com/ddq-io/ddq/api/service/watches"
	"github.com/ddq-io/ddq/api/service/workers"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// Service is the use cases of a node: what its API is asked for, checked and carried out.
// Each noun has a type of its own. Their methods are safe for concurrent use while the
// node runs, wait for their answer, and return *problem.Error throughout.
type Service struct {
	Tasks       *Tasks
	Finder      *Finder
	Bulk        *BulkEditor
	DeadLetters *DeadLetters
	Topics      *Topics
	Watches     *watches.Watches
	Delivery    *Delivery
	Fleet       *nodes.Fleet
	Workers     *workers.Workers
	Overviews   *overview.Overviews
	Schedules   *schedules.Schedules
	Calendars   *schedules.Calendars
	Workflows   *workflows.Workflows
	Audiences   *audiences.Audiences // nil: the store keeps none
	Forecasts   *forecasts.Forecasts

	node  *actors.Node
	store infoStore
}

// infoStore is what a Service itself needs of the store.
type infoStore interface {
	Info(ctx context.Context) (store.Info, error)
}

// New returns the use cases of a node. indexNow is told of a topic whose indexed attributes
// changed; nil: nobody is.
func New(node *actors.Node, indexNow func(*store.Topic)) *Service {
	if indexNow == nil {
		indexNow = func(*store.Topic) {}
	}
	st, limits := node.Store(), (*limits)(&node.Config().Limits)
	look, why, reads := &lookup{st, limits}, &explainer{st, node.Topics().Caps.With}, &taskReader{st}
	of := &steps.Steps{Store: st}
	tasks, users := &Tasks{node, st, limits, look, why, outbox{node: node}, of, tenants.New(node, st)}, audiencesOf(node, st, look)
	flows := workflows.New(node, look.topics, stepTasks{scheduleTasks{tasks}})
	of.Has = flows.Has
	coming := forecasts.New(node, st, look.topics, recipientsOf(users))
	scheduled := schedules.New(node, look.topics, scheduleTasks{tasks}, users, coming)
	topics := &Topics{node, st, node.Cells(), users, limits, look, indexNow, of}
	return &Service{
		Tasks:       tasks,
		Finder:      &Finder{node, st, limits, look, why, reads},
		Bulk:        &BulkEditor{node, st, limits, look, reads, of},
		DeadLetters: &DeadLetters{node, st, limits, look, undeliverable.New(node), of},
		Topics:      topics,
		Watches:     watches.New(node, st, limits),
		Delivery:    &Delivery{node, tasks, limits},
		Fleet:       nodes.New(node, look.topics, func(name string) *problem.Error { return limits.checkName("node", name) }),
		Workers:     workers.New(node, look.topics),
		Overviews:   overview.New(node, st, overview.Topics{Page: topics.List, Named: look.topics}),
		Schedules:   scheduled,
		Calendars:   schedules.NewCalendars(scheduled),
		Workflows:   flows,
		Audiences:   users,
		Forecasts:   coming,
		node:        node,
		store:       st,
	}
}

// SetQuotas says where the quotas of namespaces are found. It is called before the service is used.
func (s *Service) SetQuotas(of func(namespace string) *tenants.Quotas) { s.Tasks.tenants.SetQuotas(of) }

// Usage counts what the namespace of a call has of what quotas bound. It reads no task.
func (s *Service) Usage(ctx context.Context) (tenants.Usage, error) {
	return s.Tasks.tenants.Usage(ctx, schedules.List)
}

// Node is the node whose use cases they are.
func (s *Service) Node() *actors.Node { return s.node }

// Describe says what the node is and what is wrong with it.
func (s *Service) Describe(ctx context.Context) (ServerStatus, error) {
	info, err := s.store.Info(ctx)
	if err != nil {
		return ServerStatus{}, problem.AsError(err)
	}
	if err := s.node.Clocks().Read(ctx); err != nil {
		return ServerStatus{}, problem.AsError(err)
	}
	status := ServerStatus{
		Node:       s.node.Config().Node,
		Store:      info,
		Warnings:   info.Warnings,
		StoreNow:   s.node.Clock().Millis(),
		Uptime:     time.Since(s.node.Started()),
		Limits:     s.node.Config().Limits,
		Visibility: s.node.Config().Topic.Visibility,
	}
	if by := s.node.Clocks().Spread(); by > actors.ClockSpread {
		status.Warnings = append(status.Warnings, actors.SpreadText(by))
	}
	if text := fleet.FindOtherZones(s.node.Membership().View()).String(); text != "" {
		status.Warnings = append(status.Warnings, text)
	}
	status.Warnings = append(status.Warnings, actors.Warnings(s.node)...)
	if off := time.Until(s.node.Clock().Now()); off.Abs() > clock.ClockJump {
		status.Warnings = append(status.Warnings, fmt.Sprintf("the store's clock is %v off this node's", off.Round(time.Millisecond)))
	}
	if topics, longest := s.node.Metrics().Limits.Waited(limitWait); topics > 0 {
		status.Warnings = append(status.Warnings, limitWaitText(topics, longest))
	}
	return status, nil
}

// limitWait is for how long a task that has room and all that its limits ask for waits before that is worth an alarm. It should
// be 50 ms at most.
const limitWait = time.Second

// limitWaitText says that there were such waits. It names no topic: whoever may reach the server reads it.
func limitWaitText(topics int, longest time.Duration) string {
	which := "one topic"
	if topics > 1 {
		which = fmt.Sprintf("%d topics", topics)
	}
	return fmt.Sprintf("tasks of %s waited for up to %v in the last minutes although workers had room and, as far as this node knows, their limits let them go: "+
		"ddq_limit_wait_seconds has it by topic; look for calls of the store that are slow or fail (ddq_store_call_seconds and ddq_store_call_errors_total of take), and report it if there are none",
		which, longest.Round(100*time.Millisecond))
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
