package envelope

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// Keys wrap data keys. They are used concurrently, and asked rarely: once for a new data key, and
// once for each data key that comes with a payload.
type Keys interface {
	// Wrap encrypts a data key under the newest key, whose id it returns: 1 to 64 bytes.
	Wrap(ctx context.Context, dataKey []byte) (id string, wrapped []byte, err error)
	// Unwrap decrypts it. A *KeyError is for an id that is not known, and ErrCorrupt for what does
	// not decrypt; tasks are tried again after other errors.
	Unwrap(ctx context.Context, id string, wrapped []byte) (dataKey []byte, err error)
}

// Config of a Codec.
type Config struct {
	Keys Keys

	// FingerprintKey is the key of fingerprints, 32 bytes. It stays when other keys rotate, and all
	// producers of a topic have the same: a task that is enqueued again is known by it.
	FingerprintKey []byte

	// AcceptPlain decodes payloads that are not encrypted as they are, while there are still such.
	// Without it whoever may enqueue, and has no key, has no handler run.
	AcceptPlain bool
}

// Codec is a client.Codec. It is safe for concurrent use, and keeps data keys in memory.
type Codec struct {
	config  Config
	sealers chan *sealer // holds the one that is used, nil before the first
	openers openers
}

// New returns a Codec.
func New(config Config) (*Codec, error) {
	if config.Keys == nil {
		return nil, errors.New("envelope: no keys")
	}
	if len(config.FingerprintKey) != keySize {
		return nil, fmt.Errorf("envelope: fingerprint key: %w", errSize)
	}
	c := &Codec{config: config, sealers: make(chan *sealer, 1)}
	c.sealers <- nil
	return c, nil
}

const (
	keySize = 32 // of AES-256
	// A data key is used for so long, and for so many payloads: nonces are random.
	dataKeyLife = time.Hour
	dataKeyUses = 1 << 20
)

// sealer is a data key to encrypt with.
type sealer struct {
	header []byte
	aead   cipher.AEAD
	made   time.Time
	uses   int
}

// Encode encrypts a payload.
func (c *Codec) Encode(ctx context.Context, topic string, payload []byte) (encoded, fingerprint []byte, err error) {
	s, err := c.sealer(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := make([]byte, len(s.header), len(s.header)+len(payload)+s.aead.Overhead())
	copy(out, s.header)
	return s.aead.Seal(out, nil, payload, associated(topic)), c.fingerprint(topic, payload), nil
}

func (c *Codec) fingerprint(topic string, payload []byte) []byte {
	mac := hmac.New(sha256.New, c.config.FingerprintKey)
	mac.Write(append([]byte(magic), byte(len(topic))))
	mac.Write([]byte(topic))
	mac.Write(payload)
	return mac.Sum(nil)
}

// sealer is the data key for one more payload. Who needs a new one makes it for all.
func (c *Codec) sealer(ctx context.Context) (*sealer, error) {
	var s *sealer
	select {
	case s = <-c.sealers:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s == nil || s.uses >= dataKeyUses || time.Since(s.made) >= dataKeyLife {
		next, err := c.newSealer(ctx)
		if err != nil {
			c.sealers <- s
			return nil, err
		}
		s = next
	}
	s.uses++
	c.sealers <- s
	return s, nil
}

func (c *Codec) newSealer(ctx context.Context) (*sealer, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	id, wrapped, err := c.config.Keys.Wrap(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("wrap a data key: %w", err)
	}
	if id == "" || len(id) > maxID || len(wrapped) == 0 || len(wrapped) > maxWrapped {
		return nil, fmt.Errorf("wrap a data key: an id of %d and a key of %d bytes", len(id), len(wrapped))
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &sealer{header: header{id, wrapped}.append(nil), aead: aead, made: time.Now()}, nil
}

// Decode decrypts a payload.
func (c *Codec) Decode(ctx context.Context, topic string, encoded []byte) ([]byte, error) {
	h, sealed, err := split(encoded)
	if errors.Is(err, ErrPlain) && c.config.AcceptPlain {
		return encoded, nil
	}
	if err != nil {
		return nil, err
	}
	aead, err := c.openers.of(ctx, c.config.Keys, h)
	if err != nil {
		return nil, err
	}
	payload, err := aead.Open(nil, nil, sealed, associated(topic))
	if err != nil {
		return nil, ErrCorrupt
	}
	return payload, nil
}

// newAEAD is AES-256-GCM, which puts a random nonce before each ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, errSize
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
