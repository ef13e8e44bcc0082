// Package ids makes the ids of tasks and requests.
package ids

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"
)

// New makes an id: a UUID of version 7, which rises with time.
func New() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// Fill gives a request an id unless it has one.
func Fill(id *string) (err error) {
	if *id == "" {
		*id, err = New()
	}
	return err
}

// Keyed makes an id for a task with a key, which says where tasks of the key lie:
// a request that is sent again is known by it. Ids for one key rise.
func Keyed(key string) (string, error) {
	fresh, err := New()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(key))
	id := []byte(fresh)
	copy(id[20:], id[15:18]) // what rises within a millisecond
	id[19] = '8'
	copy(id[14:], "8ddc")
	hex.Encode(id[24:], sum[:4])
	return string(id), nil
}
