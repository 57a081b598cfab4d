package ratelimit

import (
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// foreign is a Limiter of another package as a member of All. All it can do is
// to reserve and to settle.
type foreign struct {
	limiter Limiter
	lockOrder
	mu sync.Mutex
}

func newForeign(l Limiter) *foreign { return &foreign{limiter: l, lockOrder: nextLockOrder()} }

func (f *foreign) policy() Policy { return Policy{} }

func (f *foreign) limitLocked() int64 { return math.MaxInt64 } // its reservations tell

func (f *foreign) allow(_, n int64) bool { return f.limiter.AllowN(int(n)) }

func (f *foreign) decide(_, n int64) Decision { return f.limiter.Decide(int(n)) }

func (f *foreign) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	return bookHeld(f, now, notBefore, n, maxWait)
}

func (f *foreign) held() heldBudget { return f }

func (f *foreign) same(h heldBudget) bool {
	other, ok := h.(*foreign)
	return ok && reflect.TypeOf(f.limiter).Comparable() && other.limiter == f.limiter
}

func (f *foreign) lock()                 { f.mu.Lock() }
func (f *foreign) unlock()               { f.mu.Unlock() }
func (f *foreign) bring(now int64) int64 { return now }

func (f *foreign) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	r := f.limiter.ReserveN(int(n))
	if err := r.Err(); err != nil {
		return 0, nil, err
	}
	at := arith.After(now, int64(r.Delay()))
	if maxWait == atOnce && f.limiter.Decide(0).Policy.Algorithm() == AlgorithmLeakyBucket {
		at = now // it has entered, which is all that Allow asks
	}
	if !permitted(at, now, maxWait) {
		r.Settle(0)
		return 0, nil, ErrWaitTooLong
	}
	// It may act before the others can: that is not the moment of all.
	return max(at, notBefore), func(_, actual int64) { r.Settle(int(min(actual, math.MaxInt))) }, nil
}

func (f *foreign) measureLocked(now, n int64) Decision {
	d := f.limiter.Decide(0)
	if n == 0 || !d.Allowed {
		return d
	}
	_, settle, err := f.bookLocked(now, now, n, atOnce)
	if err == nil {
		settle(now, 0)
		return d
	}
	d.Allowed, d.RetryAfter = false, Never
	if at, settle, err := f.bookLocked(now, now, n, unbounded); err == nil {
		settle(now, 0)
		d.RetryAfter = time.Duration(at - now)
	}
	return d
}

func (f *foreign) chargeLocked(_, n int64) { f.limiter.AllowN(int(n)) }

func (f *foreign) certain() bool { return false }
func (f *foreign) charged(int64) {}
