package frame

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// actPatience is how long an action takes at the most: it may go through many tasks.
	actPatience = time.Minute
	// maxForm bounds what a form sends: a payload of 4 MiB, of which each byte may be encoded.
	maxForm = 13 << 20
)

// Action does what a form asks for, and returns the page that is shown next with the notice of what
// was done.
type Action func(ctx context.Context, form url.Values) (page, did string, err error)

// Question is the error of an action that did nothing and asks once more, with a page.
type Question struct{ View }

func (q *Question) Error() string { return "asked once more: " + q.Title }

// notices say what was done.
var notices = map[string]string{
	"created":     "It was made.",
	"configured":  "The policy was changed.",
	"paused":      "It is paused.",
	"resumed":     "It goes on.",
	"purged":      "The tasks that no worker holds were deleted.",
	"deleted":     "It was deleted.",
	"gone":        "It was not there any more.",
	"promoted":    "It is due now.",
	"rescheduled": "It has another due time.",
	"edited":      "The task was changed.",
	"cancelling":  "Its worker is told to stop. It may still succeed.",
	"cancelled":   "It was cancelled.",
	"late":        "It was over before it could be cancelled.",
	"requeued":    "Due now, with fresh attempts.",
	"draining":    "The node gives up its shards. It goes on to take calls.",
	"undrained":   "The node may own shards again.",
	"released":    "The shard is given up; the node that should own it claims it.",
	"resharded":   "New tasks go to the new shards. The former ones go when they are empty.",
	"triggered":   "A run was asked for.",
	"changed":     "It was changed.",
	"same":        "It is like that: nothing was changed.",
	"backfilling": "Runs of that range are made, one by one.",
	"withdrawn":   "No more runs of that range are made. Those that were made go on.",
	"retried":     "The steps that failed are made once more.",
	"skipped":     "The step is over.",
	"started":     "The operation was started. It goes on without this page.",
	"stopping":    "It is told to stop. What it has changed stays changed.",
	"over":        "It was over before.",
	"revoked":     "The token does not count any more.",
	"first":       "This list has no such page. This is its first one.",
}

// act answers a form that was sent. The answer leads to a page, so that sending it again by going
// back does nothing.
func (f *Frame) act(do Action) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), actPatience)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			f.fail(w, r, status.Error(codes.InvalidArgument, "the form cannot be read"))
			return
		}
		page, did, err := do(ctx, r.PostForm)
		var question *Question
		switch {
		case errors.As(err, &question):
			f.write(w, r, cmp.Or(question.Code, http.StatusConflict), &question.View)
			return
		case err != nil:
			f.fail(w, r, err)
			return
		}
		f.lead(w, r, withNotice(page, did))
	})
}

func withNotice(page, did string) string {
	to, err := url.Parse(page)
	if err != nil { // pages come from Link
		return Prefix
	}
	q := to.Query()
	q.Set("did", did)
	to.RawQuery = q.Encode()
	return to.String()
}

// Typed refuses what cannot be taken back unless its name was typed.
func Typed(form url.Values, name string) error {
	if form.Get("sure") != name {
		return status.Error(codes.InvalidArgument, "nothing was done: the name was not typed as it is")
	}
	return nil
}

// Number is a field that may be left empty, which is 0.
func Number(form url.Values, field string) (int64, error) {
	text := form.Get(field)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "%s is a whole number", field)
	}
	return n, nil
}
