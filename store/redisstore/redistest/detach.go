package redistest

// Detach cuts the replicas off from the primary: they keep what they have, hear of
// nothing new, and cannot come back before Attach.
func (set *Sentinel) Detach(tb TB) {
	tb.Helper()
	primary := set.Primary(tb)
	for _, s := range set.servers {
		if s != primary && s.cmd != nil {
			s.Do(tb, "CONFIG", "SET", "masteruser", "nobody", "masterauth", "wrong")
		}
	}
	primary.Do(tb, "CLIENT", "KILL", "TYPE", "replica")
}

// Attach lets replicas that were cut off follow whoever is the primary.
func (set *Sentinel) Attach(tb TB) {
	tb.Helper()
	for _, s := range set.servers {
		if s.cmd != nil {
			s.Do(tb, "CONFIG", "SET", "masteruser", "", "masterauth", "")
		}
	}
}
