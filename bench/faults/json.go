package faults

import (
	"encoding/json"
	"io"
)

// writeJSON writes one object as one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
