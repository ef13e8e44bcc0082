package auth

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// NodeScheme is what begins the credential of a node.
const NodeScheme = "DDQ-Node "

// maxSkew is how far the clocks of two nodes may be apart, and the life of a credential.
const maxSkew = 30 * time.Second

// Reasons why a credential of a node is refused, besides that it is not one.
var (
	ErrBadNode   = errors.New("not the credential of a node of this fleet")
	ErrClockSkew = errors.New("the clocks of the nodes are too far apart")
)

// ClusterKey is what all nodes of a fleet have, and nobody else: a credential under it is a
// node's. It is made of the key of gossip, which it does not show.
type ClusterKey struct{ node, record []byte }

// NewClusterKey derives the keys for credentials and for records.
func NewClusterKey(key []byte) ClusterKey {
	return ClusterKey{derive(key, "ddq node credential v1"), derive(key, "ddq registry record v1")}
}

func derive(key []byte, purpose string) []byte {
	sub, err := hkdf.Key(sha256.New, key, nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // it is longer than there can be
	}
	return sub
}

// Sign is the credential of a node for one call of a method of another one.
func (k ClusterKey) Sign(node, peer, method string, now time.Time) string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	fields := []string{text64(node), text64(peer), strconv.FormatInt(now.UnixMilli(), 10), base64.RawURLEncoding.EncodeToString(nonce[:])}
	return NodeScheme + strings.Join(append(fields, k.mac(fields, method)), ".")
}

func text64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func (k ClusterKey) mac(fields []string, method string) string {
	h := hmac.New(sha256.New, k.node)
	h.Write([]byte(strings.Join(fields, ".") + "." + text64(method)))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// verify returns who signed a credential for this node and method.
func (k ClusterKey) verify(fields []string, self, method string, now time.Time) (node string, err error) {
	if len(fields) != 5 || !hmac.Equal([]byte(k.mac(fields[:4], method)), []byte(fields[4])) {
		return "", ErrBadNode
	}
	name, err1 := base64.RawURLEncoding.DecodeString(fields[0])
	sent, err2 := strconv.ParseInt(fields[2], 10, 64)
	if errors.Join(err1, err2) != nil || len(name) == 0 || fields[1] != text64(self) {
		return "", ErrBadNode
	}
	if ahead := time.UnixMilli(sent).Sub(now); ahead.Abs() > maxSkew {
		return "", fmt.Errorf("%w: that of %s is %v ahead", ErrClockSkew, name, ahead.Round(time.Millisecond))
	}
	return string(name), nil
}

// Seal puts what only a holder of the key can make before a record of the registry, so that
// whoever can write to the store cannot make one.
func (k ClusterKey) Seal(kind, name string, value []byte) []byte {
	return append(k.seal(kind, name, value), value...)
}

func (k ClusterKey) seal(kind, name string, value []byte) []byte {
	h := hmac.New(sha256.New, k.record)
	for _, part := range [][]byte{[]byte(kind), []byte(name), value} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// Open returns the value of a record that was sealed under the key.
func (k ClusterKey) Open(kind, name string, sealed []byte) ([]byte, bool) {
	if len(sealed) < sha256.Size {
		return nil, false
	}
	value := sealed[sha256.Size:]
	return value, hmac.Equal(k.seal(kind, name, value), sealed[:sha256.Size])
}

// Nodes tells nodes of the fleet from others, by the keys of the fleet. A credential counts
// once: those that were used are remembered until they are too old.
type Nodes struct {
	self string
	keys *ClusterKeys

	mu        sync.Mutex
	used, old map[string]bool // nonces, of this span and the one before; guarded by mu
	turned    time.Time       // when used began; guarded by mu
}

// NewNodes is for the node self.
func NewNodes(self string, keys *ClusterKeys) *Nodes {
	return &Nodes{self: self, keys: keys, used: make(map[string]bool)}
}

// Verify returns the node that sent a credential for a method of this one.
func (n *Nodes) Verify(credential, method string, now time.Time) (string, error) {
	fields := strings.Split(strings.TrimPrefix(credential, NodeScheme), ".")
	err := ErrBadNode
	for _, k := range n.keys.All() {
		var node string
		if node, err = k.verify(fields, n.self, method, now); err == nil {
			return node, n.use(fields[3], now)
		}
		if errors.Is(err, ErrClockSkew) {
			break
		}
	}
	return "", err
}

// use remembers a nonce for as long as its credential could be sent again.
func (n *Nodes) use(nonce string, now time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.turned) > 2*maxSkew {
		n.used, n.old, n.turned = make(map[string]bool), n.used, now
	}
	if n.used[nonce] || n.old[nonce] {
		return ErrBadNode
	}
	n.used[nonce] = true
	return nil
}
