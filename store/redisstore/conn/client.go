package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// Client carries commands and scripts to the servers. It waits for replicas to have what
// they change, and says which key was of another type than expected. It owns the checker
// of the servers, and what their clients start.
type Client struct {
	nodes   *nodes
	apart   *nodes // the same servers, on a connection that nothing else waits for
	wait    wait
	checker *checker
	typeOf  func(key string) string // empty: not known
	close   func() error            // once
}

// Open connects to the servers and checks that they may be trusted: store.ErrUnsafe says
// what to change when not, store.ErrUnavailable that they could not be reached. typeOf is
// of which type a key should be, empty when it is not known.
func Open(ctx context.Context, cfg Config, typeOf func(key string) string, log *slog.Logger) (*Client, error) {
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	w, err := newWait(cfg, t)
	if err != nil {
		return nil, err
	}
	silent := slog.New(slog.DiscardHandler) // the other clients come to the same servers
	c := &Client{nodes: connect(cfg, t.copy(), newIdentities(log)), apart: connectOnce(cfg, t, newIdentities(silent)), wait: w, typeOf: typeOf}
	c.checker = &checker{nodes: c.nodes, wait: w, allowVolatile: cfg.AllowVolatile, log: log}
	if err := c.checker.first(ctx); err != nil {
		return nil, errors.Join(err, c.closeAll())
	}
	c.checker.start(cmp.Or(cfg.CheckEvery, 30*time.Second))
	c.close = sync.OnceValue(func() error {
		c.checker.stop()
		return c.closeAll()
	})
	return c, nil
}

// Close ends everything. It may be called twice.
func (c *Client) Close() error { return c.close() }

func (c *Client) closeAll() error { return errors.Join(c.nodes.close(), c.apart.close()) }

// Info tells what the last check of the servers found; they are checked on opening and
// every Config.CheckEvery.
func (c *Client) Info() store.Info {
	info := *c.checker.info.Load()
	info.ManyClocks = c.IsCluster()
	info.Servers = c.nodes.ids.changes.Load() + c.apart.ids.changes.Load()
	return info
}

// Server returns who the server is that has a key, see store.Stamp: what is sent after that
// is answered by this one, or by one that it does not name yet.
func (c *Client) Server(ctx context.Context, key string) uint64 {
	if c.nodes.one != nil {
		return c.nodes.ids.of("")
	}
	node, err := c.nodes.of(ctx, key)
	if err != nil {
		return 0
	}
	return c.nodes.ids.of(node.Options().Addr)
}

// OnlyServer returns what only a server has in its INFO that Server named; empty: it does not say
// who it is. False: it is not there any more.
func (c *Client) OnlyServer(number uint64) (string, bool) {
	id, there := c.nodes.ids.runID(number)
	if !there || id == "" {
		return "", there
	}
	return runID + ":" + id, true
}

// RunID returns what the server that Server named calls its process, which it draws anew at each
// start; empty: it does not say, or it is not there any more.
func (c *Client) RunID(number uint64) string {
	id, _ := c.nodes.ids.runID(number)
	return id
}

// IsCluster reports whether the servers are a cluster.
func (c *Client) IsCluster() bool { return c.nodes.cluster != nil }

// Replicas is how many of them are waited for to have a change.
func (c *Client) Replicas() int { return c.wait.replicas }

// Mark is what scripts get in front of the moment when their answer is to be
// waited for: they then write something in any case. A call that finds its work
// done by an earlier one, which did not reach the replicas, would else have
// nothing to wait for.
func (c *Client) Mark(changes bool) string {
	if c.wait.replicas > 0 && changes {
		return "w"
	}
	return ""
}

// Send carries a command that changes nothing about one key to the node that has it.
func (c *Client) Send(ctx context.Context, key string, cmd redis.Cmder) error {
	return c.blame(ctx, c.nodes.send(ctx, key, cmd), key)
}

// Change sends a command that changes something, and waits for replicas to have
// it: WAIT goes along on the same connection, and answers for all that the
// command did.
func (c *Client) Change(ctx context.Context, key string, cmd redis.Cmder) error {
	return c.change(ctx, key, cmd, c.wait.replicas)
}

// change waits for so many replicas.
func (c *Client) change(ctx context.Context, key string, cmd redis.Cmder, replicas int) error {
	if replicas == 0 {
		return c.nodes.send(ctx, key, cmd)
	}
	reached := redis.NewIntCmd(ctx, "wait", replicas, c.wait.timeout.Milliseconds())
	if err := c.nodes.send(ctx, key, cmd, reached); err != nil {
		return err
	}
	if err := reached.Err(); err != nil {
		return fmt.Errorf("%w: done, but whether replicas have it is not known: %s", store.ErrUnknown, err.Error())
	}
	if n := int(reached.Val()); n < replicas {
		return fmt.Errorf("%w: done, but only %d of %d replicas have it after %v", store.ErrUnknown, n, replicas, c.wait.timeout)
	}
	return nil
}

// blame looks for the key that a command was refused for, if it was for the type of one.
func (c *Client) blame(ctx context.Context, err error, keys ...string) error {
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	types, cmds := make([]*redis.StatusCmd, len(keys)), make([]redis.Cmder, len(keys))
	for i, key := range keys {
		types[i] = redis.NewStatusCmd(ctx, "type", key)
		cmds[i] = types[i]
	}
	if c.nodes.send(ctx, keys[0], cmds...) != nil {
		return err
	}
	for i, key := range keys {
		if is, want := types[i].Val(), c.typeOf(key); want != "" && is != "" && is != "none" && is != want {
			return &wrongTypeError{key, is, want, err}
		}
	}
	return err
}

// Run runs a script on the node that has its keys, which share a slot. A server
// that does not know it yet (after a restart, a failover or SCRIPT FLUSH) has run
// nothing and is sent the source.
func (c *Client) Run(ctx context.Context, sc *Script, keys []string, argv []any) (any, error) {
	return c.RunAndWait(ctx, sc, !sc.Reads, keys, argv)
}

// RunApart is Run of a script about one key, on a connection that no other call waits for,
// and without waiting for replicas.
func (c *Client) RunApart(ctx context.Context, sc *Script, key string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.SHA, []string{key}, argv)
	err := c.apart.send(ctx, key, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.Source, []string{key}, argv)
		err = c.apart.send(ctx, key, cmd)
	}
	return cmd.Val(), c.blame(ctx, err, key)
}

// RunReplicated is Run of a script that changes something, and waits for one replica at least to have it, if the server has
// one: also where Config.WaitReplicas asks for none.
func (c *Client) RunReplicated(ctx context.Context, sc *Script, keys []string, argv []any) (any, error) {
	replicas := c.wait.replicas
	if replicas == 0 {
		info := redis.NewStringCmd(ctx, "info", "replication")
		if err := c.nodes.send(ctx, keys[0], info); err != nil {
			return nil, err
		}
		if !strings.Contains(info.Val(), "connected_slaves:0") {
			replicas = 1
		}
	}
	cmd := evalCmd(ctx, "evalsha", sc.SHA, keys, argv)
	err := c.change(ctx, keys[0], cmd, replicas)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.Source, keys, argv)
		err = c.change(ctx, keys[0], cmd, replicas)
	}
	if err != nil {
		return nil, c.blame(ctx, err, keys...)
	}
	return cmd.Val(), nil
}

// RunAndWait is run with a say in whether replicas are waited for.
func (c *Client) RunAndWait(ctx context.Context, sc *Script, wait bool, keys []string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.SHA, keys, argv)
	err := c.sendAndWait(ctx, keys[0], wait, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.Source, keys, argv)
		err = c.sendAndWait(ctx, keys[0], wait, cmd)
	}
	if err != nil {
		return nil, c.blame(ctx, err, keys...)
	}
	return cmd.Val(), nil
}

func (c *Client) sendAndWait(ctx context.Context, key string, wait bool, cmd redis.Cmder) error {
	if wait {
		return c.Change(ctx, key, cmd)
	}
	return c.nodes.send(ctx, key, cmd)
}

func evalCmd(ctx context.Context, name, what string, keys []string, argv []any) *redis.Cmd {
	args := make([]any, 3, 3+len(keys)+len(argv))
	args[0], args[1], args[2] = name, what, len(keys)
	for _, key := range keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, argv...)...)
}

// RunEach runs a script that reads once for each set of keys, in one round trip
// to each node.
func (c *Client) RunEach(ctx context.Context, sc *Script, keys [][]string, argv ...any) ([]any, error) {
	return c.RunEachWith(ctx, sc, keys, func(int) []any { return argv })
}

// RunEachWith is runEach with arguments of its own for each set of keys.
func (c *Client) RunEachWith(ctx context.Context, sc *Script, keys [][]string, argv func(i int) []any) ([]any, error) {
	cmds := make([]*redis.Cmd, len(keys))
	var wg sync.WaitGroup
	for node, items := range c.byNode(ctx, keys) {
		wg.Go(func() {
			for _, i := range items {
				cmds[i] = evalCmd(ctx, "evalsha", sc.SHA, keys[i], argv(i))
			}
			pipeline(ctx, node, cmds, items)
			if forgotten := without(cmds, items); len(forgotten) > 0 && node.ScriptLoad(ctx, sc.Source).Err() == nil {
				pipeline(ctx, node, cmds, forgotten)
			}
		})
	}
	wg.Wait()
	replies := make([]any, len(keys))
	for i, cmd := range cmds {
		if cmd != nil && cmd.Err() == nil {
			replies[i] = cmd.Val()
			continue
		}
		if c.nodes.patience == 0 && !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") && !errors.Is(cmd.Err(), errTookOver) {
			return nil, c.blame(ctx, cmd.Err(), keys[i]...)
		}
		reply, err := c.Run(ctx, sc, keys[i], argv(i)) // to where it is now
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// byNode groups the positions of keys by the node that has them, but for those
// whose node is not known.
func (c *Client) byNode(ctx context.Context, keys [][]string) map[*redis.Client][]int {
	groups := make(map[*redis.Client][]int)
	for i, k := range keys {
		if node, err := c.nodes.of(ctx, k[0]); err == nil {
			groups[node] = append(groups[node], i)
		}
	}
	return groups
}

// pipeline sends some of the commands to a node in one round trip.
func pipeline(ctx context.Context, node *redis.Client, cmds []*redis.Cmd, items []int) {
	some := make([]redis.Cmder, len(items))
	for k, i := range items {
		some[k] = cmds[i]
	}
	if err := exchange(ctx, node, false, some); err != nil && cmds[items[0]].Err() == nil {
		cmds[items[0]].SetErr(err)
	}
}

// without returns which of the commands found no script on the server.
func without(cmds []*redis.Cmd, items []int) (forgotten []int) {
	for _, i := range items {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			forgotten = append(forgotten, i)
		}
	}
	return forgotten
}
