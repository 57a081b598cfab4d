package ratelimit

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// All returns a limiter that charges every one of limiters or none. A nil
// member refuses everything, no member admits everything, and a member given
// twice costs twice.
//
// A refusal leaves every member exactly as it was. The decision reports the
// tightest member: the one that is longest in the way of a refused call, the
// one with the least left after an admitted one. Reserve books all members for
// the first moment that suits all; the shortest WithMaxWait holds for all.
//
// Members are locked for the time of a call, each once and always in the same
// order, so no order of arguments can deadlock; the lock-free buckets let
// others wait for that time. Limiters of this package, also those of Keyed.For
// and All, are used so. Any other Limiter is charged by a reservation, which is
// settled to 0 when another member refuses; it may refuse others meanwhile. It
// must not use a limiter that is a member too, which is locked at that time.
//
// A booking for later leaves a token bucket to fill until then: what would be
// left over at the booked moment can be had before.
func All(limiters ...Limiter) Limiter {
	a := &together{}
	whole := &limiter{budget: a, maxWait: unbounded}
	for _, l := range limiters {
		if !a.add(l, whole) {
			return Must(New(Blocked()))
		}
	}
	if len(a.members) == 0 {
		return Must(New(Unlimited()))
	}
	slices.SortStableFunc(a.members, func(x, y member) int { return cmp.Compare(x.budget.order(), y.budget.order()) })
	whole.time = a.members[0].time
	for i := range a.members {
		m := &a.members[i]
		m.ahead = int64(whole.time.start.Sub(m.time.start))
	}
	return whole
}

// together is the budget of All.
type together struct {
	members   []member // in the order of their locks
	uncertain bool     // whether any is not heldBudget.certain
}

// A member is a budget and how often it was given.
type member struct {
	budget heldBudget
	time   timeline
	times  int64
	ahead  int64 // of the first member's timeline, where both are the system clock's
	now    int64 // the reading of the call in progress; guarded by the members' locks
}

// add adds a limiter and reports whether it can ever admit anything.
func (a *together) add(l Limiter, whole *limiter) bool {
	own, ok := ownLimiter(l)
	switch {
	case !ok:
		own = &limiter{budget: newForeign(l), time: newTimeline(nil), maxWait: unbounded}
	case own == nil || own.budget == nil:
		return false
	}
	whole.maxWait = min(whole.maxWait, own.maxWait)
	if nested, ok := own.budget.(*together); ok {
		for i := range nested.members {
			m := &nested.members[i] // its now is in use
			a.count(member{budget: m.budget, time: m.time, times: m.times})
		}
		return true
	}
	a.count(member{budget: own.budget.held(), time: own.time, times: 1})
	return true
}

func (a *together) count(m member) {
	for i := range a.members {
		if have := &a.members[i]; have.budget.same(m.budget) {
			have.times += m.times
			return
		}
	}
	a.members = append(a.members, m)
	a.uncertain = a.uncertain || !m.budget.certain()
}

// ownLimiter returns what is inside a limiter of this package. A type that
// embeds one may have methods of its own, and is not one.
func ownLimiter(l Limiter) (own *limiter, ok bool) {
	switch l := l.(type) {
	case nil:
		return nil, true
	case *TokenBucket:
		if l != nil {
			own = &l.limiter
		}
	case *LeakyBucket:
		if l != nil {
			own = &l.limiter
		}
	case *SlidingLog:
		if l != nil {
			own = &l.limiter
		}
	case *FixedCounter:
		if l != nil {
			own = &l.limiter
		}
	case *SlidingCounter:
		if l != nil {
			own = &l.limiter
		}
	case *limiter:
		own = l
	default:
		// A typed nil refuses as a nil does.
		v := reflect.ValueOf(l)
		return nil, v.Kind() == reflect.Pointer && v.IsNil()
	}
	return own, true
}

// limitLocked is the largest n that every member can admit.
func (a *together) limitLocked() int64 {
	least := int64(math.MaxInt64)
	for i := range a.members {
		m := &a.members[i]
		least = min(least, m.budget.limitLocked()/m.times)
	}
	return least
}

// lock locks every member, in order and each lock once, and sets the time of
// each: one moment for all on the system clock, the latest of the reading now of
// the first member and of what they have seen. It returns the first member's.
func (a *together) lock(now int64) int64 {
	for i := range a.members {
		if m := &a.members[i]; a.firstBehindLock(i) {
			m.budget.lock()
		}
	}
	shared := a.members[0].time.system()
	for i := range a.members {
		if m := &a.members[i]; shared && m.time.system() {
			now = max(now, m.budget.bring(now+m.ahead)-m.ahead)
		}
	}
	for i := range a.members {
		m := &a.members[i]
		switch {
		case i == 0 && !shared:
			m.now = m.budget.bring(now)
		case shared && m.time.system():
			m.now = m.budget.bring(now + m.ahead)
		default:
			m.now = m.budget.bring(m.time.now())
		}
	}
	return a.members[0].now
}

func (a *together) unlock() {
	for i := range a.members {
		if a.firstBehindLock(i) {
			a.members[i].budget.unlock()
		}
	}
}

func (a *together) firstBehindLock(i int) bool {
	return i == 0 || a.members[i].budget.order() != a.members[i-1].budget.order()
}

func (a *together) policy() Policy { return Policy{} } // there is not one

func (a *together) allow(now, n int64) bool { return a.decide(now, n).Allowed }

func (a *together) decide(now, n int64) Decision {
	now = a.lock(now)
	defer a.unlock()
	if !fits(n, a.limitLocked()) {
		d := a.measureLocked(0)
		d.Allowed, d.RetryAfter = false, Never
		return d
	}
	d := a.measureLocked(n)
	if !d.Allowed || n == 0 {
		return d
	}
	if a.uncertain {
		if at, _, err := a.bookLocked(now, now, n, atOnce); err != nil {
			// Members that share a budget behind the scenes do not fit together.
			d.Allowed, d.RetryAfter = false, time.Duration(max(at-now, 1))
			return d
		}
	} else {
		for i := range a.members {
			m := &a.members[i]
			m.budget.chargeLocked(m.now, n*m.times)
		}
	}
	return a.measureLocked(0)
}

func (a *together) measureLocked(n int64) (worst Decision) {
	for i := range a.members {
		m := &a.members[i]
		d := m.budget.measureLocked(m.now, n*m.times)
		d.Limit /= int(m.times)
		d.Remaining /= int(m.times)
		if i == 0 {
			worst = d
		} else {
			worst = tightest(worst, d)
		}
	}
	return worst
}

func (a *together) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	now = a.lock(now) // not the earlier: the delays count from here
	defer a.unlock()
	if limit := a.limitLocked(); !fits(n, limit) {
		return 0, nil, exceeds(n, limit)
	}
	at, settle, err := a.bookLocked(now, notBefore, n, maxWait)
	return at, func(now, actual int64) {
		now = a.lock(now)
		defer a.unlock()
		settle(now, actual)
	}, err
}

// bookLocked books all members for one moment.
func (a *together) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	settles := make([]settleFunc, len(a.members))
	delay, err := agree(len(a.members), max(0, notBefore-now),
		func(i int, delay int64) (least int64, err error) {
			m := &a.members[i]
			at, settle, err := m.budget.bookLocked(m.now, arith.After(m.now, delay), n*m.times, maxWait)
			settles[i] = settle
			return at - m.now, err
		},
		func(i int) { settles[i](a.members[i].now, 0) })
	at := arith.After(now, delay)
	if err != nil {
		return at, nil, err
	}
	for i := range a.members {
		m := &a.members[i]
		m.budget.charged(n * m.times)
	}
	return at, func(_, actual int64) {
		for i := range a.members {
			m := &a.members[i]
			settles[i](m.now, arith.Int64(arith.Mul(uint64(actual), uint64(m.times))))
		}
	}, nil
}

// tightest merges two decisions on one call.
func tightest(a, b Decision) Decision {
	worst := a
	if b.RetryAfter > a.RetryAfter || b.RetryAfter == a.RetryAfter && b.Remaining < a.Remaining {
		worst = b
	}
	worst.Allowed = a.Allowed && b.Allowed
	worst.Remaining = min(a.Remaining, b.Remaining)
	worst.ResetAfter = max(a.ResetAfter, b.ResetAfter)
	worst.Degraded = a.Degraded || b.Degraded
	return worst
}

func (a *together) held() heldBudget { return nil } // All takes its members instead
