package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// client carries commands and scripts to the servers. It waits for replicas to have what
// they change, and says which key was of another type than expected. It knows keys, and
// nothing of what lies under them.
type client struct {
	nodes *nodes
	wait  wait
}

// send carries a command that changes nothing about one key to the node that has it.
func (c *client) send(ctx context.Context, key string, cmd redis.Cmder) error {
	return c.blame(ctx, c.nodes.send(ctx, key, cmd), key)
}

// change sends a command that changes something, and waits for replicas to have
// it: WAIT goes along on the same connection, and answers for all that the
// command did.
func (c *client) change(ctx context.Context, key string, cmd redis.Cmder) error {
	if c.wait.replicas == 0 {
		return c.nodes.send(ctx, key, cmd)
	}
	reached := redis.NewIntCmd(ctx, "wait", c.wait.replicas, c.wait.timeout.Milliseconds())
	if err := c.nodes.send(ctx, key, cmd, reached); err != nil {
		return err
	}
	if err := reached.Err(); err != nil {
		return fmt.Errorf("%w: done, but whether replicas have it is not known: %s", store.ErrUnknown, err.Error())
	}
	if n := int(reached.Val()); n < c.wait.replicas {
		return fmt.Errorf("%w: done, but only %d of %d replicas have it after %v", store.ErrUnknown, n, c.wait.replicas, c.wait.timeout)
	}
	return nil
}

// blame looks for the key that a command was refused for, if it was for the type of one.
func (c *client) blame(ctx context.Context, err error, keys ...string) error {
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
		if is, want := types[i].Val(), typeOf(key); want != "" && is != "" && is != "none" && is != want {
			return &wrongTypeError{key, is, want, err}
		}
	}
	return err
}

// run runs a script on the node that has its keys, which share a slot. A server
// that does not know it yet (after a restart, a failover or SCRIPT FLUSH) has run
// nothing and is sent the source.
func (c *client) run(ctx context.Context, sc *script, keys []string, argv []any) (any, error) {
	return c.runAndWait(ctx, sc, !sc.reads, keys, argv)
}

// run runs a script there, as client.run does, without waiting for replicas.
func (n *nodes) run(ctx context.Context, sc *script, key string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.sha, []string{key}, argv)
	err := n.send(ctx, key, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.source, []string{key}, argv)
		err = n.send(ctx, key, cmd)
	}
	return cmd.Val(), err
}

// runAndWait is run with a say in whether replicas are waited for.
func (c *client) runAndWait(ctx context.Context, sc *script, wait bool, keys []string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.sha, keys, argv)
	err := c.sendAndWait(ctx, keys[0], wait, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.source, keys, argv)
		err = c.sendAndWait(ctx, keys[0], wait, cmd)
	}
	if err != nil {
		return nil, c.blame(ctx, err, keys...)
	}
	return cmd.Val(), nil
}

func (c *client) sendAndWait(ctx context.Context, key string, wait bool, cmd redis.Cmder) error {
	if wait {
		return c.change(ctx, key, cmd)
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

// runEach runs a script that reads once for each set of keys, in one round trip
// to each node.
func (c *client) runEach(ctx context.Context, sc *script, keys [][]string, argv ...any) ([]any, error) {
	return c.runEachWith(ctx, sc, keys, func(int) []any { return argv })
}

// runEachWith is runEach with arguments of its own for each set of keys.
func (c *client) runEachWith(ctx context.Context, sc *script, keys [][]string, argv func(i int) []any) ([]any, error) {
	cmds := make([]*redis.Cmd, len(keys))
	var wg sync.WaitGroup
	for node, items := range c.byNode(ctx, keys) {
		wg.Go(func() {
			for _, i := range items {
				cmds[i] = evalCmd(ctx, "evalsha", sc.sha, keys[i], argv(i))
			}
			pipeline(ctx, node, cmds, items)
			if forgotten := without(cmds, items); len(forgotten) > 0 && node.ScriptLoad(ctx, sc.source).Err() == nil {
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
		if c.nodes.patience == 0 && !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return nil, c.blame(ctx, cmd.Err(), keys[i]...)
		}
		reply, err := c.run(ctx, sc, keys[i], argv(i)) // to where it is now
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// byNode groups the positions of keys by the node that has them, but for those
// whose node is not known.
func (c *client) byNode(ctx context.Context, keys [][]string) map[*redis.Client][]int {
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
