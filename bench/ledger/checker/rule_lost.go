package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// lost needs an audit.
func lost(t *task) {
	if t.stored() == nil || t.found != nil {
		return
	}
	switch end := t.remover(); {
	case end == nil && t.finisher() != nil:
		t.offend(verdict.Lost, "done, and not kept")
	case end == nil && !t.mayBeTrimmed():
		t.offend(verdict.Lost, "acknowledged, and gone")
	}
}

// mayBeTrimmed reports whether the task was one of too many dead letters.
func (t *task) mayBeTrimmed() bool {
	topic := t.policy()
	return topic != nil && topic.MaxDead > 0 && slices.ContainsFunc(append(t.ids(), t.id), func(id string) bool { return t.died[t.topic+"/"+id] })
}
