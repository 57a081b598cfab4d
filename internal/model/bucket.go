package model

import "math/big"

// Rate returns units per nanosecond, from the decimal text of the units.
func Rate(units string, nanoseconds int64) *big.Rat {
	r, ok := new(big.Rat).SetString(units)
	if !ok {
		panic("model: not a decimal: " + units)
	}
	return r.Quo(r, whole(nanoseconds))
}

// tokens is a token bucket: a balance at a moment, below zero while a booking
// lies in the future.
type tokens struct {
	burst   int64
	rate    *big.Rat // per nanosecond; per step where step > 0
	step    int64    // interval refill: the time between two steps
	balance *big.Rat
	last    int64
	charges []*Charge
}

// NewTokenBucket returns a bucket that holds initial of burst tokens and gains
// rate tokens per nanosecond.
func NewTokenBucket(rate *big.Rat, burst, initial int64) *Model {
	return &Model{burst, &tokens{burst: burst, rate: rate, balance: whole(initial)}}
}

// NewIntervalBucket returns a bucket that gains each tokens at every multiple
// of step.
func NewIntervalBucket(each, step, burst, initial int64) *Model {
	return &Model{burst, &tokens{burst: burst, rate: whole(each), step: step, balance: whole(initial)}}
}

// steps counts the refills from the construction to t.
func (b *tokens) steps(t int64) int64 {
	if b.step == 0 {
		return t
	}
	return t / b.step
}

func (b *tokens) at(now int64) *big.Rat {
	gained := new(big.Rat).Mul(b.rate, whole(b.steps(now)-b.steps(b.last)))
	if gained.Add(gained, b.balance); gained.Cmp(whole(b.burst)) > 0 {
		return whole(b.burst)
	}
	return gained
}

func (b *tokens) fits(now, n int64) bool { return b.at(now).Cmp(whole(n)) >= 0 }

// passes returns the first moment at which the balance is n or more.
func (b *tokens) passes(now, n int64) int64 {
	missing := new(big.Rat).Sub(whole(n), b.at(now))
	if missing.Sign() <= 0 {
		return now
	}
	steps := later(b.steps(now), ceil(missing.Quo(missing, b.rate)))
	if b.step == 0 {
		return steps
	}
	return ceil(new(big.Rat).Mul(whole(steps), whole(b.step)))
}

func (b *tokens) moment(now, n int64) (int64, bool) { return b.passes(now, n), false }

func (b *tokens) renewed(now int64) int64 { return b.passes(now, b.burst) }

func (b *tokens) remaining(now int64) int64 {
	if left := b.at(now); left.Sign() > 0 {
		return floor(left)
	}
	return 0
}

func (b *tokens) charge(now, at, n int64) *Charge {
	c := &Charge{At: at, n: n, prev: state{amount: b.balance, last: b.last}}
	b.balance, b.last = new(big.Rat).Sub(b.at(now), whole(n)), now
	b.charges = append(b.charges, c)
	return c
}

// cancel: those behind a booking keep their moments, so that only the newest
// gives anything back.
func (b *tokens) cancel(c *Charge) {
	if rest, ok := newest(b.charges, c); ok {
		b.charges, b.balance, b.last = rest, c.prev.amount, c.prev.last
	}
}

// water is a leaky bucket: a level at a moment.
type water struct {
	capacity  int64
	rate      *big.Rat
	immediate bool
	level     *big.Rat
	last      int64
	charges   []*Charge
}

// NewLeakyBucket returns an empty bucket that drains rate units per nanosecond.
// A booking is due when it has drained, or with immediateFirst when the last of
// its units starts to.
func NewLeakyBucket(rate *big.Rat, capacity int64, immediateFirst bool) *Model {
	return &Model{capacity, &water{capacity: capacity, rate: rate, immediate: immediateFirst, level: new(big.Rat)}}
}

func (b *water) at(now int64) *big.Rat {
	level := new(big.Rat).Mul(b.rate, whole(now-b.last))
	if level.Sub(b.level, level); level.Sign() < 0 {
		return new(big.Rat)
	}
	return level
}

func (b *water) fits(now, n int64) bool {
	return new(big.Rat).Add(b.at(now), whole(n)).Cmp(whole(b.capacity)) <= 0
}

// drained returns the first moment at which units have drained from now on.
func (b *water) drained(now int64, units *big.Rat) int64 {
	if units.Sign() <= 0 {
		return now
	}
	return later(now, ceil(new(big.Rat).Quo(units, b.rate)))
}

func (b *water) passes(now, n int64) int64 {
	return b.drained(now, new(big.Rat).Add(b.at(now), whole(n-b.capacity)))
}

func (b *water) moment(now, n int64) (int64, bool) {
	ahead := new(big.Rat).Add(b.at(now), whole(n))
	if b.immediate {
		ahead.Sub(ahead, whole(1))
	}
	return b.drained(now, ahead), !b.fits(now, n)
}

func (b *water) renewed(now int64) int64 { return b.drained(now, b.at(now)) }

func (b *water) remaining(now int64) int64 {
	return floor(new(big.Rat).Sub(whole(b.capacity), b.at(now)))
}

func (b *water) charge(now, at, n int64) *Charge {
	c := &Charge{At: at, n: n, prev: state{amount: b.level, last: b.last}}
	b.level, b.last = new(big.Rat).Add(b.at(now), whole(n)), now
	b.charges = append(b.charges, c)
	return c
}

func (b *water) cancel(c *Charge) {
	if rest, ok := newest(b.charges, c); ok {
		b.charges, b.level, b.last = rest, c.prev.amount, c.prev.last
	}
}
