package auth

import (
	"slices"
	"sync/atomic"
)

// ClusterKeys are the keys of a fleet: the first one signs and seals, and all of them count. They
// may be exchanged while others use them. A nil value has none.
type ClusterKeys struct{ now atomic.Pointer[[]ClusterKey] }

// NewClusterKeys returns nil without keys: a fleet that has none gets none later.
func NewClusterKeys(keys ...ClusterKey) *ClusterKeys {
	if len(keys) == 0 {
		return nil
	}
	k := new(ClusterKeys)
	k.Use(keys)
	return k
}

// Use makes keys those of the fleet. There must be one.
func (k *ClusterKeys) Use(keys []ClusterKey) {
	keys = slices.Clone(keys)
	k.now.Store(&keys)
}

// All returns the keys, the first to sign with at the front. It is not to be changed.
func (k *ClusterKeys) All() []ClusterKey {
	if k == nil {
		return nil
	}
	return *k.now.Load()
}

// First is the key to sign with. There must be one.
func (k *ClusterKeys) First() ClusterKey { return k.All()[0] }
