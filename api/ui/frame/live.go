package frame

import (
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

const (
	// beatEvery is how often a page is made that somebody looks at.
	beatEvery = time.Second
	// freshFor is how long a page is that of everybody who looks. It is shorter than a beat, so that who
	// looks alone gets a new one each time.
	freshFor = 900 * time.Millisecond
	// maxViewers is how many pages are kept up to date at a time.
	maxViewers = 1000
)

// part is a piece of a live page, as it is sent.
type part struct {
	mark string // tells it from what it was before
	text string
}

// partsOf makes the pieces of a page: those of its body, in their order.
func partsOf(v *View) ([]part, error) {
	group, ok := v.Body.(g.Group)
	if !ok {
		group = g.Group{v.Body}
	}
	parts := make([]part, len(group))
	for i, n := range group {
		if n == nil {
			continue
		}
		var text strings.Builder
		if err := n.Render(&text); err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(text.String()))
		parts[i] = part{strconv.FormatUint(sum.Sum64(), 36), text.String()}
	}
	return parts, nil
}

// main is the body of a page: that of a live one in its parts, so that each can be replaced.
func (v *View) main() g.Node {
	if v.stream == "" {
		return v.Body
	}
	parts, err := partsOf(v)
	if err != nil {
		return v.Body // which fails the same way
	}
	return g.Map(parts, func(p part) g.Node { return h.Div(h.Data("mark", p.mark), g.Raw(p.text)) })
}

// lives are the pages that somebody looks at. Each is made once a beat for all who look at it with the
// same rights, by whoever comes first. It is safe for concurrent use and owns no goroutine.
type lives struct {
	closed chan struct{}
	close  func() // closes closed, once

	mu      sync.Mutex
	viewers int               // guarded by mu
	all     map[watched]*live // guarded by mu
}

// watched is a page as it is for some visitors.
type watched struct{ page, rights string }

// live is a page as it was last made.
type live struct {
	viewers int // guarded by mu of lives

	mu    sync.Mutex // held while it is made: others wait for it
	began time.Time  // it was made last; guarded by mu
	parts []part     // guarded by mu
	err   error      // guarded by mu
}

func newLives() *lives {
	closed := make(chan struct{})
	return &lives{closed: closed, close: sync.OnceFunc(func() { close(closed) }), all: make(map[watched]*live)}
}

// join returns a page that the caller looks at until leave; nil: there are too many who look.
func (ls *lives) join(at watched) *live {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.viewers >= maxViewers {
		return nil
	}
	l := ls.all[at]
	if l == nil {
		l = new(live)
		ls.all[at] = l
	}
	ls.viewers++
	l.viewers++
	return l
}

func (ls *lives) leave(at watched, l *live) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.viewers--
	if l.viewers--; l.viewers == 0 {
		delete(ls.all, at)
	}
}

// get returns the page as it was made of late, or makes it.
func (l *live) get(make func() ([]part, error)) ([]part, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.began) >= freshFor {
		l.began = now
		l.parts, l.err = make()
	}
	return l.parts, l.err
}
