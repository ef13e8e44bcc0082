package server

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/newtask"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/wire"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
)

func (q *queue) Enqueue(ctx context.Context, r *ddqv1.EnqueueRequest) (*ddqv1.EnqueueResponse, error) {
	tasks := make([]service.NewTask, 1)
	if e := newtask.Read(&tasks[0], r); e != nil {
		return nil, e
	}
	results, err := q.service.Tasks.Enqueue(ctx, tasks)
	if err != nil {
		return nil, err
	}
	done := &results[0]
	if done.Err != nil {
		return nil, done.Err
	}
	return &ddqv1.EnqueueResponse{
		Id:            done.ID,
		Topic:         r.Topic,
		ExecuteTime:   wire.Stamp(new(timestamppb.Timestamp), done.Due),
		Deduplicated:  done.Deduplicated,
		State:         wire.State(done.State),
		ReplacedState: wire.State(done.Replaced),

		IdempotencyOutcome: newtask.KeyOutcome[done.Key],
	}, nil
}

func (q *queue) EnqueueBatch(ctx context.Context, r *ddqv1.EnqueueBatchRequest) (*ddqv1.EnqueueBatchResponse, error) {
	results, err := q.enqueue(ctx, r.Tasks, nil)
	if err != nil {
		return nil, err
	}
	return &ddqv1.EnqueueBatchResponse{Results: results}, nil
}

// enqueue stores a batch and answers each item, or refuses it as a whole. Where parts are wanted,
// results are those that no part had.
func (q *queue) enqueue(ctx context.Context, requests []*ddqv1.EnqueueRequest, parts *frameParts) ([]*ddqv1.EnqueueResult, error) {
	if err := q.service.Tasks.CheckBatch(len(requests)); err != nil {
		return nil, err
	}
	b := newtask.NewBatch(requests, guard.Enqueue{Principal: auth.From(ctx)})
	if len(b.Tasks) == 0 {
		return b.Results(q.log, nil), nil // all refused
	}
	done, err := q.service.Tasks.EnqueueInParts(ctx, b.Tasks, parts.of(b))
	if err != nil {
		return nil, err
	}
	return parts.rest(b.Results(q.log, done)), nil
}

type enqueueStream = grpc.BidiStreamingServer[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]

// pipeline is one EnqueueStream: frames in work at the same time, answered as
// they finish. It owns a goroutine that reads, and one for each frame in work.
type pipeline struct {
	q      *queue
	stream enqueueStream
	room   *semaphore.Weighted // what may be in work
	end    chan error          // why the stream is over; buffered, the first counts
	sendMu sync.Mutex          // serialises Send
	slow   atomic.Int32        // frames in work of which a part was answered

	unread context.Context // ends when the client does not read its answers
	stall  context.CancelFunc
}

// What a frame counts besides its payloads, and each task of it.
const (
	frameCost = 64 << 10
	taskCost  = 128
)

func (q *queue) EnqueueStream(stream enqueueStream) error {
	p := &pipeline{
		q:      q,
		stream: stream,
		room:   semaphore.NewWeighted(q.streamBytes),
		end:    make(chan error, 1),
	}
	// The header tells the producer that its frames are taken: of those that the stream leaves without an
	// answer, whatever its end, it does not know what became of them.
	if err := stream.SendHeader(metadata.Pairs("ddq-stream", "taken")); err != nil {
		return err
	}
	p.unread, p.stall = context.WithCancel(context.WithoutCancel(stream.Context()))
	defer p.stall()
	q.loops.Go(p.read)
	var err error
	select {
	case <-p.unread.Done():
		return status.Stalled() // which breaks the Send that hangs
	case err = <-p.end:
	case <-stream.Context().Done():
		err = stream.Context().Err()
	case <-q.drain.Done():
		err = status.Draining()
	}
	// Whatever was accepted is answered. Taking all the room waits for the work and
	// keeps the reader, which outlives this call, from starting more. Work ends with the
	// stream's context, or when an answer is not read.
	if p.room.Acquire(p.unread, q.streamBytes) != nil {
		return status.Stalled()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *pipeline) read() {
	for {
		frame, err := p.stream.Recv()
		if err == nil {
			err = p.start(frame)
		}
		if err != nil {
			p.finish(err)
			return
		}
	}
}

// start puts a frame to work, once there is room.
func (p *pipeline) start(frame *ddqv1.EnqueueStreamRequest) error {
	ctx := p.stream.Context()
	cost := p.cost(frame)
	if err := p.room.Acquire(ctx, cost); err != nil {
		return err
	}
	p.q.loops.Go(func() {
		parts := &frameParts{pipeline: p, frame: frame, cost: cost}
		defer parts.end()
		if err := p.q.guard(ctx, func() error { return p.answer(parts) }); err != nil {
			p.finish(err)
		}
	})
	return nil
}

func (p *pipeline) cost(frame *ddqv1.EnqueueStreamRequest) int64 {
	bytes := int64(frameCost)
	for _, t := range frame.Tasks {
		bytes += costOf(t)
	}
	return min(bytes, p.q.streamBytes)
}

func costOf(t *ddqv1.EnqueueRequest) int64 { return int64(len(t.Payload)) + taskCost }

func (p *pipeline) answer(parts *frameParts) error {
	frame := parts.frame
	results, err := p.q.enqueue(p.stream.Context(), frame.Tasks, parts)
	reply := &ddqv1.EnqueueStreamResponse{Sequence: frame.Sequence, Results: results}
	if err != nil {
		reply.Error = status.Item(p.q.log, status.Classify(err))
	}
	return p.send(reply)
}

func (p *pipeline) send(reply *ddqv1.EnqueueStreamResponse) error {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	stall := time.AfterFunc(p.q.sendStall, p.stall)
	defer stall.Stop()
	return p.stream.Send(reply)
}

// frameParts are the answers to a frame while some of its tasks take long. What was answered counts no
// more of what may be in work.
type frameParts struct {
	pipeline *pipeline
	frame    *ddqv1.EnqueueStreamRequest
	cost     int64  // that the frame counts
	told     []bool // by place in the frame; nil: none
}

// of returns what tells parts of b; nil where the answer is to be whole.
func (f *frameParts) of(b newtask.Batch) *service.Parts {
	if f == nil || !f.frame.InParts {
		return nil
	}
	return &service.Parts{
		Eager: func() bool { return f.pipeline.slow.Load() > 0 },
		Answer: func(done []service.Enqueued, which []int) {
			results, at := b.Some(f.pipeline.q.log, done, which, f.told == nil)
			f.tell(&ddqv1.EnqueueStreamResponse{Sequence: f.frame.Sequence, Results: results, Part: at})
		},
	}
}

func (f *frameParts) tell(reply *ddqv1.EnqueueStreamResponse) {
	freed := int64(0)
	if f.told == nil {
		f.told, freed = make([]bool, len(f.frame.Tasks)), frameCost
		f.pipeline.slow.Add(1)
	}
	for _, i := range reply.Part {
		f.told[i] = true
		freed += costOf(f.frame.Tasks[i])
	}
	if err := f.pipeline.send(reply); err != nil {
		f.pipeline.finish(err)
	}
	freed = min(freed, f.cost-1) // the end of the stream waits for what counts
	f.cost -= freed
	f.pipeline.room.Release(freed)
}

// rest are the results that no part had.
func (f *frameParts) rest(all []*ddqv1.EnqueueResult) []*ddqv1.EnqueueResult {
	if f == nil || f.told == nil {
		return all
	}
	rest := all[:0]
	for i, r := range all {
		if !f.told[i] {
			rest = append(rest, r)
		}
	}
	return rest
}

func (f *frameParts) end() {
	if f.told != nil {
		f.pipeline.slow.Add(-1)
	}
	f.pipeline.room.Release(f.cost)
}

// finish ends the stream for err, unless it is over already.
func (p *pipeline) finish(err error) {
	select {
	case p.end <- err:
	default:
	}
}
