package access

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
)

// failures bounds how much one address may show that does not count. Over it nothing is looked up
// for the address, so that guessing costs neither the store nor an issuer a thing; callers that
// are known are not asked to wait.
type failures struct {
	perSecond int // 0: no bound

	mu     sync.Mutex
	by     map[netip.Prefix]*rate.Limiter // guarded by mu
	stayed int                            // when last some were forgotten; guarded by mu
}

// manyAddresses is from how many on those are forgotten that have failed long ago.
const manyAddresses = 1024

func newFailures(perSecond int) *failures {
	return &failures{perSecond: perSecond, by: make(map[netip.Prefix]*rate.Limiter)}
}

// count notes a failure of the caller.
func (f *failures) count(ctx context.Context, now time.Time) {
	from, counts := f.address(ctx)
	if !counts {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.by[from]
	if l == nil {
		f.forget(now)
		l = rate.NewLimiter(rate.Limit(f.perSecond), f.perSecond)
		f.by[from] = l
	}
	l.AllowN(now, 1)
}

// over says that the caller's address has failed too often; nil when it has not.
func (f *failures) over(ctx context.Context, now time.Time) *problem.Error {
	from, counts := f.address(ctx)
	if !counts {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.by[from]
	if l == nil {
		return nil
	}
	missing := 1 - l.TokensAt(now)
	if missing <= 0 {
		return nil
	}
	return &problem.Error{
		Kind: problem.Exhausted, Reason: "TOO_MANY_FAILURES", Message: "too many calls from this address had credentials that are not valid",
		RetryAfter: pause(missing, f.perSecond),
	}
}

// after counts a failure of the caller, if that is what e is, and returns the error to answer: that there were too
// many, or e.
func (f *failures) after(ctx context.Context, e *problem.Error) *problem.Error {
	if e == nil || e.Kind != problem.Unauthenticated {
		return e
	}
	now := time.Now()
	if over := f.over(ctx, now); over != nil {
		return over
	}
	f.count(ctx, now)
	return e
}

// pause is how long that many take at a rate, rounded up to milliseconds.
func pause(missing float64, perSecond int) time.Duration {
	d := time.Duration(missing / float64(perSecond) * float64(time.Second))
	return d.Truncate(time.Millisecond) + time.Millisecond
}

// forget drops those that may fail as often as a stranger. It looks at everybody, so it waits until
// there are twice as many as it left the last time. mu is held.
func (f *failures) forget(now time.Time) {
	if len(f.by) < max(manyAddresses, 2*f.stayed) {
		return
	}
	for from, l := range f.by {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(f.by, from)
		}
	}
	f.stayed = len(f.by)
}

// address is whose failures are counted together: an IPv4 address, or the network that one has of
// IPv6. Those of this machine do not count.
func (f *failures) address(ctx context.Context) (netip.Prefix, bool) {
	from, _ := auth.OriginOf(ctx)
	if f.perSecond == 0 || !from.Addr.IsValid() || from.Addr.IsLoopback() {
		return netip.Prefix{}, false
	}
	bits := 32
	if from.Addr.Is6() {
		bits = 64
	}
	p, err := from.Addr.Prefix(bits)
	return p, err == nil
}
