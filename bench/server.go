package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/testbed"
)

// adminTimeout bounds calls that may have to count or delete a backlog.
const adminTimeout = time.Minute

// visibilityTimeout is short, so that what a killed server or worker held comes
// back within the run.
const visibilityTimeout = 5 * time.Second

// openDDQ starts what the options ask for, or connects to what runs.
func openDDQ(ctx context.Context, reach Reach, o Options, b *box.Box) (*Instance, error) {
	topic := fmt.Sprintf("bench-%d", o.Seed)
	if o.Addr != "" {
		return describeDDQ(ctx, &Instance{Target: o.policies.target(o.Addr, topic), Addr: o.Addr, reach: reach}, topic, o)
	}
	s := &testbed.Server{}
	storeFlag, err := s.OpenStore(ctx, o.Store, b)
	if err != nil {
		return nil, err
	}
	to, err := o.Traces.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx, o.ServerBin, storeFlag, b, o.Traces.Flags(to)...); err != nil {
		to.Close()
		return nil, err
	}
	inst := &Instance{Spans: to, Store: s.Store, Settings: s.Settings, Disk: s.Disk}
	inst.Target, inst.Addr, inst.HTTPAddr = o.policies.target(s.GRPCAddr, topic), s.GRPCAddr, s.HTTPAddr
	inst.Server = []*box.Process{s.Process}
	inst.StoreBytes = s.StoreBytes()
	inst.Restart = s.Restart
	return describeDDQ(ctx, inst, topic, o)
}

// describeDDQ makes the topic and asks the server what it is.
func describeDDQ(ctx context.Context, inst *Instance, topic string, o Options) (*Instance, error) {
	c, err := inst.connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	server, err := c.Server(ctx)
	if err != nil {
		return nil, fmt.Errorf("server at %s: %s", inst.Addr, err.Error()) // not wrapped: ddq would explain it for its own --addr
	}
	if _, err := c.CreateTopic(ctx, topic, o.policies.topic()); err != nil {
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	inst.Version = server.Version
	inst.Settings = strings.TrimPrefix(fmt.Sprintf("%s, %s", inst.Settings, workersOf(o)), ", ")
	if said := o.Traces.String(); said != "" {
		inst.Settings += ", " + said
	}
	if o.API == apiREST {
		inst.Settings += ", producers call by REST"
	}
	if p := o.policies; len(p) > 0 {
		inst.Settings += ", tasks use " + strings.Join(p, ", ")
	}
	if inst.Store == "" {
		inst.Store = server.Store
	}
	inst.Pending = func(ctx context.Context) (int64, error) { return inst.pending(ctx, topic) }
	if len(inst.Server) == 0 || strings.Contains(inst.Store, "://") {
		inst.Close = func(ctx context.Context) error { return inst.deleteTopic(ctx, topic) }
	}
	return inst, nil
}

// connect returns a client of a ddq.
func (inst *Instance) connect() (*client.Client, error) {
	return inst.reach.dial(inst.Addr, client.Config{Timeout: adminTimeout})
}

// workersOf says how many workers there are and what each takes.
func workersOf(o Options) string {
	most := strconv.Itoa(o.InFlight)
	if o.InFlight == 0 {
		most = "the default"
	}
	return fmt.Sprintf("%d workers take %s in flight each", o.Workers, most)
}

// pending counts the tasks of a topic that wait.
func (inst *Instance) pending(ctx context.Context, topic string) (int64, error) {
	c, err := inst.connect()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	status, err := c.DescribeTopic(ctx, topic)
	return status.Depth.Scheduled + status.Depth.Ready, err
}

// deleteTopic removes what the bench left in a server or store that goes on.
func (inst *Instance) deleteTopic(ctx context.Context, topic string) error {
	c, err := inst.connect()
	if err != nil {
		return err
	}
	return errors.Join(c.DeleteTopic(ctx, topic, true), c.Close())
}
