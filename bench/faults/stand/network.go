package stand

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Cable is the way from one place to another, "" for all others.
type Cable struct {
	From, To string
	Port     int // of To: nothing else goes this way; 0: everything does
}

// RedisPlace is where Redis lives.
const RedisPlace = "db"

// Network is a switch, which is the namespace that this process is in, and places
// behind it, each a namespace. It is nil where everything is on loopback.
type Network struct {
	prefix string
	places map[string]int // their numbers, which are the last bytes of their addresses
}

// newNetwork makes the switch in the namespace of this process, which must be its own.
func newNetwork() (*Network, error) {
	n := &Network{prefix: fmt.Sprintf("ddq%d-", os.Getpid()), places: map[string]int{}}
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
func (n *Network) ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// host returns the address of a place, making it first where there is none.
func (n *Network) host(name string) (string, error) {
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
		fmt.Sprintf("-n %s route add default dev hole table %d", ns, holeTable),
	} {
		n.places[name] = number // to be removed, also when the rest fails
		if err := n.ip(args); err != nil {
			return "", err
		}
	}
	return address(number), nil
}

// holeTable is the routes of what goes to a port that is cut off.
const holeTable = 77

func address(number int) string { return fmt.Sprintf("10.78.0.%d", number) }

// in returns the command that runs in a place.
func (n *Network) in(name string, command ...string) *exec.Cmd {
	if n == nil {
		return exec.Command(command[0], command[1:]...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", n.prefix + name}, command...)...)
}

// Set cuts cables, or mends them.
func (n *Network) Set(cables []Cable, cutOff bool) error {
	for _, c := range cables {
		if n.places[c.From] == switchPlace {
			continue // its answers go nowhere without questions
		}
		args := fmt.Sprintf("link set p%d nomaster", n.places[c.From])
		switch {
		case c.Port != 0:
			do := "del"
			if cutOff {
				do = "add"
			}
			args = fmt.Sprintf("-n %s%s rule %s to %s/32 dport %d table %d pref %d", n.prefix, c.From, do, address(n.places[c.To]), c.Port, holeTable, holeTable)
		case c.To == "" && !cutOff:
			args = fmt.Sprintf("link set p%d master br0", n.places[c.From])
		case c.To != "" && cutOff:
			args = fmt.Sprintf("-n %s%s route add %s/32 dev hole", n.prefix, c.From, address(n.places[c.To]))
		case c.To != "":
			args = fmt.Sprintf("-n %s%s route del %s/32 dev hole", n.prefix, c.From, address(n.places[c.To]))
		}
		if err := n.ip(args); err != nil {
			return err
		}
	}
	return nil
}

// atSwitch returns the address of a place that is the switch itself: what is there
// lives in the namespace of this process.
func (n *Network) atSwitch(name string) (string, error) {
	n.places[name] = switchPlace
	return address(switchPlace), n.ip("addr add " + address(switchPlace) + "/32 dev br0")
}

// switchPlace is the number of the place that is the switch.
const switchPlace = 253

// close removes every place.
func (n *Network) close() error {
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

// Narrow makes the link of a place carry 1 Mbit/s.
func (n *Network) Narrow(name string) error {
	return command("tc", "qdisc", "add", "dev", n.port(name), "root", "tbf", "rate", "1mbit", "burst", "16kbit", "latency", "400ms")
}

// Widen undoes narrow.
func (n *Network) Widen(name string) error {
	return command("tc", "qdisc", "del", "dev", n.port(name), "root")
}

// port is the end of a place's cable at the switch.
func (n *Network) port(name string) string { return fmt.Sprintf("p%d", n.places[name]) }
