package rest

import (
	"net/http"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// watchOverview tells how topics and nodes fare, each second, as events or as lines, until the
// client goes.
func (a *api) watchOverview(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	done, ok := a.beginWatch(w, r)
	if !ok {
		return
	}
	defer done()
	ask := new(ddqv1.WatchOverviewRequest)
	q, p := queryOf(r)
	if p == nil {
		p = q.into(ask)
	}
	if p != nil {
		p.write(w, r)
		return
	}
	stream, err := a.admin.WatchOverview(r.Context(), ask)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	seen, err := stream.Recv() // it comes at once
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	as := messagesIn(accepts(r, linesType))
	out := newFeed(w, as.contentType())
	for {
		if out.send(as.message("overview", "", seen.Overview)) != nil {
			return
		}
		if seen, err = stream.Recv(); err != nil {
			_ = out.send(as.end(problemOf(err).named(w))) // the client may be gone
			return
		}
	}
}
