package pebblestore

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// A cursor is the kind that it belongs to and a position, as text.

func formatCursor(kind store.Kind, position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{byte(kind)}, position...))
}

// parseCursor returns the position of a cursor, nil for the empty one.
func parseCursor(kind store.Kind, cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 2 || b[0] != byte(kind) {
		return nil, fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return b[1:], nil
}

// boot tells the serials of holds of this process from those of an earlier one.
type boot [8]byte

func (b boot) position(serial uint64) []byte {
	return binary.BigEndian.AppendUint64(b[:], serial)
}

// serial reads a position. One of an earlier process is the beginning.
func (b boot) serial(position []byte) (uint64, error) {
	switch {
	case len(position) == 0:
		return 0, nil
	case len(position) != len(b)+8:
		return 0, store.ErrBadCursor
	case boot(position[:len(b)]) != b:
		return 0, nil
	}
	return binary.BigEndian.Uint64(position[len(b):]), nil
}
