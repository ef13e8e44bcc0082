package sealstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Masters are master keys: the first one wraps data keys, and all of them unwrap. They are not printed.
type Masters struct{ all []master }

// master is one of them.
type master struct {
	id   string // the beginning of its hash
	aead cipher.AEAD
}

// ParseMasters reads master keys: on each line 32 bytes in base64. Empty lines are left out.
func ParseMasters(text string) (*Masters, error) {
	m := new(Masters)
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("line %d is not base64", i+1) // the error of the library has a part of the key
		}
		if len(key) != keyBytes {
			return nil, fmt.Errorf("the key in line %d has %d bytes; it must have %d", i+1, len(key), keyBytes)
		}
		one, err := newMaster(key)
		if err != nil {
			return nil, err
		}
		m.all = append(m.all, one)
	}
	if len(m.all) == 0 {
		return nil, errors.New("there is no key")
	}
	return m, nil
}

func newMaster(key []byte) (master, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return master{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	sum := sha256.Sum256(append([]byte("ddq master key v1 "), key...))
	return master{hex.EncodeToString(sum[:4]), aead}, err
}

// String tells the keys apart, and does not show them.
func (m *Masters) String() string { return strings.Join(m.IDs(), ",") }

// GoString is String, for %#v.
func (m *Masters) GoString() string { return m.String() }

// IDs are the ids of the keys, in order.
func (m *Masters) IDs() []string {
	ids := make([]string, len(m.all))
	for i := range m.all {
		ids[i] = m.all[i].id
	}
	return ids
}

// wrap returns a data key as it is stored, and the id of the master key.
func (m *Masters) wrap(id KeyID, key []byte) (by string, wrapped []byte) {
	first := m.all[0]
	return first.id, first.aead.Seal(nil, nil, key, wrapData(id))
}

// errOtherMaster is about a data key that none of the master keys wrapped.
var errOtherMaster = errors.New("it is wrapped by a master key that is not given")

// unwrap returns the data key that the master key of that id wrapped.
func (m *Masters) unwrap(id KeyID, by string, wrapped []byte) ([]byte, error) {
	for _, one := range m.all {
		if one.id != by {
			continue
		}
		key, err := one.aead.Open(nil, nil, wrapped, wrapData(id))
		if err != nil || len(key) != keyBytes {
			return nil, errors.New("it does not unwrap: its record was changed")
		}
		return key, nil
	}
	return nil, errOtherMaster
}

// wrapData is the associated data of a data key.
func wrapData(id KeyID) []byte { return append([]byte("ddq data key v1 "), id[:]...) }
