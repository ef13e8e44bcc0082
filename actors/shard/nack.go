package shard

import (
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

const maxErrorBytes = 1024 // of an attempt's error that are kept

// nackFor translates a worker's nack or release.
func nackFor(s *subscription.Settlement, token store.Token, r agenda.Retries, random float64) store.Nack {
	n := store.Nack{ID: s.ID, Token: token, Error: cut(s.Error, maxErrorBytes), Outcome: store.OutcomeFailed, Trace: s.Trace, Say: s.Say}
	switch {
	case s.Kind == subscription.SettleRelease:
		n.Uncount, n.Outcome = true, store.OutcomeReleased
		if s.Unseen {
			n.Outcome = store.OutcomeNone
		}
	case s.Reason != store.ReasonNone:
		n.Reason, n.Uncount = s.Reason, true
	case s.Permanent:
		n.Reason = store.ReasonPermanent
	default:
		n = r.Failed(n, store.ReasonMaxRetries, random)
	}
	if s.Delay != nil && n.Reason == store.ReasonNone {
		n.Delay = *s.Delay
	}
	return n
}

// cut shortens s to n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s)) // replaces what is not UTF-8
}
