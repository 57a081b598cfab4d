package ratelimit

import (
	"context"
	"errors"
	"math"
	"time"
)

// A Limiter decides whether work may go ahead now, and books it for later when
// it may not. All methods are safe for concurrent use.
//
// An n of 0 passes and charges nothing, except where nothing passes at all
// (Blocked, and zero values). An n that is negative or above the limit is
// refused for ever. What is refused is not charged, whatever the method.
type Limiter interface {
	// Allow is shorthand for AllowN(1).
	Allow() bool
	// AllowN charges n units now and reports true, or charges nothing.
	AllowN(n int) bool
	// Decide is AllowN with the whole answer. Decide(0) looks without charging.
	Decide(n int) Decision
	// Reserve is shorthand for ReserveN(1).
	Reserve() *Reservation
	// ReserveN books n units for the first moment that the policy permits,
	// behind all earlier bookings. The reservation tells that moment.
	ReserveN(n int) *Reservation
	// Wait is shorthand for WaitN(ctx, 1).
	Wait(ctx context.Context) error
	// WaitN books n units, sleeps until their moment and returns nil. It fails
	// at once, charging nothing, with ctx's error when ctx has ended, with
	// ErrExceedsLimit, ErrQueueFull, or ErrWaitTooLong when the moment lies
	// beyond WithMaxWait or ctx's deadline (then it also matches
	// context.DeadlineExceeded). When ctx ends during the sleep the booking is
	// cancelled: that may give back nothing if others are booked behind it.
	WaitN(ctx context.Context, n int) error
}

// A Decision is the whole answer to one question.
type Decision struct {
	// Allowed reports whether the n units may go ahead; they are charged then.
	Allowed bool
	// Limit is the policy's burst, capacity or limit.
	Limit int
	// Remaining is the whole units that would pass right after this decision,
	// rounded down.
	Remaining int
	// RetryAfter is 0 when allowed. Else it is the least wait after which the
	// same call passes if nobody else calls, rounded up to a nanosecond, or
	// Never if it cannot.
	RetryAfter time.Duration
	// ResetAfter is the wait until the budget is as good as new, rounded up.
	ResetAfter time.Duration
	// Policy is the policy that decided; of several, the tightest.
	Policy Policy
	// Degraded reports that a shared limit was decided without its store.
	Degraded bool
}

// Never is a wait that does not end.
const Never time.Duration = math.MaxInt64

// Errors, matched with errors.Is.
var (
	// ErrInvalidPolicy says that a policy or an option is out of its range. It
	// is wrapped with the field, the value and what is allowed.
	ErrInvalidPolicy = errors.New("ratelimit: invalid policy")
	// ErrExceedsLimit says that n is negative or more than can ever pass at once.
	ErrExceedsLimit = errors.New("ratelimit: n exceeds the limit")
	// ErrWaitTooLong says that the first possible moment is too far away.
	ErrWaitTooLong = errors.New("ratelimit: wait would be too long")
	// ErrQueueFull says that a leaky bucket has no room for the units.
	ErrQueueFull = errors.New("ratelimit: queue is full")
	// ErrClosed says that what was called takes no more work.
	ErrClosed = errors.New("ratelimit: closed")
)

// New returns a limiter that enforces p on one budget. On an error, which
// wraps ErrInvalidPolicy, the Limiter is nil. The types behind it are those of
// the constructors, such as *TokenBucket.
func New(p Policy, opts ...Option) (Limiter, error) {
	switch p.Algorithm() {
	case AlgorithmTokenBucket:
		return orNil(newTokenBucket(p, opts))
	case AlgorithmLeakyBucket:
		return orNil(newLeakyBucket(p, opts))
	case AlgorithmSlidingLog:
		return orNil(newSlidingLog(p, opts))
	case AlgorithmFixedCounter:
		return orNil(newFixedCounter(p, opts))
	case AlgorithmSlidingCounter:
		return orNil(newSlidingCounter(p, opts))
	}
	l, err := newLimiter(p, opts)
	return orNil(&l, err)
}

// newBudget returns a budget of its own for a valid policy.
func newBudget(p Policy, t timeline) budget {
	switch p.Algorithm() {
	case AlgorithmTokenBucket, AlgorithmLeakyBucket:
		return newBucketWord(p)
	case AlgorithmSlidingLog:
		return newGuarded[logState](newLog(p), p)
	case AlgorithmFixedCounter:
		return newGuarded[fixedState](newFixed(p, t.start), p)
	case AlgorithmSlidingCounter:
		return newGuarded[slidingState](newSliding(p, t.start), p)
	}
	return newGuarded[struct{}](open{int64(p.Limit())}, p)
}

// orNil turns a typed nil into a true nil interface.
func orNil[L Limiter](l L, err error) (Limiter, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Must returns v, or panics with err if it is not nil. It is meant for
// package-level variables:
//
//	var limiter = ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(10), 20))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A budget is a state behind whatever keeps it whole: a mutex, an atomic word,
// a shard of a table. It takes any n.
type budget interface {
	policy() Policy
	allow(now, n int64) bool
	decide(now, n int64) Decision
	// book is algorithm.book; settle is for the reservation to call, once.
	book(now, notBefore, n, maxWait int64) (at int64, settle settleFunc, err error)
	// held returns the budget for use under its lock; see All.
	held() heldBudget
}

// A settleFunc corrects a booking to what it really cost. The budget has to be
// held by the caller where the booking was made on a held budget.
type settleFunc func(now, actual int64)

// limiter is what all limiters share: the methods of Limiter, written once
// over a clock and a budget. The zero limiter refuses everything.
type limiter struct {
	time    timeline
	maxWait int64
	budget  budget // nil in a zero value
}

func newLimiter(p Policy, opts []Option) (limiter, error) {
	o, err := plainOptions(opts)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return limiter{}, err
	}
	l := limiter{time: newTimeline(o.clock), maxWait: int64(o.maxWait)}
	l.budget = newBudget(p, l.time)
	return l, nil
}

// Policy returns the policy in force: the zero Policy for a zero value.
func (l *limiter) Policy() Policy {
	if l.budget == nil {
		return Policy{}
	}
	return l.budget.policy()
}

// SetPolicy changes the policy while the limiter is in use. The algorithm must
// stay the same. Time up to the change is settled under the old policy; what
// was charged stays charged; the tokens of a token bucket are kept, capped at
// the new burst and rounded down, and never raised. Bookings keep their moments.
// A queue of a leaky bucket goes on at the new rate, which may overtake what was
// booked at a slower one. Reservations made before can be charged more by Settle;
// those of a bucket, or of another window, give nothing back.
//
// An error leaves the old policy in force. It wraps ErrInvalidPolicy, or is
// ErrClosed for a zero value. All limiters that New returns have this method.
func (l *limiter) SetPolicy(p Policy) error {
	if l.budget == nil {
		return ErrClosed
	}
	own, ok := l.budget.(settable)
	if !ok {
		return invalid("policy", p, "must be set on the limiter that All or For was given")
	}
	if err := replaceable(l.budget.policy(), p); err != nil {
		return err
	}
	own.setPolicy(l.time.now(), p)
	return nil
}

// settable is a budget, or many, whose policy can be changed.
type settable interface {
	setPolicy(now int64, p Policy)
}

// replaceable reports whether p can take the place of old.
func replaceable(old, p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Algorithm() != old.Algorithm() {
		return invalid("algorithm", p.Algorithm(), "must stay "+old.Algorithm().String())
	}
	return nil
}

// Allow is shorthand for AllowN(1).
func (l *limiter) Allow() bool { return l.AllowN(1) }

// AllowN charges n units now and reports true, or charges nothing.
func (l *limiter) AllowN(n int) bool {
	return l.budget != nil && l.budget.allow(l.time.now(), int64(n))
}

// Decide is AllowN with the whole answer. Decide(0) looks without charging.
func (l *limiter) Decide(n int) Decision {
	if l.budget == nil {
		return Decision{RetryAfter: Never}
	}
	return l.budget.decide(l.time.now(), int64(n))
}

// Reserve is shorthand for ReserveN(1).
func (l *limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN books n units for the first moment that the policy permits, behind
// all earlier bookings.
func (l *limiter) ReserveN(n int) *Reservation {
	return l.reserve(l.time.now(), n, l.maxWait)
}

func (l *limiter) reserve(now int64, n int, maxWait int64) *Reservation {
	if l.budget == nil {
		return refused(exceeds(int64(n), 0))
	}
	at, settle, err := l.budget.book(now, now, int64(n), maxWait)
	if err != nil {
		return refused(err)
	}
	return &Reservation{time: l.time, at: at, settle: settle}
}

// Wait is shorthand for WaitN(ctx, 1).
func (l *limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN books n units, sleeps until their moment and returns nil. See Limiter.
func (l *limiter) WaitN(ctx context.Context, n int) error {
	if err := ended(ctx); err != nil {
		return err
	}
	now := l.time.now()
	maxWait, hurried := l.maxWait, false
	if deadline, ok := ctx.Deadline(); ok {
		if left := l.time.at(deadline) - now; left < maxWait {
			maxWait, hurried = left, true
		}
	}
	r := l.reserve(now, n, max(maxWait, -1)) // -1: past the deadline, not even at once
	switch {
	case hurried && errors.Is(r.err, ErrWaitTooLong):
		return pastDeadline{}
	case r.err != nil:
		return r.err
	}
	if err := l.time.sleep(ctx, r.at); err != nil && r.cancel() {
		return err
	}
	return nil
}

// ended returns the error of a context that has ended, or is none.
func ended(ctx context.Context) error {
	if ctx == nil {
		return errors.New("ratelimit: ctx = nil: must not be nil")
	}
	return ctx.Err()
}

// pastDeadline is the ErrWaitTooLong of a context's deadline.
type pastDeadline struct{}

func (pastDeadline) Error() string {
	return ErrWaitTooLong.Error() + ": it would end after the context's deadline"
}

func (pastDeadline) Is(target error) bool {
	return target == ErrWaitTooLong || target == context.DeadlineExceeded
}
