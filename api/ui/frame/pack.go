package frame

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// packFrom is from how many bytes on an answer is compressed.
const packFrom = 1 << 10

// pack compresses pages and files for browsers that take it. Left as they are is what keeps a page up to
// date, since an event must not wait in a buffer, and the answers to forms, one of which has a secret.
func pack(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(packFrom), gzhttp.EnableZstd(false),
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "image/svg+xml"}))
	if err != nil { // of options that are not possible
		panic(err)
	}
	packed := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path == Prefix+"live" {
			next.ServeHTTP(w, r)
			return
		}
		packed.ServeHTTP(w, r)
	})
}
