package worker

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// frame is what one frame to a server settled, extended and had it keep.
type frame struct {
	link     *link // that it went out on
	settled  []*held
	extended []*held
	kept     []*checkpoint
	sent     time.Time // not later than it left
	slow     bool      // it was answered in part; guarded by sub.mu
	bytes    int       // of what it carries, as far as that is much
	alone    bool      // it has the only outcome in flight on its link, which may break the stream
}

// part takes those out of f that m, one of several answers, decides, as a frame of their own.
func (f *frame) part(m *ddqv1.Settled) *frame {
	type name struct{ token, checkpoint string }
	decided := make(map[name]bool, len(m.GetResults()))
	for _, r := range m.GetResults() {
		decided[name{string(r.GetHoldToken()), r.GetName()}] = true
	}
	split := func(all []*held) (out, rest []*held) {
		for _, h := range all {
			if decided[name{token: string(h.ack.HoldToken)}] {
				out = append(out, h)
			} else {
				rest = append(rest, h)
			}
		}
		return out, rest
	}
	p := &frame{link: f.link, sent: f.sent}
	p.settled, f.settled = split(f.settled)
	p.extended, f.extended = split(f.extended)
	var rest []*checkpoint
	for _, c := range f.kept {
		if decided[name{string(c.wire.HoldToken), c.wire.Name}] {
			p.kept = append(p.kept, c)
		} else {
			rest = append(rest, c)
		}
	}
	f.kept = rest
	return p
}

// take fills r with what l is to send next. False means that there is nothing,
// not for as long as pause says, or that l no longer speaks for the subscription.
func (s *speakers) take(l *link, r *ddqv1.SubscribeRequest) (ok bool, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.attached {
		return false, 0
	}
	if s.patient(l) {
		pause = l.pause(time.Now())
	}
	if l.quiet = pause > 0; l.quiet {
		return false, pause
	}
	r.Credit, r.Sequence = nil, 0
	r.Acks, r.Nacks, r.Extends, r.Checkpoints = r.Acks[:0], r.Nacks[:0], r.Extends[:0], r.Checkpoints[:0]
	f := &frame{link: l, sent: time.Now()}
	if !s.singled(f) {
		f.takeSettled(r)
	}
	f.takeExtends(r, s.cfg.VisibilityTimeout)
	f.takeCheckpoints(r)
	if len(f.settled)+len(f.extended)+len(f.kept) > 0 {
		s.sequence++
		r.Sequence, l.spoke = s.sequence, f.sent
		s.unanswered[s.sequence] = f
		l.asked++
	}
	if n := s.grant(&l.credit, len(l.settle)); n > 0 {
		r.Credit = new(int32(n))
	}
	return r.Sequence > 0 || r.Credit != nil, 0
}

// singled has the frame take one outcome that may break the stream, and no others, when there is one;
// true: it has to wait for what is in flight, and so have the others. mu is held.
func (s *speakers) singled(f *frame) (waits bool) {
	l := f.link
	if s.suspects == 0 {
		return false
	}
	i := slices.IndexFunc(l.settle, func(h *held) bool { return h.suspect })
	if i < 0 {
		return false
	}
	for _, other := range s.unanswered {
		if l.single = other.link == l && len(other.settled) > 0; l.single {
			return true
		}
	}
	l.settle[0], l.settle[i] = l.settle[i], l.settle[0]
	f.alone = true
	return false
}

// takeSettled moves outcomes into the frame; mu is held.
func (f *frame) takeSettled(r *ddqv1.SubscribeRequest) {
	l := f.link
	n, bytes := fitting(l.settle)
	if f.alone {
		n = 1
	}
	if n == 0 {
		return
	}
	f.bytes += bytes
	f.settled = l.settle[:n:n]
	l.settle = l.settle[n:]
	if len(l.settle) == 0 {
		l.settle = make([]*held, 0, n) // the frame keeps the old one
	}
	for _, h := range f.settled {
		if h.nack != nil {
			r.Nacks = append(r.Nacks, h.nack)
		} else {
			r.Acks = append(r.Acks, &h.ack)
		}
	}
}

// fitting is how many of these outcomes one frame takes, and their bytes.
func fitting(settle []*held) (n, bytes int) {
	for n < min(len(settle), frameSettles) {
		more := settle[n].size()
		if n > 0 && bytes+more > frameResults {
			break
		}
		n, bytes = n+1, bytes+more
	}
	return n, bytes
}

// takeExtends moves holds to ask more of into the frame, as many as it takes; mu is held. They are
// asked to last for visibility, 0 being the topic's.
func (f *frame) takeExtends(r *ddqv1.SubscribeRequest, visibility time.Duration) {
	l := f.link
	n := min(len(l.extend), frameExtends)
	now := l.extend[:n]
	if l.extend = l.extend[n:]; len(l.extend) == 0 {
		l.extend = nil
	}
	for _, h := range now {
		if !h.lasting() {
			continue // settled meanwhile
		}
		e := &ddqv1.Extend{TaskId: h.ack.TaskId, HoldToken: h.ack.HoldToken}
		if !h.ownHold {
			e.VisibilityTimeoutMs = visibility.Milliseconds()
		}
		r.Extends = append(r.Extends, e)
		f.extended = append(f.extended, h)
	}
}

// takeCheckpoints moves as many values into the frame as it takes; mu is held. The others wait for the
// next one.
func (f *frame) takeCheckpoints(r *ddqv1.SubscribeRequest) {
	l := f.link
	for len(l.journal) > 0 && len(f.kept) < frameSettles {
		c := l.journal[0]
		more := len(c.wire.Value)
		if f.bytes > 0 && f.bytes+more > frameResults {
			return
		}
		f.bytes += more
		l.journal = l.journal[1:]
		r.Checkpoints = append(r.Checkpoints, c.wire)
		f.kept = append(f.kept, c)
	}
	if len(l.journal) == 0 {
		l.journal = nil
	}
}

// answerCheckpoints passes on which values are kept. Where one of a task is not, a call for each of
// the task's is to hear why.
func (f *frame) answerCheckpoints(m *ddqv1.Settled) {
	if len(f.kept) == 0 {
		return
	}
	refused := make(map[string]bool) // by token
	for _, r := range m.GetResults() {
		if r.GetName() != "" && r.GetError() != nil {
			refused[string(r.GetHoldToken())] = true
		}
	}
	for _, c := range f.kept {
		c.kept <- !refused[string(c.wire.HoldToken)]
	}
}

// unheard has calls made for what a stream that ended was to carry.
func unheard(checkpoints []*checkpoint) {
	for _, c := range checkpoints {
		c.kept <- false
	}
}

// answered takes the server's answer to a frame of l.
func (s *subscription) answered(l *link, m *ddqv1.Settled) {
	now := time.Now()
	s.mu.Lock()
	f := s.unanswered[m.GetSequence()]
	if f == nil || f.link != l { // said again on another stream, whose answer counts
		s.mu.Unlock()
		return
	}
	if !f.slow {
		l.asked-- // what is left of a slow one, nothing waits for
	}
	slow := f.slow
	if m.GetPart() {
		f.slow = true
		f = f.part(m)
	} else {
		delete(s.unanswered, m.GetSequence())
	}
	if s.adaptive != nil && len(f.settled) > 0 && !slow {
		s.adaptive.onAnswered(now, now.Sub(f.sent))
	}
	var results map[string]*ddqv1.SettleResult // by token
	if len(m.GetResults()) > 0 {
		results = make(map[string]*ddqv1.SettleResult, len(m.GetResults()))
		for _, r := range m.GetResults() {
			if r.GetName() == "" {
				results[string(r.GetHoldToken())] = r
			}
		}
	}
	var done [Released + 1]int
	var heard []func()
	for _, h := range f.settled {
		kind := s.accepted(h, results, now)
		if kind != 0 && kind <= Released {
			done[kind]++
		}
		if kind == 0 {
			continue
		}
		if hear := h.known(kind); hear != nil {
			heard = append(heard, func() { hear(kind) })
		}
	}
	f.answerCheckpoints(m)
	extended := 0
	for _, h := range f.extended {
		if s.extended(h, results[string(h.ack.HoldToken)], f.sent, now) {
			extended++
		}
	}
	s.stir()
	switch {
	case !l.attached:
		poke(l.heard)
	case l.single:
		poke(l.wake)
	case l.draining, l.quiet:
		s.stirUp(l) // it has nothing more to say, or need not wait any longer
	}
	s.mu.Unlock()
	for _, tell := range heard {
		tell()
	}
	for kind, n := range done {
		s.events.report(Event{Kind: EventKind(kind), Topic: s.topic, Tasks: n})
	}
	s.events.report(Event{Kind: Extended, Topic: s.topic, Tasks: extended})
}

// accepted returns what became of h's outcome, which is Lost when it did not count, or 0 when it is
// to be sent again; mu is held.
func (s *subscription) accepted(h *held, results map[string]*ddqv1.SettleResult, now time.Time) EventKind {
	if h.suspect {
		s.suspect(h, false)
	}
	err := results[string(h.ack.HoldToken)].GetError() // nil without results
	if h.repeated && gone(err) && now.Before(h.deadline) {
		// The hold had time left, so what ended it was this outcome, of which the
		// first answer was lost.
		err = nil
	}
	switch {
	case err == nil && h.nack == nil:
		h.ack.Result, h.ack.Enqueue, h.ack.Grow, h.ending = nil, nil, nil, ending{} // h may lie in a batch with one that runs for hours
		return Acked
	case err == nil && h.nack.Release:
		return Released
	case err == nil:
		return Nacked
	case h.nextRefused(err):
		s.later = append(s.later, postponed{h, now})
		s.arm(now)
		return 0
	case passing(err) && now.Before(h.deadline):
		at := now.Add(pause(err))
		h.repeated = h.repeated || codes.Code(err.GetCode()) != codes.ResourceExhausted // that one changed nothing
		h.later = true
		h.via = s.another(h.via)
		s.later = append(s.later, postponed{h, at})
		s.arm(at)
		return 0
	}
	s.events.report(Event{Kind: Lost, Topic: s.topic, Tasks: 1})
	s.cfg.Logger.Warn("settlement refused", "topic", s.topic, "task", h.ack.TaskId, "err", err.GetMessage())
	return Lost
}

// extended takes the answer to an extend that was sent no earlier than sent;
// mu is held.
func (s *subscription) extended(h *held, r *ddqv1.SettleResult, sent, now time.Time) bool {
	h.asked = false
	if !h.lasting() {
		return false
	}
	err := r.GetError()
	switch {
	case err == nil && r.GetHoldMs() > 0:
		h.holdFor(sent, time.Duration(r.GetHoldMs())*time.Millisecond)
		s.arm(h.extendAt)
		if r.GetCancelRequested() {
			h.askToStop()
		}
		return true
	case err == nil: // no word about it: ask again when it is time
		return false
	case passing(err):
		h.via = s.another(h.via)
		h.extendAt = now.Add(min(pause(err), max(h.deadline.Sub(now)/2, leastPause))) // sooner than it says, where it would be too late else
		s.arm(h.extendAt)
		return false
	}
	if !h.later { // else the answer to its outcome says what became of it
		s.lose(h, err.GetMessage())
	}
	return false
}

// gone reports whether err says that there is no such hold. Where there is no such topic any more, an
// outcome may have been accepted before that or not.
func gone(err *ddqv1.Error) bool {
	return err.GetReason() == "HOLD_LOST" || codes.Code(err.GetCode()) == codes.NotFound && err.GetReason() != "NO_TOPIC"
}

// passing reports whether what failed with err may succeed later.
func passing(err *ddqv1.Error) bool {
	c := codes.Code(err.GetCode())
	return err.GetRetryAfterMs() > 0 || c == codes.Unavailable || c == codes.Unknown
}

// leastPause is how long to wait at least before saying it again, and pause how long.
const leastPause = 50 * time.Millisecond

func pause(err *ddqv1.Error) time.Duration {
	return max(time.Duration(err.GetRetryAfterMs())*time.Millisecond, leastPause)
}
