package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/api/openapi"
)

// describe answers with the description of the API, which is public: so are the protos.
func describe() handler {
	sum := sha256.Sum256([]byte(openapi.Document))
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
		h := w.Header()
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache") // asked for again, and mostly the same
		known := strings.Split(r.Header.Get("If-None-Match"), ",")
		if slices.ContainsFunc(known, func(k string) bool { k = strings.TrimPrefix(strings.TrimSpace(k), "W/"); return k == tag || k == "*" }) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(openapi.Document)) // the client may be gone
	}
}
