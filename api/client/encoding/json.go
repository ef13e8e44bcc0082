package encoding

import "encoding/json"

// JSON is that of encoding/json. Fields that T does not have are left out when a payload is
// read, so producers may add fields before workers know them.
type JSON[T any] struct{}

// Encode writes value.
func (JSON[T]) Encode(value T) ([]byte, error) { return json.Marshal(value) }

// Decode reads payload, which is one value and nothing after it.
func (JSON[T]) Decode(payload []byte) (value T, err error) {
	err = json.Unmarshal(payload, &value)
	return value, err
}
