package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/api/client"
)

// decoding gives h the payloads of tasks as codec decodes them.
func decoding(codec client.Codec, h Handler) Handler {
	if codec == nil {
		return h
	}
	return HandlerFunc(func(ctx context.Context, t Task) error {
		payload, err := codec.Decode(ctx, t.Topic, t.Payload)
		switch {
		case errors.Is(err, client.ErrUndecodable):
			return Permanent(err)
		case err != nil:
			return fmt.Errorf("payload is not decoded: %w", err)
		}
		t.Payload = payload
		t.ending.codec, t.ending.ctx = codec, ctx
		return h.Handle(ctx, t)
	})
}
