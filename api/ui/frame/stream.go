package frame

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	// quietFor is after how long a stream says that there is nothing new.
	quietFor = 3 * time.Second
	// unreadFor is how long a browser may leave a stream unread before it is cut.
	unreadFor = 5 * time.Second
)

// streamOf is the address of the stream that keeps a page up to date.
func streamOf(page *url.URL) string {
	q := page.Query()
	q.Del("did")
	return Link("live", "of", strings.TrimPrefix(page.Path, Prefix)+"?"+q.Encode())
}

// stream is a page that a browser keeps up to date: the events that tell it what is new.
//
//	event: part   the number of a part with its mark, and below it its text
//	event: quiet  nothing is new
//	event: over   there is no such page any more, or not for this visitor
//
// Nothing is sent while the server cannot say what is on the page.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	marks   map[int]string // of the parts that the browser has
	last    time.Time      // something was sent
}

// live answers the request for a stream: "of" is the page, and "have" the marks of the parts that the
// browser has.
func (f *Frame) live(w http.ResponseWriter, r *http.Request) {
	path, text, _ := strings.Cut(r.URL.Query().Get("of"), "?")
	query, err := url.ParseQuery(text)
	maker := f.pages[path]
	if err != nil || maker == nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	at := watched{path + "?" + query.Encode(), Who(r.Context()).Rights()}
	page := f.lives.join(at)
	if page == nil {
		http.Error(w, "too many pages are looked at", http.StatusServiceUnavailable)
		return
	}
	defer f.lives.leave(at, page)
	s := newStream(w, r.URL.Query().Get("have"))
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for f.beat(r, s, page, at, func(ctx context.Context) (View, error) { return maker(ctx, query) }) == nil {
		select {
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-f.lives.closed:
			return
		}
	}
}

// beat sends what is new on a page; an error ends the stream.
func (f *Frame) beat(r *http.Request, s *stream, page *live, at watched, make func(context.Context) (View, error)) error {
	ctx, err := f.still(r, at)
	if err != nil {
		return s.refused(err)
	}
	parts, err := page.get(func() ([]part, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // others wait for it, too
		defer cancel()
		v, err := make(ctx)
		if err != nil {
			return nil, err
		}
		if !v.Live {
			return nil, status.Error(codes.NotFound, "the page does not change")
		}
		return f.mount.parts(&v)
	})
	if err != nil {
		return s.refused(err)
	}
	return s.send(parts)
}

// still returns a context of calls for the visitor, who has to be there still, with the same rights.
func (f *Frame) still(r *http.Request, at watched) (context.Context, error) {
	ctx := r.Context()
	if f.logins.On() {
		var err error
		if ctx, err = f.logins.As(ctx, f.keyOf(r)); err != nil {
			return nil, err
		}
	}
	me, err := f.access.WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
	if err != nil {
		return nil, err
	}
	v := newVisitor(me)
	if v.Rights() != at.rights {
		return nil, status.Error(codes.PermissionDenied, "the visitor may do other things than before")
	}
	return context.WithValue(ctx, visitorKey{}, v), nil
}

func newStream(w http.ResponseWriter, have string) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), marks: make(map[int]string)}
	for i, mark := range strings.Split(have, " ") {
		s.marks[i] = mark
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	_, _ = fmt.Fprintf(w, "retry: %d\n", 1000+rand.IntN(2000)) //nolint:gosec // so that browsers do not come back all at once
	return s
}

// send sends the parts that the browser does not have.
func (s *stream) send(parts []part) error {
	var text strings.Builder
	for i, p := range parts {
		if s.marks[i] != p.mark {
			s.marks[i] = p.mark
			fmt.Fprintf(&text, "event: part\ndata: %d %s\n%s\n", i, p.mark, dataOf(p.text))
		}
	}
	if text.Len() == 0 {
		if time.Since(s.last) < quietFor {
			return nil
		}
		text.WriteString("event: quiet\ndata:\n\n")
	}
	return s.write(text.String())
}

// refused ends the stream, unless the server may be able to say later what is on the page.
func (s *stream) refused(err error) error {
	switch status.Code(err) {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition:
		_ = s.write("event: over\ndata:\n\n") // the browser may be gone
		return err
	}
	return nil
}

func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(unreadFor)) // where that is possible
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	s.last = time.Now()
	return s.control.Flush()
}

// endsOfLines are those that an event may not have in a line of its own.
var endsOfLines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// dataOf is text as the data of an event.
func dataOf(text string) string {
	var data strings.Builder
	for line := range strings.SplitSeq(endsOfLines.Replace(text), "\n") {
		data.WriteString("data: " + line + "\n")
	}
	return data.String()
}
