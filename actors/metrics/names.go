package metrics

import "sync"

// mostNames bounds how many values of users become labels.
const mostNames = 200

// otherName is the label of names that came later.
const otherName = "other"

// names are those of users that became labels, the first ones that came.
type names struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu
}

// label is what a name is called as a label.
func (n *names) label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
	case len(n.known) >= mostNames:
		return otherName
	case n.known == nil:
		n.known = map[string]bool{name: true}
	default:
		n.known[name] = true
	}
	return name
}
