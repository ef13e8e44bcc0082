package trail

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	// askFor is how long nodes are waited for.
	askFor = 2 * time.Second

	// pageBytes bounds the lines of a page, and askBytes those of all nodes together that it is made of.
	pageBytes = 2 << 20
	askBytes  = 32 << 20
	leastAsk  = 64 << 10 // of a node
)

// Log is what the node itself has written down.
type Log interface {
	Read(q fleet.AuditQuery) (fleet.AuditPage, error)
	// Check says what is known once ctx ends.
	Check(ctx context.Context) fleet.AuditChain
}

// Trail reads the logs of a fleet. It is safe for concurrent use.
type Trail struct {
	self    string
	members func() []fleet.Member
	peers   func() fleet.Peers
	log     Log
}

// New reads the logs of the fleet of a node, whose own is log.
func New(node *actors.Node, log Log) *Trail {
	return &Trail{node.Config().Node, node.Members, node.Membership().Peers, log}
}

// Line is a record of a node.
type Line struct {
	fleet.AuditLine
	Node string
}

// Page is a page of lines, the newest first.
type Page struct {
	Lines  []Line
	Next   string   // token of the page behind it; empty: no node that answered has more
	Silent []string // nodes that did not answer in time; they are asked again for the next page
	None   []string // nodes that keep no log
}

// List returns a page of the lines that a filter matches, of size lines at the most. Every node that has more is
// asked once, for a page.
func (t *Trail) List(ctx context.Context, filter fleet.AuditFilter, size int, token string) (Page, error) {
	members := t.members()
	from, ok := readPositions(token)
	switch {
	case token == "":
		for _, m := range members {
			from = append(from, position{node: m.Name})
		}
	case !ok:
		return Page{}, problem.AsError(store.ErrBadCursor)
	}
	answers := t.ask(ctx, members, from, fleet.AuditQuery{
		AuditFilter: filter, Most: size, Bytes: max(askBytes/max(len(from), 1), leastAsk),
	})
	for _, a := range answers {
		if e := (*problem.Error)(nil); errors.As(a.err, &e) && e.Reason == "BAD_CURSOR" {
			return Page{}, e
		}
	}
	return pageOf(answers, size), nil
}

// answer is what a node found.
type answer struct {
	position // where it was asked to begin
	fleet.AuditPage
	err   error
	taken int // lines that are on the page
}

// errGone is of a node that is no member any more.
var errGone = errors.New("the node has left the fleet")

// ask asks nodes for lines, all at once.
func (t *Trail) ask(ctx context.Context, members []fleet.Member, from []position, q fleet.AuditQuery) []answer {
	return fleet.AskAll(ctx, askFor, from, func(ctx context.Context, p position) answer {
		q := q
		q.Until = p.at
		found, err := t.askOne(ctx, members, p.node, q)
		return answer{position: p, AuditPage: found, err: err}
	})
}

func (t *Trail) askOne(ctx context.Context, members []fleet.Member, node string, q fleet.AuditQuery) (fleet.AuditPage, error) {
	if node == t.self {
		return t.log.Read(q)
	}
	i := slices.IndexFunc(members, func(m fleet.Member) bool { return m.Name == node })
	if i < 0 {
		return fleet.AuditPage{}, errGone
	}
	return t.peers().Audit(ctx, members[i], q)
}

// pageOf merges answers. It ends where the next line might be one that a node has not looked at yet.
func pageOf(answers []answer, size int) (p Page) {
	for bytes := 0; len(p.Lines) < size; {
		a := newest(answers)
		if a == nil || a.taken == len(a.Lines) {
			break
		}
		line := a.Lines[a.taken]
		if bytes += len(line.Text); bytes > pageBytes && len(p.Lines) > 0 {
			break
		}
		a.taken++
		p.Lines = append(p.Lines, Line{line, a.node})
	}
	p.Next = tokenAfter(answers)
	for i := range answers {
		switch a := &answers[i]; {
		case a.err != nil:
			p.Silent = append(p.Silent, a.node)
		case a.None:
			p.None = append(p.None, a.node)
		}
	}
	slices.Sort(p.Silent)
	slices.Sort(p.None)
	return p
}

// newest is the answer with the newest line that is not on the page, or, where none of its own is left and
// others are to come, with the newest time from which on it has not been looked at; nil for none.
func newest(answers []answer) (best *answer) {
	var when time.Time
	for i := range answers {
		a := &answers[i]
		at := a.Reached
		switch {
		case a.taken < len(a.Lines):
			at = a.Lines[a.taken].Time
		case a.err != nil || a.Next == 0:
			continue
		}
		if best == nil || at.After(when) {
			best, when = a, at
		}
	}
	return best
}

// tokenAfter is the token of what is not on the page. Without more of a node that answered it is empty: else
// who follows tokens would ask silent nodes forever.
func tokenAfter(answers []answer) string {
	var all []position
	more := false
	for i := range answers {
		a := &answers[i]
		next := position{a.node, a.Next}
		switch {
		case a.err != nil:
			next = a.position
		case a.taken == 0 && len(a.Lines) > 0:
			next.at = a.End
		case a.taken < len(a.Lines):
			next.at = a.Lines[a.taken-1].At
		}
		more = more || a.err == nil && next.at > 0
		if a.err != nil || next.at > 0 {
			all = append(all, next)
		}
	}
	if !more {
		return ""
	}
	return tokenOf(all)
}

// Chain is that of the log of a node.
type Chain struct {
	fleet.AuditChain
	Node string
}

// Verify says of each node whether its log is as it was written, by node.
func (t *Trail) Verify(ctx context.Context) []Chain {
	return fleet.AskAll(ctx, askFor, t.members(), func(ctx context.Context, m fleet.Member) Chain {
		return Chain{t.verifyOne(ctx, m), m.Name}
	})
}

func (t *Trail) verifyOne(ctx context.Context, m fleet.Member) fleet.AuditChain {
	if m.Name == t.self {
		return t.log.Check(ctx)
	}
	chain, err := t.peers().VerifyAudit(ctx, m)
	if err != nil {
		return fleet.AuditChain{State: fleet.AuditUnknown, Fault: err.Error()}
	}
	return chain
}
