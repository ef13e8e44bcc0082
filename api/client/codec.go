package client

import (
	"context"
	"errors"
)

// Codec turns payloads into what the server keeps of them, such as encrypted ones, and back.
// Package envelope has one. It is used concurrently.
type Codec interface {
	// Encode returns what is sent for the payload of a task of a topic. The fingerprint, of 16 to
	// 32 bytes, is the same whenever that payload is encoded for that topic, although what is sent
	// may differ: it makes a repeated enqueue the same one. Nil where what is sent never differs.
	Encode(ctx context.Context, topic string, payload []byte) (encoded, fingerprint []byte, err error)

	// Decode returns the payload. It does not keep encoded. A worker tries again after an error,
	// unless that is ErrUndecodable.
	Decode(ctx context.Context, topic string, encoded []byte) ([]byte, error)
}

// ErrUndecodable is what a Codec's error is when no attempt can mend it: a worker makes the task a
// dead letter at once.
var ErrUndecodable = errors.New("payload cannot be decoded")
