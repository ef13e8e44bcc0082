package encoding

import "google.golang.org/protobuf/proto"

// Proto is the binary form of a generated message: Proto[*mailpb.Mail].
type Proto[M proto.Message] struct{}

// Encode writes message; nil is an empty one.
func (Proto[M]) Encode(message M) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(message)
}

// Decode reads payload. No payload is an empty message.
func (Proto[M]) Decode(payload []byte) (M, error) {
	var none M
	message := none.ProtoReflect().New().Interface().(M)
	err := proto.Unmarshal(payload, message)
	return message, err
}
