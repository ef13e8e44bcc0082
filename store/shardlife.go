package store

// ShardLife is the topic that a shard belongs to, as the shard's record has it: the Life of
// the topic, and whether that life is over. The zero value is a shard of which nobody
// has said so yet. A shard takes new tasks of the topic that it belongs to only, so a
// node that has not heard that a topic was deleted, or created anew, adds nothing that nobody
// looks for.
//
// The stores keep it and decide by the methods below. Life 0 is a caller that does not
// say; it is refused nothing and changes nothing.
type ShardLife struct {
	Topic uint64 // its Life; 0: not known
	Ended bool   // the shard was dropped
}

// Adding is the record after a call that adds tasks of a life, and whether they may be added.
func (l ShardLife) Adding(life uint64) (ShardLife, bool) {
	if life == 0 || l == (ShardLife{}) {
		return ShardLife{life, false}.or(l), true
	}
	return l, l == ShardLife{life, false}
}

// Sealing is the record after Seal by a topic of that life, and whether it may seal: not
// while the shard is another topic's.
func (l ShardLife) Sealing(life uint64) (ShardLife, bool) {
	if life == 0 || l.Topic == life {
		return l, true
	}
	if l == (ShardLife{}) || l.Ended {
		return ShardLife{life, false}, true
	}
	return l, false
}

// Dropping is the record after DropShard by a topic of that life, and whether it may
// drop: not while the shard is another topic's.
func (l ShardLife) Dropping(life uint64) (ShardLife, bool) {
	if life == 0 || l == (ShardLife{}) || l.Ended || l.Topic == life {
		return ShardLife{life, true}.or(l), true
	}
	return l, false
}

// Opening is the record after OpenShard for a topic of that life by a caller that read
// was, and whether anything changes.
func (l ShardLife) Opening(life uint64, was ShardLife) (ShardLife, bool) {
	next := ShardLife{life, false}
	return next, life != 0 && l == was && l != next
}

// or is l, or the other one when l names no life.
func (l ShardLife) or(other ShardLife) ShardLife {
	if l.Topic == 0 {
		return other
	}
	return l
}
