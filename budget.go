package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// guarded is a budget of any algorithm under a mutex.
type guarded[S any, A algorithm[S]] struct {
	rule Policy
	alg  A
	lockOrder

	mu    sync.Mutex
	state S
	now   int64
}

func newGuarded[S any, A algorithm[S]](alg A, p Policy) *guarded[S, A] {
	return &guarded[S, A]{rule: p, alg: alg, lockOrder: nextLockOrder()}
}

func (g *guarded[S, A]) limit() int64 { return g.alg.limit() }

func (g *guarded[S, A]) allow(now, n int64) (ok bool) {
	g.mu.Lock()
	g.state, ok = g.alg.admit(g.state, g.bring(now), n)
	g.mu.Unlock()
	return ok
}

func (g *guarded[S, A]) decide(now, n int64) (d Decision) {
	g.mu.Lock()
	g.state, d = decide(g.alg, g.state, g.bring(now), n)
	g.mu.Unlock()
	d.Policy = g.rule
	return d
}

func (g *guarded[S, A]) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	return bookHeld(g, now, notBefore, n, maxWait)
}

func (g *guarded[S, A]) held() heldBudget { return g }

func (g *guarded[S, A]) lock()   { g.mu.Lock() }
func (g *guarded[S, A]) unlock() { g.mu.Unlock() }

func (g *guarded[S, A]) bring(now int64) int64 {
	g.now = max(g.now, now)
	return g.now
}

func (g *guarded[S, A]) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	next, booked, err := g.alg.book(g.state, now, notBefore, n, maxWait)
	g.state = next
	if err != nil {
		return 0, nil, err
	}
	return booked.at, func(now, actual int64) {
		g.state = g.alg.settle(g.state, g.bring(now), booked, actual)
	}, nil
}

func (g *guarded[S, A]) measureLocked(now, n int64) Decision {
	return look(g.alg, g.state, now, n, g.rule)
}

func (g *guarded[S, A]) chargeLocked(now, n int64) { g.state, _ = g.alg.admit(g.state, now, n) }

// look answers for n units without charging them.
func look[S any, A algorithm[S]](alg A, s S, now, n int64, rule Policy) Decision {
	d := answer(alg, s, now, n, false)
	d.Allowed = d.RetryAfter == 0
	d.Policy = rule
	return d
}

// decide is admit with the whole answer but the policy. It looks for n = 0.
func decide[S any, A algorithm[S]](alg A, s S, now, n int64) (S, Decision) {
	ok := true
	if n > 0 {
		s, ok = alg.admit(s, now, n)
	}
	return s, answer(alg, s, now, n, ok)
}

// answer describes s right after n units were admitted or refused.
func answer[S any, A algorithm[S]](alg A, s S, now, n int64, allowed bool) Decision {
	remaining, retry, reset := alg.measure(s, now, n)
	if allowed {
		retry = 0
	}
	return Decision{
		Allowed:    allowed,
		Limit:      int(alg.limit()),
		Remaining:  int(remaining),
		RetryAfter: time.Duration(retry),
		ResetAfter: time.Duration(reset),
	}
}

// A heldBudget is a budget that can be locked for more than one step.
type heldBudget interface {
	// order is the place among all locks of the process in which this one is
	// taken. Budgets behind one lock have one order.
	order() uint64
	lock()
	unlock()
	// bring returns the latest of now and the readings that the budget has
	// seen, since callers get a lock in another order than their readings. The
	// methods below take what bring returned, under the same lock.
	bring(now int64) int64
	// bookLocked is budget.book, and its settle needs the lock too.
	bookLocked(now, notBefore, n, maxWait int64) (at int64, settle settleFunc, err error)
	// measureLocked is budget.decide without the charge.
	measureLocked(now, n int64) Decision
	// chargeLocked charges what measureLocked has allowed.
	chargeLocked(now, n int64)
}

// bookHeld is bookLocked for callers without the lock.
func bookHeld(h heldBudget, now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	h.lock()
	defer h.unlock()
	at, settle, err := h.bookLocked(h.bring(now), notBefore, n, maxWait)
	if err != nil {
		return 0, nil, err
	}
	return at, func(now, actual int64) {
		h.lock()
		defer h.unlock()
		settle(now, actual)
	}, nil
}

// lockOrder numbers the locks, so that whoever needs several takes them in one
// order and cannot deadlock.
type lockOrder uint64

func (o lockOrder) order() uint64 { return uint64(o) }

var lastLock atomic.Uint64

func nextLockOrder() lockOrder { return lockOrder(lastLock.Add(1)) }
