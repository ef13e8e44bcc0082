package checker

func phantom(t *task) {
	if len(t.deliveries) > 0 {
		t.offend(Phantom, "delivered, though no enqueue was accepted")
	} else if t.found != nil {
		t.offend(Phantom, "in the store, though no enqueue was accepted")
	}
}
