package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// netFaults are those of the network. Every node, Redis and the worker whose cable is
// cut live in a network namespace of their own.
func netFaults() []Fault {
	on := onAnyRedis()
	return []Fault{
		{
			Name: "cut-node", What: "a node is cut off from everything", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]cable, string) {
				nd := r.anyNode()
				return []cable{{nd.name, ""}}, nd.name + " from everything"
			}),
			Cost: "its shards wait until its lease is over; its workers and producers go elsewhere once they notice (15 s), what they held comes again",
		},
		{
			Name: "cut-nodes", What: "a node is cut off from the other nodes, not from Redis", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]cable, string) {
				nd := r.anyNode()
				var cables []cable
				for _, other := range r.nodes {
					if other != nd {
						cables = append(cables, cable{nd.name, other.name}, cable{other.name, nd.name})
					}
				}
				return cables, nd.name + " from the other nodes"
			}),
			Cost: "its workers get the tasks of its own shards only; nobody else's are late",
		},
		{
			Name: "cut-one-way", What: "what a node sends to the other nodes is lost, what they send arrives", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]cable, string) {
				nd := r.anyNode()
				var cables []cable
				for _, other := range r.nodes {
					if other != nd {
						cables = append(cables, cable{nd.name, other.name})
					}
				}
				return cables, nd.name + " towards the other nodes"
			}),
			Cost: "as for cut-nodes",
		},
		{
			Name: "cut-redis", What: "a node is cut off from Redis, not from the other nodes", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]cable, string) {
				nd := r.anyNode()
				return []cable{{nd.name, redisPlace}, {redisPlace, nd.name}}, nd.name + " from Redis"
			}),
			Cost: "its shards wait until its lease is over; what is asked of it is refused, or may have been done",
		},
		{
			Name: "cut-worker", What: "a worker is cut off from all nodes", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]cable, string) {
				_, w := r.anyWorker()
				return []cable{{w.Name, ""}}, w.Name + " from everything"
			}),
			Cost: "what it holds comes again when the hold is over",
		},
		{
			Name: "lossy", What: "a node's link drops everything for 30 ms in every 150 ms", Stores: on, Nodes: 3, Network: true, strike: flicker,
			Cost: "lateness of what goes over that link, as TCP sends again",
		},
		{
			Name: "narrow", What: "a node's link carries 1 Mbit/s", Stores: on, Nodes: 3, Network: true, strike: narrow,
			Cost: "lateness of what goes over that link, when it is more than that",
		},
	}
}

// cable is the way from one place to another, "" for all others.
type cable struct{ from, to string }

// redisPlace is where Redis lives.
const redisPlace = "db"

// network is a switch, which is the namespace that this process is in, and places
// behind it, each a namespace. It is nil where everything is on loopback.
type network struct {
	prefix string
	places map[string]int // their numbers, which are the last bytes of their addresses
}

// ErrPrivilege means that a fault needs what cannot be had here.
var ErrPrivilege = errors.New("takes Linux and root: ip(8) for networks, mount(8) for disks, a C compiler for clocks")

// newNetwork makes the switch in the namespace of this process, which must be its own.
func newNetwork() (*network, error) {
	n := &network{prefix: fmt.Sprintf("ddq%d-", os.Getpid()), places: map[string]int{}}
	for _, args := range []string{
		"link set lo up",
		// With an address of its own: else it takes another one as ports come and go,
		// and everybody who knew the former does not reach it for most of a minute.
		"link add br0 address 02:00:00:00:00:fe type bridge",
		"addr add 10.78.0.254/24 dev br0",
		"link set br0 up",
	} {
		if err := n.ip(args); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPrivilege, err)
		}
	}
	if _, err := n.host("trial"); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrPrivilege, err), n.close())
	}
	return n, nil
}

// ip runs ip(8).
func (n *network) ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// host returns the address of a place, making it first where there is none.
func (n *network) host(name string) (string, error) {
	if number, ok := n.places[name]; ok {
		return address(number), nil
	}
	number := len(n.places) + 1
	ns := n.prefix + name
	for _, args := range []string{
		"netns add " + ns,
		fmt.Sprintf("link add p%d type veth peer name eth0 netns %s", number, ns),
		fmt.Sprintf("link set p%d master br0 up", number),
		fmt.Sprintf("-n %s link set lo up", ns),
		fmt.Sprintf("-n %s addr add %s/24 dev eth0", ns, address(number)),
		fmt.Sprintf("-n %s link set eth0 up", ns),
		// What is sent into the hole goes nowhere.
		fmt.Sprintf("-n %s link add hole type veth peer name bottom", ns),
		fmt.Sprintf("-n %s link set hole arp off up", ns),
		fmt.Sprintf("-n %s link set bottom arp off up", ns),
	} {
		n.places[name] = number // to be removed, also when the rest fails
		if err := n.ip(args); err != nil {
			return "", err
		}
	}
	return address(number), nil
}

func address(number int) string { return fmt.Sprintf("10.78.0.%d", number) }

// in returns the command that runs in a place.
func (n *network) in(name string, command ...string) *exec.Cmd {
	if n == nil {
		return exec.Command(command[0], command[1:]...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", n.prefix + name}, command...)...)
}

// set cuts cables, or mends them.
func (n *network) set(cables []cable, cutOff bool) error {
	for _, c := range cables {
		if n.places[c.from] == switchPlace {
			continue // its answers go nowhere without questions
		}
		args := fmt.Sprintf("link set p%d nomaster", n.places[c.from])
		switch {
		case c.to == "" && !cutOff:
			args = fmt.Sprintf("link set p%d master br0", n.places[c.from])
		case c.to != "" && cutOff:
			args = fmt.Sprintf("-n %s%s route add %s/32 dev hole", n.prefix, c.from, address(n.places[c.to]))
		case c.to != "":
			args = fmt.Sprintf("-n %s%s route del %s/32 dev hole", n.prefix, c.from, address(n.places[c.to]))
		}
		if err := n.ip(args); err != nil {
			return err
		}
	}
	return nil
}

// atSwitch returns the address of a place that is the switch itself: what is there
// lives in the namespace of this process.
func (n *network) atSwitch(name string) (string, error) {
	n.places[name] = switchPlace
	return address(switchPlace), n.ip("addr add " + address(switchPlace) + "/32 dev br0")
}

// switchPlace is the number of the place that is the switch.
const switchPlace = 253

// close removes every place.
func (n *network) close() error {
	if n == nil {
		return nil
	}
	var errs []error
	for name, number := range n.places {
		if number == switchPlace {
			continue
		}
		errs = append(errs, n.ip("netns del "+n.prefix+name))
	}
	return errors.Join(errs...)
}

// cut makes a fault of cables that are cut for longer than a lease and a hold.
func cut(choose func(*round) ([]cable, string)) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		cables, what := choose(r)
		return r.broken(ctx, "cut "+what, func() error {
			if err := r.net.set(cables, true); err != nil {
				return err
			}
			if err := r.pause(ctx, r.hold*3/2, max(r.hold*5/2, r.span/3)); err != nil {
				return err
			}
			if err := r.net.set(cables, false); err != nil {
				return err
			}
			return r.awaitWhole(ctx)
		})
	}
}

func flicker(ctx context.Context, r *round) error {
	nd := r.anyNode()
	cables := []cable{{nd.name, ""}}
	return r.broken(ctx, "the link of "+nd.name+" flickers", func() error {
		for range 20 {
			if err := r.net.set(cables, true); err != nil {
				return err
			}
			if err := r.sleep(ctx, 30*time.Millisecond); err != nil {
				return err
			}
			if err := r.net.set(cables, false); err != nil {
				return err
			}
			if err := r.sleep(ctx, 120*time.Millisecond); err != nil {
				return err
			}
		}
		return r.awaitWhole(ctx)
	})
}

func narrow(ctx context.Context, r *round) error {
	nd := r.anyNode()
	port := fmt.Sprintf("p%d", r.net.places[nd.name])
	tc := func(args string) error {
		out, err := exec.Command("tc", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("tc %s: %w: %s", args, err, out)
		}
		return nil
	}
	return r.broken(ctx, "the link of "+nd.name+" is narrow", func() error {
		if err := tc("qdisc add dev " + port + " root tbf rate 1mbit burst 16kbit latency 400ms"); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := tc("qdisc del dev " + port + " root"); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}
