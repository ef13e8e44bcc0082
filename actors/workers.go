package actors

import (
	"context"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
)

// Workers lists workers of the node, by topic and age.
func (p *Peer) Workers(ctx context.Context, q fleet.WorkersQuery) ([]fleet.Worker, error) {
	if !p.rt.Running.Load() {
		return nil, p.rt.Serving()
	}
	most := min(q.Most, fleet.MaxWorkers)
	var found []fleet.Worker
	for _, ref := range p.withWorkers(&q) {
		if len(found) >= most {
			break
		}
		ask := &listWorkers{most: most - len(found), reply: make(chan []fleet.Worker, 1)}
		if ref.Config().Name == q.After.Topic {
			ask.after = q.After.Number
		}
		p.rt.Send(ref.pid, ask)
		select {
		case some := <-ask.reply:
			found = append(found, some...)
		case <-ctx.Done():
			return nil, problem.AsError(ctx.Err())
		}
	}
	return found, nil
}

// withWorkers returns the topics with workers that a query is about, by name.
func (p *Peer) withWorkers(q *fleet.WorkersQuery) (refs []*Topic) {
	p.topics.Each(func(ref *Topic) {
		name := ref.Config().Name
		if ref.subscriptions.Load() > 0 && name >= q.After.Topic && q.Means(name) {
			refs = append(refs, ref)
		}
	})
	slices.SortFunc(refs, func(a, b *Topic) int { return strings.Compare(a.Config().Name, b.Config().Name) })
	return refs
}

// list returns workers of the topic at this node, the oldest first.
func (t *topicSubs) list(m *listWorkers) (found []fleet.Worker) {
	for load := range t.core.Loads(m.after) {
		if len(found) == m.most {
			break
		}
		sub := t.subscribers[load.Sub]
		if sub == nil || sub.Options.ByNode() {
			continue
		}
		found = append(found, fleet.Worker{
			WorkerKey:   fleet.WorkerKey{Topic: t.topic.Name, Number: sub.ID},
			Name:        sub.Options.Worker,
			Since:       sub.Since,
			InFlight:    load.InFlight,
			Credit:      load.Credit,
			MaxInFlight: sub.Options.MaxInFlight,
			Client:      sub.Options.Client,
		})
	}
	return found
}
