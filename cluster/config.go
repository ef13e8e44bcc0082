package cluster

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

// Profile is how eagerly nodes look after each other.
type Profile string

// Profiles. Each is an edit of the library's settings of that name.
const (
	Local Profile = "local" // one machine or rack: a crash is missed in a second, for half a percent of a core
	LAN   Profile = "lan"   // one region: in two seconds, which is what a lease lasts
	WAN   Profile = "wan"   // between regions: in half a minute
)

// Config of Start.
type Config struct {
	// Node describes this node. Name and Addr are required; Start and State are
	// filled in, and the protocols when they are 0.
	Node Node

	// Addr is where to gossip, host:port, over UDP and TCP. Port 0 picks one.
	// Defaults to 127.0.0.1:7946.
	Addr string

	// Advertise is where others reach Addr, host:port, when they cannot use Addr.
	Advertise string

	// Join are members to begin with: host:port, or a host name that stands for
	// several addresses. The port defaults to 7946. A node that reaches none of
	// them goes on alone, and tries again every RejoinEvery.
	Join []string

	// Keys encrypt the gossip, with AES: 16, 24 or 32 bytes, in base64 or in
	// hexadecimal. The first one is used to send, all are to receive.
	Keys []string

	// Insecure allows gossip without keys at addresses that other machines reach.
	Insecure bool

	// Profile defaults to Local for a loopback Addr, else to LAN.
	Profile Profile

	// RejoinEvery is the pause between attempts to find members that are missing.
	// Defaults to 10s.
	RejoinEvery time.Duration

	// Transport takes the place of the network, in tests. Addr is not used then.
	Transport memberlist.Transport
}

const (
	defaultAddr = "127.0.0.1:7946"
	defaultPort = 7946
)

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = defaultAddr
	}
	if c.RejoinEvery == 0 {
		c.RejoinEvery = 10 * time.Second
	}
	if c.Profile == "" {
		c.Profile = LAN
		if host, _, err := net.SplitHostPort(c.Addr); err == nil && isLoopback(host) {
			c.Profile = Local
		}
	}
	c.Node.Start, c.Node.State = newStart(), Joining
	if c.Node.ProtocolMin == 0 && c.Node.ProtocolMax == 0 {
		c.Node.ProtocolMin, c.Node.ProtocolMax = ProtocolMin, ProtocolMax
	}
	return c
}

// list returns the library's settings for c.
func (c *Config) list() (*memberlist.Config, error) {
	if c.Node.Name == "" || c.Node.Addr == "" {
		return nil, errors.New("a node needs a name and an address")
	}
	var m *memberlist.Config
	switch c.Profile {
	case Local:
		m = memberlist.DefaultLocalConfig()
		m.ProbeInterval, m.ProbeTimeout = 200*time.Millisecond, 100*time.Millisecond
		m.SuspicionMult, m.SuspicionMaxTimeoutMult = 3, 2
		m.RetransmitMult = 4 // at the library's 2, one in a hundred updates misses one of three nodes
		m.GossipInterval, m.TCPTimeout, m.PushPullInterval = 100*time.Millisecond, 500*time.Millisecond, 10*time.Second
	case LAN:
		m = memberlist.DefaultLANConfig()
		m.ProbeInterval, m.ProbeTimeout = 300*time.Millisecond, 150*time.Millisecond
		m.SuspicionMult, m.SuspicionMaxTimeoutMult = 3, 2
		m.GossipInterval, m.TCPTimeout = 100*time.Millisecond, time.Second
	case WAN:
		m = memberlist.DefaultWANConfig()
		m.TCPTimeout = 10 * time.Second // the library's 30 would hold up Start
	default:
		return nil, fmt.Errorf("profile %q is not one of local, lan and wan", c.Profile)
	}
	m.Name = c.Node.Name
	m.Transport = c.Transport
	m.EnableCompression = false         // of probes, which are most of what is sent, it costs more than it saves
	m.DeadNodeReclaimTime = time.Second // a node that comes back elsewhere keeps its name
	return m, errors.Join(c.addresses(m), c.encryption(m))
}

func (c *Config) addresses(m *memberlist.Config) (err error) {
	if c.Transport != nil {
		return nil
	}
	if m.BindAddr, m.BindPort, err = splitAddr(c.Addr); err != nil {
		return fmt.Errorf("gossip address: %w", err)
	}
	if keys, _ := decodeKeys(c.Keys); !c.Insecure && len(keys) == 0 && !isLoopback(m.BindAddr) {
		return fmt.Errorf("gossip address %s: other machines reach it, and there is no key", c.Addr)
	}
	m.AdvertisePort = m.BindPort
	if c.Advertise != "" {
		if m.AdvertiseAddr, m.AdvertisePort, err = splitAddr(c.Advertise); err != nil {
			return fmt.Errorf("advertised gossip address: %w", err)
		}
	}
	return nil
}

func splitAddr(addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(p); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%s: port must be 0 to 65535", addr)
	}
	if ip := net.ParseIP(host); ip == nil && host != "" {
		found, err := net.LookupHost(host)
		if err != nil {
			return "", 0, err
		}
		host = found[0]
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) encryption(m *memberlist.Config) error {
	keys, err := decodeKeys(c.Keys)
	if err != nil || len(keys) == 0 {
		return err
	}
	m.Keyring, err = memberlist.NewKeyring(keys, keys[0])
	return err
}

// DecodeKeys reads keys as Config has them.
func DecodeKeys(texts []string) ([][]byte, error) { return decodeKeys(texts) }

func decodeKeys(texts []string) (keys [][]byte, err error) {
	for i, text := range texts {
		if text == "" {
			continue // an environment variable that is set to nothing
		}
		key, err := decodeKey(text)
		if err != nil {
			return nil, fmt.Errorf("gossip key %d is not base64 or hexadecimal", i+1)
		}
		if err := memberlist.ValidateKey(key); err != nil {
			return nil, fmt.Errorf("gossip key %d has %d bytes, not 16, 24 or 32", i+1, len(key))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// decodeKey takes what can be hexadecimal for that: of keys in base64 hardly one
// in 10^16 looks like it.
func decodeKey(text string) ([]byte, error) {
	if key, err := hex.DecodeString(text); err == nil && memberlist.ValidateKey(key) == nil {
		return key, nil
	}
	return base64.StdEncoding.DecodeString(text)
}
