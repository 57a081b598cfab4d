// Package model holds naive reference models of the algorithms, for tests. A
// model keeps every charge and works each answer out anew from the definition
// of its algorithm, in exact arithmetic. Nothing in it is fast, and nothing is
// shared with what it is a model of.
//
// Times are nanoseconds since the construction of the budget and never go back.
package model

import (
	"math"
	"math/big"
)

// Never is the wait that does not end and the moment that does not come.
const Never = math.MaxInt64

// AtOnce as a maxWait books exactly what Allow admits.
const AtOnce = math.MinInt64

// A Reason says why units were not booked.
type Reason uint8

// The reasons, in the order in which one hides another.
const (
	Booked Reason = iota
	ExceedsLimit
	QueueFull
	TooLong
)

func (r Reason) String() string {
	return [...]string{"booked", "exceeds limit", "queue full", "too long"}[r]
}

// An Answer is a decision.
type Answer struct {
	Allowed                           bool
	Remaining, RetryAfter, ResetAfter int64
}

// A Charge is n units that act at the moment At.
type Charge struct {
	At   int64
	n    int64
	cell int64 // of a counter

	used bool  // Cancel has been called in time
	back bool  // the units were given back
	prev state // of the budget before the charge
}

// state is what cancelling the newest charge restores.
type state struct {
	amount *big.Rat // of a bucket at the moment last
	last   int64
	latest int64 // of a window: the latest moment at which units act
}

// A Model is one budget.
type Model struct {
	limit int64
	rules rules
}

// rules are what the algorithms differ in; n is from 1 to limit.
type rules interface {
	// fits reports whether n units pass at now.
	fits(now, n int64) bool
	// moment returns when n units booked at now may act. It reports full where
	// they may not even wait.
	moment(now, n int64) (at int64, full bool)
	// charge records n units that act at the moment at.
	charge(now, at, n int64) *Charge
	// cancel takes back a charge whose moment is after now.
	cancel(c *Charge)
	// remaining is the most units that pass at now.
	remaining(now int64) int64
	// passes returns the first moment at which n units pass.
	passes(now, n int64) int64
	// renewed returns the first moment at which the budget is as good as new.
	renewed(now int64) int64
}

// Allow charges n units at now, or refuses.
func (m *Model) Allow(now, n int64) bool { return m.Decide(now, n).Allowed }

// Look is Decide without the charge.
func (m *Model) Look(now, n int64) Answer {
	a := Answer{Remaining: m.rules.remaining(now), ResetAfter: wait(now, m.rules.renewed(now))}
	switch {
	case n < 0 || n > m.limit:
		a.RetryAfter = Never
	case n == 0 || m.rules.fits(now, n):
		a.Allowed = true
	default:
		a.RetryAfter = wait(now, m.rules.passes(now, n))
	}
	return a
}

// Decide charges n units at now, or refuses; the answer is about the time right
// after that.
func (m *Model) Decide(now, n int64) Answer {
	a := m.Look(now, n)
	if a.Allowed && n > 0 {
		m.rules.charge(now, now, n)
		after := m.Look(now, 0)
		a.Remaining, a.ResetAfter = after.Remaining, after.ResetAfter
	}
	return a
}

// Reserve books n units for the first moment that has room, at most maxWait
// after now.
func (m *Model) Reserve(now, n, maxWait int64) (*Charge, Reason) {
	at, why := m.find(now, n, maxWait)
	switch {
	case why != Booked:
		return nil, why
	case n == 0:
		return &Charge{At: now}, Booked
	}
	return m.Book(now, at, n), Booked
}

// Moment returns when from 1 to limit units may act if they are booked at now,
// and whether there is no room for them to wait.
func (m *Model) Moment(now, n int64) (at int64, full bool) { return m.rules.moment(now, n) }

// Book charges n units for the moment at, wherever it comes from.
func (m *Model) Book(now, at, n int64) *Charge { return m.rules.charge(now, at, n) }

func (m *Model) find(now, n, maxWait int64) (int64, Reason) {
	switch {
	case n < 0 || n > m.limit:
		return 0, ExceedsLimit
	case n == 0:
		return now, Booked
	case maxWait == AtOnce && m.rules.fits(now, n):
		return now, Booked
	case maxWait == AtOnce:
		return 0, TooLong
	}
	at, full := m.rules.moment(now, n)
	switch {
	case full:
		return at, QueueFull
	case at == Never || at-now > maxWait:
		return at, TooLong
	}
	return at, Booked
}

// Take is Reserve with the whole answer, whose RetryAfter is the least wait
// after which the same Take succeeds.
func (m *Model) Take(now, n, maxWait int64) (Answer, *Charge, Reason) {
	c, why := m.Reserve(now, n, maxWait)
	a := m.Look(now, 0)
	a.Allowed = why == Booked
	switch {
	case why == ExceedsLimit:
		a.RetryAfter = Never
	case why != Booked:
		a.RetryAfter = Never
		succeeds := func(t int64) bool { _, why := m.find(t, n, maxWait); return why == Booked }
		// A budget as good as new has as much room as there ever will be.
		if end := m.rules.renewed(now); end != Never && succeeds(end) {
			a.RetryAfter = least(now, end, succeeds) - now
		}
	}
	return a, c, why
}

// Cancel gives back what a booking took. It does nothing once its moment has
// come, and nothing a second time.
func (m *Model) Cancel(now int64, c *Charge) {
	if c == nil || c.n == 0 || c.used || now >= c.At {
		return
	}
	c.used = true
	m.rules.cancel(c)
}

// wait returns the time from now until at ≥ now.
func wait(now, at int64) int64 {
	if at == Never {
		return Never
	}
	return at - now
}

// least returns the first t in [from, to] of which ok holds, where it holds of
// to and of everything after such a t.
func least(from, to int64, ok func(t int64) bool) int64 {
	for from < to {
		if mid := from + (to-from)/2; ok(mid) {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return to
}

// newest reports whether c is at the end of list, and returns the list without
// it.
func newest(list []*Charge, c *Charge) ([]*Charge, bool) {
	if last := len(list) - 1; last >= 0 && list[last] == c {
		return list[:last], true
	}
	return list, false
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// floor returns ⌊x⌋ of an x ≥ 0 that fits.
func floor(x *big.Rat) int64 { return new(big.Int).Div(x.Num(), x.Denom()).Int64() }

// ceil returns ⌈x⌉ of an x ≥ 0, or Never.
func ceil(x *big.Rat) int64 {
	up := new(big.Int).Add(x.Num(), new(big.Int).Sub(x.Denom(), big.NewInt(1)))
	if up.Div(up, x.Denom()); !up.IsInt64() {
		return Never
	}
	return up.Int64()
}

// later returns t + d, or Never when that does not fit.
func later(t, d int64) int64 {
	if d > Never-t {
		return Never
	}
	return t + d
}
