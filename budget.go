package ratelimit

import (
	"sync"
	"sync/atomic"
)

// guarded is a budget of any algorithm under a mutex.
type guarded[S any, A algorithm[S]] struct {
	lockOrder
	firm

	mu   sync.Mutex
	cell cellOf[S, A]
	now  int64 // the latest reading; see heldBudget.bring
}

func newGuarded[S any, A algorithm[S]](alg A, p Policy) *guarded[S, A] {
	return &guarded[S, A]{cell: newCell[S](alg, p), lockOrder: nextLockOrder()}
}

func (g *guarded[S, A]) policy() Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cell.rule
}

func (g *guarded[S, A]) setPolicy(now int64, p Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cell.change(p, g.bring(now))
}

func (g *guarded[S, A]) allow(now, n int64) bool {
	g.mu.Lock()
	ok := g.cell.charge(g.bring(now), n)
	g.mu.Unlock()
	return ok
}

func (g *guarded[S, A]) decide(now, n int64) (d Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &g.cell
	c.state, d = decide(c.alg, c.state, g.bring(now), n, c.rule)
	return d
}

func (g *guarded[S, A]) book(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	return bookHeld(g, now, notBefore, n, maxWait)
}

func (g *guarded[S, A]) held() heldBudget { return g }

func (g *guarded[S, A]) same(h heldBudget) bool { return h == heldBudget(g) }

func (g *guarded[S, A]) lock()   { g.mu.Lock() }
func (g *guarded[S, A]) unlock() { g.mu.Unlock() }

func (g *guarded[S, A]) bring(now int64) int64 {
	g.now = max(g.now, now)
	return g.now
}

func (g *guarded[S, A]) bookLocked(now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	at, _, part, err := g.cell.book(now, notBefore, n, maxWait)
	return at, func(now, actual int64) { g.cell.settle(g.bring(now), part, actual) }, err
}

func (g *guarded[S, A]) measureLocked(now, n int64) Decision { return g.cell.look(now, n) }

func (g *guarded[S, A]) limitLocked() int64 { return g.cell.limit() }

func (g *guarded[S, A]) chargeLocked(now, n int64) { g.cell.charge(now, n) }

// A heldBudget is a budget that can be locked for more than one step.
type heldBudget interface {
	// order is the place among all locks of the process in which this one is
	// taken. Budgets behind one lock have one order.
	order() uint64
	// same reports whether h is the same budget.
	same(h heldBudget) bool
	lock()
	unlock()
	// bring returns the latest of now and the readings that the budget has
	// seen, since callers get a lock in another order than their readings. The
	// methods below take what bring returned, under the same lock.
	bring(now int64) int64
	// limitLocked is the most units that can pass at once.
	limitLocked() int64
	// bookLocked is budget.book, and its settle needs the lock too.
	bookLocked(now, notBefore, n, maxWait int64) (at int64, settle settleFunc, err error)
	// measureLocked is budget.decide without the charge.
	measureLocked(now, n int64) Decision
	// chargeLocked charges what measureLocked has allowed.
	chargeLocked(now, n int64)
	// certain reports whether that always holds. Else All charges by bookLocked,
	// and calls charged when it has.
	certain() bool
	charged(n int64)
}

// firm is the part of most held budgets that is certain and counts nothing.
type firm struct{}

func (firm) certain() bool { return true }
func (firm) charged(int64) {}

// bookHeld is bookLocked for callers without the lock.
func bookHeld(h heldBudget, now, notBefore, n, maxWait int64) (int64, settleFunc, error) {
	h.lock()
	defer h.unlock()
	at, settle, err := h.bookLocked(h.bring(now), notBefore, n, maxWait)
	return at, func(now, actual int64) {
		h.lock()
		defer h.unlock()
		settle(now, actual)
	}, err
}

// lockOrder numbers the locks, so that whoever needs several takes them in one
// order and cannot deadlock.
type lockOrder uint64

func (o lockOrder) order() uint64 { return uint64(o) }

var lastLock atomic.Uint64

func nextLockOrder() lockOrder { return lockOrder(lastLock.Add(1)) }
