package conn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// send carries commands about a key to the node that has it, on one connection
// and in one round trip. The first one decides: while it certainly did not run,
// because the key is elsewhere or nobody serves it at the moment, all are sent
// again. Its error is returned; those of the others are for the caller to look at.
func (n *nodes) send(ctx context.Context, key string, cmds ...redis.Cmder) error {
	node, err := n.of(ctx, key)
	if err == nil {
		err = exchange(ctx, node, false, cmds)
	}
	for try := 0; errors.Is(err, errTookOver) && n.one != nil && try < maxReturns; try++ {
		err = exchange(ctx, node, false, cmds)
	}
	if err == nil || n.patience == 0 {
		return err
	}
	return n.resend(ctx, key, cmds, err)
}

// resend sends commands of which the first failed until it does not, does so for
// a reason that will not pass, or may have run.
func (n *nodes) resend(ctx context.Context, key string, cmds []redis.Cmder, err error) error {
	end := time.Now().Add(n.patience)
	for try := 0; ; try++ {
		where := whereNext(err)
		if where.over || errors.Is(err, redis.ErrClosed) && n.isClosed() {
			return err
		}
		if n.cluster != nil {
			n.cluster.ReloadState(ctx)
		}
		if where.addr == "" || try > 2 { // redirections may go round in circles for a while
			if !pause(ctx, try, end) {
				return err
			}
		}
		node, nodeErr := n.next(ctx, key, where)
		if err = nodeErr; err == nil {
			err = exchange(ctx, node, where.asking, cmds)
		}
		if err == nil {
			return nil
		}
	}
}

func (n *nodes) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed || n.cluster == nil // the library closes clients of nodes that left
}

func (n *nodes) next(ctx context.Context, key string, where whereabouts) (*redis.Client, error) {
	if where.addr == "" || n.cluster == nil {
		return n.of(ctx, key)
	}
	return n.at(where.addr)
}

// pause waits before the next try, longer each time, and says whether there is
// to be one.
func pause(ctx context.Context, try int, end time.Time) bool {
	d := min(100*time.Millisecond, 5*time.Millisecond<<min(try, 10))
	d = d/2 + rand.N(d/2)
	if time.Now().Add(d).After(end) {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// exchange sends commands to a node, with a leave to be asked for a slot that it
// is still being given, and returns the error of the first one.
func exchange(ctx context.Context, node *redis.Client, asking bool, cmds []redis.Cmder) error {
	if len(cmds) == 1 && !asking {
		return node.Process(ctx, cmds[0])
	}
	p := node.Pipeline()
	if asking {
		_ = p.Process(ctx, redis.NewStatusCmd(ctx, "asking")) // nothing is sent before Exec
	}
	for _, cmd := range cmds {
		cmd.SetErr(nil)
		_ = p.Process(ctx, cmd)
	}
	_, err := p.Exec(ctx)
	if first := cmds[0].Err(); first != nil {
		return first
	}
	for _, cmd := range cmds[1:] {
		if cmd.Err() != nil {
			return nil
		}
	}
	return err
}

// whereabouts is where a command is to be sent next.
type whereabouts struct {
	over   bool   // nowhere: it may have run, or would fail again
	addr   string // empty: to the node that has the key by then
	asking bool
}

// passing are the beginnings of replies with which a server refuses a command
// before it has any effect, while another one takes over from it.
var passing = []string{"TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN"}

func whereNext(err error) whereabouts {
	var unsent *unsentError
	var reply redis.Error
	isReply := errors.As(err, &reply)
	if isReply {
		for _, prefix := range passing {
			if strings.HasPrefix(reply.Error(), prefix) {
				return whereabouts{}
			}
		}
	}
	switch {
	case errors.Is(err, redis.ErrClosed):
		return whereabouts{}
	case errors.As(err, &unsent):
		return whereabouts{over: isReply || isOver(err)}
	case !isReply:
		return whereabouts{over: true}
	}
	if addr, ok := redis.IsMovedError(reply); ok {
		return whereabouts{addr: reachable(addr)}
	}
	if addr, ok := redis.IsAskError(reply); ok {
		return whereabouts{addr: reachable(addr), asking: true}
	}
	return whereabouts{over: true}
}

func isOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// reachable returns an address as nodes name them, or nothing when the host is
// left out.
func reachable(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err != nil || host == "" || host == "?" {
		return ""
	}
	return addr
}
