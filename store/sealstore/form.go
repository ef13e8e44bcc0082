package sealstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// KeyID names a data key. Its last byte follows from the others.
type KeyID [4]byte

func newKeyID() (id KeyID) {
	rand.Read(id[:]) // never fails
	id[3] = id.check()
	return id
}

func (id KeyID) check() byte { return id[0] ^ id[1] ^ id[2] ^ 0xA5 }

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// parseKeyID reads the name of a record.
func parseKeyID(name string) (id KeyID, err error) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("data key %q has no id", name)
	}
	return KeyID(b), nil
}

const (
	keyBytes   = 32
	nonceBytes = 12
	headBytes  = len(KeyID{}) + nonceBytes
)

// ErrUnknownKey is returned for what is sealed with a data key that is not known, or not yet. Nothing
// was changed.
var ErrUnknownKey = fmt.Errorf("%w: sealed with a data key that is not known", store.ErrUnavailable)

// errCorrupt is about bytes that a key that is known did not seal.
var errCorrupt = errors.New("it does not open: it was changed, or sealed for another topic")

// dataKey seals and opens.
type dataKey struct {
	id   KeyID
	gcm  cipher.AEAD
	used atomic.Int64 // seals of this process

	retired atomic.Bool // nothing more is to be sealed with it
}

func newDataKey(id KeyID, key []byte) (*dataKey, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	return &dataKey{id: id, gcm: gcm}, err
}

// seal appends plain, sealed, to b. The nonce is random, and of this seal alone.
func (k *dataKey) seal(b, nonce, topic, plain []byte) []byte {
	k.used.Add(1)
	b = append(append(b, k.id[:]...), nonce...)
	return k.gcm.Seal(b, nonce, plain, topic)
}

// open returns what is in sealed, in the same memory. What does not open is gone after it.
func (k *dataKey) open(topic, sealed []byte) ([]byte, error) {
	nonce, text := sealed[len(k.id):headBytes], sealed[headBytes:]
	plain, err := k.gcm.Open(text[:0], nonce, text, topic)
	if err != nil {
		return nil, errCorrupt
	}
	return plain, nil
}

// mark is in front of what is sealed and is not said to be. Neither UTF-8 nor a protobuf begins with it.
const mark = 0xF6

// marked reports whether b looks like something sealed behind the mark.
func marked(b []byte) bool {
	if len(b) < 1+store.EncryptedBytes || b[0] != mark {
		return false
	}
	id := KeyID(b[1:])
	return id[3] == id.check()
}
