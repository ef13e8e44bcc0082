package server

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

func (a *admin) ListWorkers(ctx context.Context, r *ddqv1.ListWorkersRequest) (*ddqv1.ListWorkersResponse, error) {
	size, e := pageSize(r.PageSize)
	if e != nil {
		return nil, e
	}
	page, err := a.service.Workers.List(ctx, r.Topic, size, r.PageToken)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListWorkersResponse{NextPageToken: page.Next, SilentNodes: page.Silent}
	for i := range page.Workers {
		w := workerWire(&page.Workers[i].Worker)
		w.Node = page.Workers[i].Node
		out.Workers = append(out.Workers, w)
	}
	return out, nil
}

// workerWire converts a worker, of which its node says all but where it is.
func workerWire(w *fleet.Worker) *ddqv1.Worker {
	return &ddqv1.Worker{
		Name:        wire.Text(w.Name),
		Topic:       w.Topic,
		SinceUnixMs: int64(w.Since),
		InFlight:    int64(w.InFlight),
		Credit:      int64(w.Credit),
		MaxInFlight: int64(w.MaxInFlight),
		Client:      wire.Text(w.Client),
	}
}

func (p *peer) ListPeerWorkers(ctx context.Context, r *ddqv1.ListPeerWorkersRequest) (*ddqv1.ListPeerWorkersResponse, error) {
	found, err := p.service.Node().Peer().Workers(ctx, fleet.WorkersQuery{
		Topic: r.Topic, Scope: r.Namespace, After: fleet.WorkerKey{Topic: r.AfterTopic, Number: r.AfterNumber}, Most: int(r.Most),
	})
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListPeerWorkersResponse{}
	for i := range found {
		out.Workers = append(out.Workers, &ddqv1.PeerWorker{Number: found[i].Number, Worker: workerWire(&found[i])})
	}
	return out, nil
}
