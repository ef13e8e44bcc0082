package conn

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Exposure is a way in which others than ddq may use a server, or more may be done there than ddq needs.
type Exposure struct {
	Text   string
	Remote bool // other machines may
}

// Exposures asks every primary.
func (c *Client) Exposures(ctx context.Context) (all []Exposure, err error) {
	var mu sync.Mutex // of all
	err = c.nodes.each(ctx, func(ctx context.Context, node *redis.Client) error {
		for _, ask := range []func(context.Context, *redis.Client) (Exposure, error){exposureOf, patchesOf} {
			found, err := ask(ctx, node)
			if err != nil {
				return err
			}
			if found.Text == "" {
				continue
			}
			if c.IsCluster() {
				found.Text = node.Options().Addr + ": " + found.Text
			}
			mu.Lock()
			all = append(all, found)
			mu.Unlock()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Exposure) int { return strings.Compare(a.Text, b.Text) })
	return all, err
}

// exposureOf is the worst that is found out about a server. Its text is empty when that is nothing.
func exposureOf(ctx context.Context, node *redis.Client) (Exposure, error) {
	at, open := asStranger(ctx, node.Options())
	const all = "redis asks for no password: "
	switch {
	case !open:
		return rightsOf(ctx, node)
	case !isLocal(at):
		return Exposure{all + "whoever reaches it may read, change and delete every task; set a password there, and make a user for ddq (ACL SETUSER)", true}, nil
	}
	if bind, err := boundOpenly(ctx, node); err == nil && bind != "" && at.Network() == "tcp" {
		return Exposure{all + "protected-mode is no and bind is " + bind + ", so that other machines may read, change and delete every task; set a password there, or bind 127.0.0.1", true}, nil
	}
	return Exposure{all + "every user of this machine may read, change and delete every task", false}, ctx.Err()
}

// asStranger connects without a password. It reports where to, and whether the server does what such a
// connection asks for.
func asStranger(ctx context.Context, o *redis.Options) (at net.Addr, open bool) {
	stranger := *o
	stranger.Username, stranger.Password = "", ""
	stranger.CredentialsProvider, stranger.CredentialsProviderContext, stranger.StreamingCredentialsProvider, stranger.OnConnect = nil, nil, nil, nil
	stranger.PoolSize, stranger.DB = 1, 0
	stranger.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := o.Dialer(ctx, network, addr)
		if err == nil {
			at = conn.RemoteAddr()
		}
		return conn, err
	}
	client := redis.NewClient(&stranger)
	defer client.Close()
	err := client.Ping(ctx).Err()
	return at, err == nil && at != nil
}

// boundOpenly returns the addresses that a server is bound to when protected-mode is off and other machines
// reach some of them.
func boundOpenly(ctx context.Context, node *redis.Client) (string, error) {
	config, err := node.ConfigGet(ctx, "bind").Result()
	if err != nil {
		return "", err
	}
	protected, err := node.ConfigGet(ctx, "protected-mode").Result()
	if err != nil || protected["protected-mode"] != "no" || onlyLoopback(config["bind"]) {
		return "", err
	}
	return fmt.Sprintf("%q", config["bind"]), nil
}

// rightsOf is about a user who may do more than ddq does. Who may not even ask may do little.
func rightsOf(ctx context.Context, node *redis.Client) (Exposure, error) {
	user, err := node.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return Exposure{}, ctx.Err()
	}
	if verdict, err := node.Do(ctx, "ACL", "DRYRUN", user, "FLUSHALL").Text(); err != nil || verdict != "OK" {
		return Exposure{}, ctx.Err()
	}
	return Exposure{fmt.Sprintf("ddq is user %q of redis, who may do everything there, such as FLUSHALL: a user of its own needs less (ACL SETUSER)", user), false}, nil
}

// isLocal reports whether an address is one that only this machine has.
func isLocal(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// onlyLoopback reports whether other machines reach none of the addresses of the setting bind. None at all is
// every address.
func onlyLoopback(bind string) bool {
	addrs := strings.Fields(bind)
	return len(addrs) > 0 && !slices.ContainsFunc(addrs, func(addr string) bool {
		ip := net.ParseIP(strings.TrimPrefix(addr, "-"))
		return ip == nil || !ip.IsLoopback()
	})
}
