package ratelimit

// A cell is one policy and what it remembers of one budget, whatever its
// algorithm. Whoever uses it holds the lock that guards it.
type cell interface {
	limit() int64
	look(now, n int64) Decision
	charge(now, n int64) bool
	// book is algorithm.book. least is booking.least, and part is for settle, of
	// this cell or of a new one for the same budget.
	book(now, notBefore, n, maxWait int64) (at, least int64, part any, err error)
	settle(now int64, part any, actual int64)
	idle(now int64) bool
	// anew returns a cell of the same policy that has never been used.
	anew() cell
	// change puts p in force, and follow the policy of a cell that was changed.
	change(p Policy, now int64)
	follow(changed cell, now int64)
}

// cellOf is a cell of one algorithm.
type cellOf[S any, A algorithm[S]] struct {
	rule  Policy
	alg   A
	end   int64 // when alg has to be renewed
	state S
}

func newCell[S any, A algorithm[S]](alg A, p Policy) cellOf[S, A] {
	return cellOf[S, A]{rule: p, alg: alg, end: end[S](alg)}
}

// cellFor returns a cell of a valid policy on a timeline.
func cellFor(p Policy, t timeline) cell {
	switch p.Algorithm() {
	case AlgorithmTokenBucket, AlgorithmLeakyBucket:
		c := newCell[bucketState](newBucket(p), p)
		return &c
	case AlgorithmSlidingLog:
		c := newCell[logState](newLog(p), p)
		return &c
	case AlgorithmFixedCounter:
		c := newCell[fixedState](newFixed(p, t.start), p)
		return &c
	case AlgorithmSlidingCounter:
		c := newCell[slidingState](newSliding(p, t.start), p)
		return &c
	}
	c := newCell[struct{}](open{int64(p.Limit())}, p)
	return &c
}

func (c *cellOf[S, A]) limit() int64 { return c.alg.limit(c.state) }

// renew renews the algorithm when it is due.
func (c *cellOf[S, A]) renew(now int64) {
	if now > c.end {
		if old, ok := any(c.alg).(renewer[S, A]); ok {
			c.use(old, old.renew(now), now)
		}
	}
}

func (c *cellOf[S, A]) use(old changeable[S, A], to A, now int64) {
	c.state = old.carry(c.state, now, to)
	c.alg, c.end = to, end[S](to)
}

func (c *cellOf[S, A]) look(now, n int64) Decision {
	c.renew(now)
	return look(c.alg, c.state, now, n, c.rule)
}

func (c *cellOf[S, A]) charge(now, n int64) (ok bool) {
	c.renew(now)
	c.state, ok = admit(c.alg, c.state, now, n)
	return ok
}

func (c *cellOf[S, A]) book(now, notBefore, n, maxWait int64) (at, least int64, part any, err error) {
	c.renew(now)
	next, booked, err := book(c.alg, c.state, now, notBefore, n, maxWait)
	c.state = next
	return booked.at, booked.least, booked, err
}

// settle ignores the part of a cell of another algorithm: the key has got
// another policy since.
func (c *cellOf[S, A]) settle(now int64, part any, actual int64) {
	c.renew(now)
	if booked, ok := part.(booking[S]); ok {
		c.state = c.alg.settle(c.state, now, booked, actual)
	}
}

func (c *cellOf[S, A]) idle(now int64) bool {
	c.renew(now)
	return c.alg.idle(c.state, now)
}

func (c *cellOf[S, A]) anew() cell {
	fresh := *c
	var zero S
	fresh.state = zero
	return &fresh
}

func (c *cellOf[S, A]) change(p Policy, now int64) {
	c.renew(now)
	c.rule = p
	if old, ok := any(c.alg).(changeable[S, A]); ok {
		c.use(old, old.become(p, now), now)
	}
}

func (c *cellOf[S, A]) follow(changed cell, now int64) {
	to, ok := changed.(*cellOf[S, A])
	if !ok {
		return
	}
	c.renew(now)
	c.rule = to.rule
	if old, ok := any(c.alg).(changeable[S, A]); ok {
		c.use(old, to.alg, now)
	}
}
