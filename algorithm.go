package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// An algorithm is a compiled policy: the pure functions of (policy, state,
// now, n) that everything else wraps. S is what one budget remembers; its zero
// value is a budget never used. Times are nanoseconds on the limiter's
// timeline and never negative. Every n is from 1 to limit: the wrappers have
// dealt with the others. A function that refuses returns a state that gives
// the same answers as s.
type algorithm[S any] interface {
	// limit is the most units that can pass at once.
	limit(s S) int64

	// admit charges n units at now, or refuses.
	admit(s S, now, n int64) (S, bool)

	// book charges n units for the first moment at or after both now and
	// notBefore that the policy permits. The moment is at most maxWait after
	// now: else it refuses with ErrWaitTooLong or ErrQueueFull. A maxWait of
	// atOnce books exactly what admit admits.
	book(s S, now, notBefore, n, maxWait int64) (S, booking[S], error)

	// settle corrects a booking of b.n units to actual ≥ 0.
	settle(s S, now int64, b booking[S], actual int64) S

	// measure describes s at now, for a call of n units; here n may be 0.
	measure(s S, now, n int64) measurement

	// idle reports whether s equals the zero state at now and from now on.
	idle(s S, now int64) bool
}

// A booking is what settle needs to know of n charged units.
type booking[S any] struct {
	n             int64
	at            int64  // the moment at which the units may act, or could if there were room
	least         int64  // the wait for it in an idle budget
	origin        int64  // of a bucket's words; see bucket.renew
	plan          uint64 // of the algorithm that made it
	metered       bool   // a leaky bucket's, entered without a place in the queue
	before, after S      // the states around the booking
	parts         []any  // of a joint booking, one for each policy
}

// retry returns the least wait after which a booking that was refused at now is
// no more than maxWait away.
func (b *booking[S]) retry(now, maxWait int64) time.Duration {
	if b.at == never || b.least > maxWait {
		return Never
	}
	return time.Duration(max(0, b.at-now-maxWait))
}

// A measurement is what a Decision says of a state.
type measurement struct {
	remaining int64  // the whole units that would pass at now
	retry     int64  // the least wait after which n units pass
	reset     int64  // the wait until the state is as good as new
	policy    Policy // the tightest, where there are several
	limit     int64  // of that policy
}

// atOnce as a maxWait books only what Allow admits: for a leaky bucket that
// needs room, not a slot that is due.
const atOnce = math.MinInt64

// unbounded as a maxWait takes any moment on the timeline.
const unbounded = math.MaxInt64

// never is the moment that does not come and the wait that does not end.
const never = math.MaxInt64

// fits reports whether n units can ever pass.
func fits(n, limit int64) bool { return n >= 0 && n <= limit && limit > 0 }

// admit is algorithm.admit for any n.
func admit[S any, A algorithm[S]](alg A, s S, now, n int64) (S, bool) {
	if limit := alg.limit(s); n < 1 || n > limit {
		return s, n == 0 && limit > 0
	}
	return alg.admit(s, now, n)
}

// book is algorithm.book for any n.
func book[S any, A algorithm[S]](alg A, s S, now, notBefore, n, maxWait int64) (S, booking[S], error) {
	limit := alg.limit(s)
	switch {
	case !fits(n, limit):
		return s, booking[S]{}, exceeds(n, limit)
	case n == 0:
		return s, booking[S]{at: max(now, notBefore), before: s, after: s}, nil
	}
	return alg.book(s, now, notBefore, n, maxWait)
}

// exceeds is the error of an n that does not fit.
func exceeds(n, limit int64) error {
	if limit == 0 {
		return fmt.Errorf("%w: n = %d: nothing is admitted", ErrExceedsLimit, n)
	}
	return fmt.Errorf("%w: n = %d: must be from 0 to %d", ErrExceedsLimit, n, limit)
}

// decide is admit with the whole answer.
func decide[S any, A algorithm[S]](alg A, s S, now, n int64, rule Policy) (S, Decision) {
	s, ok := admit(alg, s, now, n)
	return s, answer(alg, s, now, n, ok, rule)
}

// look is decide without the charge.
func look[S any, A algorithm[S]](alg A, s S, now, n int64, rule Policy) Decision {
	d := answer(alg, s, now, n, false, rule)
	if d.RetryAfter == 0 {
		d.Allowed = true
	}
	return d
}

// answer describes s, right after n units were admitted or refused.
func answer[S any, A algorithm[S]](alg A, s S, now, n int64, allowed bool, rule Policy) Decision {
	ask, limit := n, alg.limit(s)
	if !fits(n, limit) {
		ask = 0
	}
	m := alg.measure(s, now, ask)
	switch {
	case !fits(n, limit):
		m.retry = never
	case allowed || n == 0:
		m.retry = 0
	}
	if m.policy == (Policy{}) {
		m.policy, m.limit = rule, limit
	}
	return Decision{
		Allowed:    allowed,
		Limit:      int(m.limit),
		Remaining:  int(max(0, m.remaining)), // more may be charged than a lowered limit
		RetryAfter: time.Duration(m.retry),
		ResetAfter: time.Duration(m.reset),
		Policy:     m.policy,
	}
}

// A changeable algorithm can give way to another of its kind, A, while budgets
// are in use.
type changeable[S, A any] interface {
	// become returns the algorithm of p, to be in force from now on.
	become(p Policy, now int64) A
	// carry returns what s, settled at now, is under the algorithm that came from
	// become. What was charged stays charged; nothing is minted.
	carry(s S, now int64, to A) S
}

// A renewer is a changeable algorithm that has to be renewed, as itself, by the
// moment that ends returns.
type renewer[S, A any] interface {
	changeable[S, A]
	ends() int64
	renew(now int64) A
}

// end returns the moment after which alg has to be renewed.
func end[S any, A algorithm[S]](alg A) int64 {
	if r, ok := any(alg).(renewer[S, A]); ok {
		return r.ends()
	}
	return never
}

// open is the algorithm of Unlimited, and with max 0 of Blocked: under a limit
// of 0 every n is refused, 0 included.
type open struct{ max int64 }

func (o open) limit(struct{}) int64 { return o.max }

func (open) admit(s struct{}, _, _ int64) (struct{}, bool) { return s, true }

func (open) book(s struct{}, now, notBefore, n, _ int64) (struct{}, booking[struct{}], error) {
	return s, booking[struct{}]{n: n, at: max(now, notBefore)}, nil
}

func (open) settle(s struct{}, _ int64, _ booking[struct{}], _ int64) struct{} { return s }

func (o open) measure(struct{}, int64, int64) measurement { return measurement{remaining: o.max} }

func (open) idle(struct{}, int64) bool { return true }

// until returns at − now, which is never for a moment that does not come.
func until(at, now int64) int64 {
	if at == never {
		return never
	}
	return at - now
}
