package rest

import (
	"net/http"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// exportPage is how many tasks are read at a time.
const exportPage = 1000

// exportEnd is the last line of an export: without one it was cut.
type exportEnd struct {
	Done      bool     `json:"done"`
	NextToken string   `json:"next_page_token"` // where another export goes on
	Error     *problem `json:"error,omitempty"` // why it is not done
}

// export lists all tasks that a filter matches, a line for each.
func (a *api) export(w http.ResponseWriter, r *http.Request, params map[string]string) {
	ask := new(ddqv1.ListTasksRequest)
	q, p := queryOf(r)
	if p == nil {
		p = q.into(ask, "topic", "page_size")
	}
	if p != nil {
		p.write(w, r)
		return
	}
	ask.Topic, ask.PageSize = params["topic"], exportPage
	page, err := a.queue.ListTasks(r.Context(), ask)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	out := newFeed(w, linesType)
	for out.send(taskLines(page.Tasks)) == nil {
		if ask.PageToken = page.NextPageToken; ask.PageToken == "" {
			_ = out.send(line(exportEnd{Done: true})) // the client may be gone
			return
		}
		if page, err = a.queue.ListTasks(r.Context(), ask); err != nil {
			_ = out.send(line(exportEnd{NextToken: ask.PageToken, Error: problemOf(err).named(w)}))
			return
		}
	}
}

func taskLines(tasks []*ddqv1.Task) (text []byte) {
	for _, task := range tasks {
		one, err := marshaler{}.Marshal(task)
		if err != nil { // the server made it
			panic(err)
		}
		text = append(text, one...)
	}
	return text
}
