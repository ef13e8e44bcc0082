package workers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

// askFor is how long nodes are waited for.
const askFor = time.Second

// Workers lists the workers of a fleet. It is safe for concurrent use.
type Workers struct {
	node   *actors.Node
	topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error)
}

// New lists the workers of the fleet of a node; topics returns the topic of a name, or says that
// there is none.
func New(node *actors.Node, topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error)) *Workers {
	return &Workers{node, topics}
}

// Worker is a subscription of a worker, at the node that it is connected to.
type Worker struct {
	fleet.Worker
	Node string
}

// Page is a page of workers, by node, topic and age.
type Page struct {
	Workers []Worker
	Next    string   // token of the page behind it; empty on the last one
	Silent  []string // nodes that did not answer in time, whose workers are missing
}

// List returns a page of the workers of a topic, of every topic of the namespace of the call when it is empty. Every node that
// may have some of them is asked once, for a page at the most.
func (w *Workers) List(ctx context.Context, topic string, size int, token string) (Page, error) {
	if size < 0 {
		return Page{}, problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	from, ok := readPosition(topic, token)
	if !ok {
		return Page{}, problem.AsError(store.ErrBadCursor)
	}
	if topic != "" {
		if _, e := w.topics(ctx, topic); e != nil {
			return Page{}, e
		}
	}
	size = min(cmp.Or(size, 100), w.node.Config().Limits.PageSize, fleet.MaxWorkers-1)
	members := slices.DeleteFunc(w.node.Members(), func(m fleet.Member) bool { return m.Name < from.node })
	return pageOf(w.ask(ctx, members, topic, from, size+1), size), nil
}

// answer is what a node said.
type answer struct {
	node    string
	workers []fleet.Worker
	err     error
}

// ask asks members for as many workers as are wanted, all at once.
func (w *Workers) ask(ctx context.Context, members []fleet.Member, topic string, from position, most int) []answer {
	return fleet.AskAll(ctx, askFor, members, func(ctx context.Context, m fleet.Member) answer {
		q := fleet.WorkersQuery{Topic: topic, Scope: scope.Of(ctx), Most: most}
		if m.Name == from.node {
			q.After = from.WorkerKey
		}
		found, err := w.askOne(ctx, m, q)
		found = slices.DeleteFunc(found, func(f fleet.Worker) bool { return !q.Means(f.Topic) }) // nodes of before know no namespaces
		return answer{m.Name, found, err}
	})
}

func (w *Workers) askOne(ctx context.Context, m fleet.Member, q fleet.WorkersQuery) ([]fleet.Worker, error) {
	if m.Name == w.node.Config().Node {
		return w.node.Peer().Workers(ctx, q)
	}
	return w.node.Membership().Peers().Workers(ctx, m, q)
}

// pageOf takes what fits on a page from the answers, which are in the order of their nodes.
func pageOf(answers []answer, size int) (p Page) {
	for _, a := range answers {
		if a.err != nil {
			p.Silent = append(p.Silent, a.node)
		}
		for _, found := range a.workers {
			switch n := len(p.Workers); {
			case n < size:
				p.Workers = append(p.Workers, Worker{found, a.node})
			case p.Next == "":
				last := &p.Workers[n-1]
				p.Next = position{last.Node, last.WorkerKey}.token()
			}
		}
	}
	slices.SortFunc(p.Silent, strings.Compare)
	return p
}
