package shell

import "sync"

// Abort is what a process that is to end at once must not leave behind: the commands that
// `ddq work` runs. It is safe for concurrent use.
type Abort struct {
	mu   sync.Mutex
	next int
	ends map[int]func() // guarded by mu
}

// Now ends everything. It does not wait.
func (a *Abort) Now() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, end := range a.ends {
		end()
	}
}

// add has end called by Now, until remove is called.
func (a *Abort) add(end func()) (remove func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == nil {
		a.ends = make(map[int]func())
	}
	n := a.next
	a.next++
	a.ends[n] = end
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.ends, n)
	}
}
