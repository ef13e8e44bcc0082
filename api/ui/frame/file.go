package frame

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// File is what a browser saves, and does not show.
type File struct {
	Name string
	Body []byte
}

// Finder finds a file; the query says which.
type Finder func(ctx context.Context, query url.Values) (File, error)

// longestFile is how many characters of its name a file gets.
const longestFile = 100

// file answers with a file as bytes of no kind, so that no browser makes anything else of what others wrote.
func (f *Frame) file(find Finder) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		file, err := find(ctx, r.URL.Query())
		if err != nil {
			f.fail(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(file.Name)}))
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(file.Body) // whoever has gone needs no answer
	})
}

// fileName is a name that every system takes.
func fileName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 128 && strings.ContainsRune("-._", r) || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	return plain[:min(len(plain), longestFile)]
}
