package shard

// batchingPart is a part of a shard that batches its store calls.
type batchingPart interface {
	flush()      // starts the calls that may start
	idle() bool  // no call runs or waits that somebody depends on
	fenced() int // calls in flight under the fence of the claim
	lose()       // the claim is over: gives back what waits for a call under it
	stop()       // the shard stops: answers what waits for a call
}
