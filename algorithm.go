package ratelimit

import "math"

// An algorithm is a compiled policy: the pure functions of (policy, state,
// now, n) that everything else wraps. S is what one budget remembers; its zero
// value is a budget never used. Times are nanoseconds on the limiter's
// timeline and never negative. Every n is from 1 to limit: the wrappers have
// dealt with the others. A function that refuses returns a state that gives
// the same answers as s.
type algorithm[S any] interface {
	// limit is the most units that can pass at once.
	limit() int64

	// admit charges n units at now, or refuses.
	admit(s S, now, n int64) (S, bool)

	// book charges n units for the first moment at or after both now and
	// notBefore that the policy permits. The moment is at most maxWait after
	// now: else it refuses with ErrWaitTooLong or ErrQueueFull. A maxWait of
	// atOnce books exactly what admit admits.
	book(s S, now, notBefore, n, maxWait int64) (S, booking[S], error)

	// settle corrects a booking of b.n units to actual ≥ 0.
	settle(s S, now int64, b booking[S], actual int64) S

	// measure returns the whole units that would pass at now, the least wait
	// after which n units pass, and the wait until s is as good as new.
	measure(s S, now, n int64) (remaining, retry, reset int64)

	// idle reports whether s equals the zero state at now and from now on.
	idle(s S, now int64) bool
}

// A booking is what settle needs to know of n charged units.
type booking[S any] struct {
	n             int64
	at            int64 // the moment at which the units may act
	origin        int64 // of the bucket's words; see bucket.renew
	before, after S     // the states around the booking
}

// atOnce as a maxWait books only what Allow admits: for a leaky bucket that
// needs room, not a slot that is due.
const atOnce = math.MinInt64

// unbounded as a maxWait takes any moment on the timeline.
const unbounded = math.MaxInt64

// never is the moment that does not come and the wait that does not end.
const never = math.MaxInt64

// open is the algorithm of Unlimited, and with max 0 of Blocked: the wrappers
// refuse every n, 0 included, under a limit of 0.
type open struct{ max int64 }

func (o open) limit() int64 { return o.max }

func (open) admit(s struct{}, _, _ int64) (struct{}, bool) { return s, true }

func (open) book(s struct{}, now, notBefore, n, _ int64) (struct{}, booking[struct{}], error) {
	return s, booking[struct{}]{n: n, at: max(now, notBefore)}, nil
}

func (open) settle(s struct{}, _ int64, _ booking[struct{}], _ int64) struct{} { return s }

func (o open) measure(struct{}, int64, int64) (remaining, retry, reset int64) { return o.max, 0, 0 }

func (open) idle(struct{}, int64) bool { return true }

// until returns at − now, which is never for a moment that does not come.
func until(at, now int64) int64 {
	if at == never {
		return never
	}
	return at - now
}
