package servicetest

// Drains is how often the stream was told to go.
func (o *Stream) Drains() int {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Drained
}
