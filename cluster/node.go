package cluster

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
)

// State says whether a node wants shards.
type State uint8

// Only active nodes own shards.
const (
	Joining State = iota + 1
	Active
	Draining
)

func (s State) String() string {
	switch s {
	case Joining:
		return "joining"
	case Active:
		return "active"
	case Draining:
		return "draining"
	}
	return "unknown"
}

// ProtocolMin and ProtocolMax are the versions of the protocol between nodes that
// this program speaks. Nodes without a common one do not see each other.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)

// Node is a member as it describes itself. Name must be unique in the fleet.
type Node struct {
	Name        string `json:"-"`
	Addr        string `json:"a"`           // of its gRPC port, host:port; without a host it is where it gossips
	Start       string `json:"s"`           // random for each start of the process
	Zone        string `json:"z,omitempty"` // of failure, for people
	Version     string `json:"v,omitempty"` // of the program
	ProtocolMin int    `json:"p"`
	ProtocolMax int    `json:"q"`
	Weight      int    `json:"w,omitempty"` // share of the shards against others'; 0 is 100
	State       State  `json:"t"`

	// Tells says that the program tells cells of the ends of tasks; one of before there
	// were cells does not, and does not say so.
	Tells bool `json:"l,omitempty"`

	// Queues says that the program reads outbox queues; one of before does not, and does not say so.
	Queues bool `json:"k,omitempty"`

	// Rules is a digest of the rules of its time zones; 0 while it is not known, and of a program
	// of before.
	Rules uint64 `json:"r,omitempty"`

	// Hosts are its machine's addresses, with commas between them, as far as they fit.
	// Start fills them in.
	Hosts string `json:"h,omitempty"`
	// Host is the address that it gossips from, filled in by who hears it.
	Host netip.Addr `json:"-"`
}

// defaultWeight is what weight 0 stands for.
const defaultWeight = 100

// maxMeta is what fits into a gossiped description, in bytes.
const maxMeta = 512

func newStart() string {
	var b [9]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// encode returns what is gossiped of a node. Its name goes without.
func (n *Node) encode() ([]byte, error) {
	b, err := json.Marshal(n)
	if err == nil && len(b) > maxMeta {
		err = fmt.Errorf("node %q: address, zone and version take %d bytes together, more than %d", n.Name, len(b), maxMeta)
	}
	return b, err
}

// decodeNode reads a description, which may be a stranger's.
func decodeNode(name string, b []byte) (Node, error) {
	n := Node{}
	if err := json.Unmarshal(b, &n); err != nil {
		return Node{}, fmt.Errorf("node %q: malformed description: %w", name, err)
	}
	n.Name = name
	switch {
	case n.State < Joining || n.State > Draining || n.Addr == "" || n.Weight < 0,
		n.ProtocolMin > n.ProtocolMax:
		return Node{}, fmt.Errorf("node %q: malformed description", name)
	}
	return n, nil
}

// understands says why two nodes have no protocol in common; nil when they have one.
func (n *Node) understands(other *Node) error {
	if other.ProtocolMin > n.ProtocolMax || other.ProtocolMax < n.ProtocolMin {
		return fmt.Errorf("node %q speaks protocol %d to %d, this one %d to %d",
			other.Name, other.ProtocolMin, other.ProtocolMax, n.ProtocolMin, n.ProtocolMax)
	}
	return nil
}
