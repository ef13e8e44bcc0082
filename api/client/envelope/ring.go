package envelope

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Ring is Keys of a file. The first key encrypts, and all decrypt:
//
//	fingerprint 8Yb2…=
//	key 2026-11 Zm9v…=
//	key 2026-05 YmFy…=
//
// Keys are 32 bytes in base64. `ddq keyring` makes the file, and rotates the keys in it. A Ring does not
// change: programs read the file when they start.
type Ring struct {
	fingerprint []byte
	keys        []ringKey
}

type ringKey struct {
	id   string
	text []byte
	aead cipher.AEAD
}

// NewRing returns a Ring with one new key, and a new key of fingerprints.
func NewRing(id string) (*Ring, error) {
	return (&Ring{fingerprint: random()}).Add(id)
}

func random() []byte {
	b := make([]byte, keySize)
	_, _ = rand.Read(b) // never fails
	return b
}

// ReadRing reads a file, which nobody but its owner may read.
func ReadRing(path string) (*Ring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others may read it (mode %04o); chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := ParseRing(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ParseRing reads the text of a file. Its errors do not show keys.
func ParseRing(text string) (*Ring, error) {
	r := new(Ring)
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := r.read(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if r.fingerprint == nil || len(r.keys) == 0 {
		return nil, errors.New("a keyring has a fingerprint key and at least one key")
	}
	return r, nil
}

func (r *Ring) read(words []string) error {
	switch {
	case words[0] == "fingerprint" && len(words) == 2 && r.fingerprint == nil:
		key, err := parseKey(words[1])
		r.fingerprint = key
		return err
	case words[0] == "key" && len(words) == 3:
		key, err := parseKey(words[2])
		if err != nil {
			return err
		}
		return r.add(words[1], key)
	}
	return errors.New(`want "key ID BASE64", or "fingerprint BASE64" once`)
}

func parseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("a key is base64")
	}
	if len(key) != keySize {
		return nil, errSize
	}
	return key, nil
}

// add puts a key behind the others.
func (r *Ring) add(id string, key []byte) error {
	if !goodID(id) {
		return errors.New("the id of a key has 1 to 64 letters, digits, '.', '_' and '-'")
	}
	if slices.Contains(r.IDs(), id) {
		return fmt.Errorf("there is a key %s already", id)
	}
	aead, err := newAEAD(key)
	if err != nil {
		return err
	}
	r.keys = append(r.keys, ringKey{id, key, aead})
	return nil
}

func goodID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// IDs are those of its keys, the one that encrypts first.
func (r *Ring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i := range r.keys {
		ids[i] = r.keys[i].id
	}
	return ids
}

// FingerprintKey is for Config.
func (r *Ring) FingerprintKey() []byte { return slices.Clone(r.fingerprint) }

// Add returns a Ring with a new key besides, which decrypts only: give it to all programs before one
// encrypts with it.
func (r *Ring) Add(id string) (*Ring, error) {
	next := r.clone()
	if err := next.add(id, random()); err != nil {
		return nil, err
	}
	return next, nil
}

// Use returns a Ring that encrypts with that key.
func (r *Ring) Use(id string) (*Ring, error) {
	i := slices.Index(r.IDs(), id)
	if i < 0 {
		return nil, &KeyError{id}
	}
	next := r.clone()
	first := next.keys[i]
	next.keys = slices.Insert(slices.Delete(next.keys, i, i+1), 0, first)
	return next, nil
}

// Remove returns a Ring without that key. It must not be the one that encrypts.
func (r *Ring) Remove(id string) (*Ring, error) {
	i := slices.Index(r.IDs(), id)
	switch {
	case i < 0:
		return nil, &KeyError{id}
	case i == 0:
		return nil, fmt.Errorf("key %s encrypts: use another one first", id)
	}
	next := r.clone()
	next.keys = slices.Delete(next.keys, i, i+1)
	return next, nil
}

func (r *Ring) clone() *Ring { return &Ring{r.fingerprint, slices.Clone(r.keys)} }

// Text is what is in its file. It has the keys.
func (r *Ring) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fingerprint %s\n", base64.StdEncoding.EncodeToString(r.fingerprint))
	for _, k := range r.keys {
		fmt.Fprintf(&b, "key %s %s\n", k.id, base64.StdEncoding.EncodeToString(k.text))
	}
	return b.String()
}

// String names the keys, and does not show them.
func (r *Ring) String() string { return fmt.Sprintf("keyring of %v", r.IDs()) }

// GoString is String.
func (r *Ring) GoString() string { return r.String() }

// Wrap encrypts a data key under the first key.
func (r *Ring) Wrap(_ context.Context, dataKey []byte) (id string, wrapped []byte, err error) {
	k := r.keys[0]
	return k.id, k.aead.Seal(nil, nil, dataKey, associated(k.id)), nil
}

// Unwrap decrypts it.
func (r *Ring) Unwrap(_ context.Context, id string, wrapped []byte) ([]byte, error) {
	i := slices.IndexFunc(r.keys, func(k ringKey) bool { return k.id == id })
	if i < 0 {
		return nil, &KeyError{id}
	}
	key, err := r.keys[i].aead.Open(nil, nil, wrapped, associated(id))
	if err != nil {
		return nil, ErrCorrupt
	}
	return key, nil
}
