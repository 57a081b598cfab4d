package model

import (
	"math/big"
	"slices"
)

// list is all charges ever made. Those that were given back stay in it, so that
// the order is known, and count no more.
type list struct {
	limit   int64
	charges []*Charge
}

func (l *list) sum(counts func(c *Charge) bool) (units int64) {
	for _, c := range l.charges {
		if !c.back && counts(c) {
			units += c.n
		}
	}
	return units
}

// sliding log

type logbook struct {
	list
	window int64
}

// NewSlidingLog returns a log that admits limit units in any window.
func NewSlidingLog(limit, window int64) *Model {
	return &Model{limit, &logbook{list{limit: limit}, window}}
}

// within returns the units in (t−window, t] and those that lie beyond t.
func (l *logbook) within(t int64) int64 {
	return l.sum(func(c *Charge) bool { return t-c.At < l.window })
}

// latest returns the latest moment at which units act.
func (l *logbook) latest() (at int64) {
	for _, c := range l.charges {
		if !c.back {
			at = max(at, c.At)
		}
	}
	return at
}

func (l *logbook) fits(now, n int64) bool {
	return l.latest() <= now && l.within(now)+n <= l.limit
}

// passes looks at the moments at which something leaves the window.
func (l *logbook) passes(now, n int64) int64 {
	moments := []int64{max(now, l.latest())}
	for _, c := range l.charges {
		if left := c.At + l.window; !c.back && left > moments[0] {
			moments = append(moments, left)
		}
	}
	slices.Sort(moments)
	for _, t := range moments {
		if l.fits(t, n) {
			return t
		}
	}
	return Never
}

func (l *logbook) moment(now, n int64) (int64, bool) { return l.passes(now, n), false }

func (l *logbook) renewed(now int64) int64 {
	if l.within(now) == 0 {
		return now
	}
	return l.latest() + l.window
}

func (l *logbook) remaining(now int64) int64 {
	if l.latest() > now {
		return 0
	}
	return l.limit - l.within(now)
}

func (l *logbook) charge(_, at, n int64) *Charge {
	c := &Charge{At: at, n: n}
	l.charges = append(l.charges, c)
	return c
}

func (l *logbook) cancel(c *Charge) { c.back = true }

// counters

// counter is a fixed counter (cells is 0) or a sliding counter. Nothing is
// available before latest.
type counter struct {
	list
	window int64
	cells  int64
	start  *big.Int // the construction, from an earlier start of a window
	latest int64
}

// NewFixedCounter returns a counter of windows that are aligned to the Unix
// epoch, constructed start nanoseconds after it.
func NewFixedCounter(limit, window int64, start *big.Int) *Model {
	return &Model{limit, &counter{list: list{limit: limit}, window: window, start: phase(start, window)}}
}

// NewSlidingCounter returns a counter that estimates from cells.
func NewSlidingCounter(limit, window, cells int64, start *big.Int) *Model {
	return &Model{limit, &counter{list: list{limit: limit}, window: window, cells: cells, start: phase(start, window)}}
}

// phase brings start to the window that contains it: all windows are alike.
func phase(start *big.Int, window int64) *big.Int {
	return new(big.Int).Mod(start, big.NewInt(window)) // not negative
}

// position returns the time from that start of a window to t in cells, or in windows.
func (k *counter) position(t int64) *big.Rat {
	ticks := new(big.Int).Add(k.start, big.NewInt(t))
	return new(big.Rat).SetFrac(ticks.Mul(ticks, big.NewInt(max(1, k.cells))), big.NewInt(k.window))
}

// cell returns the index of t's cell, or window.
func (k *counter) cell(t int64) int64 {
	at := k.position(t)
	return new(big.Int).Div(at.Num(), at.Denom()).Int64() // Div rounds down: the denominator is positive
}

// estimate is what counts at t ≥ latest.
func (k *counter) estimate(t int64) *big.Rat {
	i := k.cell(t)
	full := whole(k.sum(func(c *Charge) bool { return c.cell == i || i-k.cells < c.cell && c.cell < i }))
	if k.cells == 0 {
		return full
	}
	oldest := whole(k.sum(func(c *Charge) bool { return c.cell == i-k.cells }))
	share := new(big.Rat).Sub(whole(i+1), k.position(t))
	return full.Add(full, oldest.Mul(oldest, share))
}

func (k *counter) fits(now, n int64) bool {
	return k.latest <= now && new(big.Rat).Add(k.estimate(now), whole(n)).Cmp(whole(k.limit)) <= 0
}

// passes searches: with time alone an estimate only falls, and two windows
// after the latest charge it is 0.
func (k *counter) passes(now, n int64) int64 {
	from := max(now, k.latest)
	return least(from, from+2*k.window, func(t int64) bool { return k.fits(t, n) })
}

func (k *counter) moment(now, n int64) (int64, bool) { return k.passes(now, n), false }

// renewed: a cell that is partly inside has units in it until its very end, so
// that the budget is as good as new when the estimate is 0.
func (k *counter) renewed(now int64) int64 {
	from := max(now, k.latest)
	return least(from, from+2*k.window, func(t int64) bool { return k.estimate(t).Sign() == 0 })
}

func (k *counter) remaining(now int64) int64 {
	if k.latest > now {
		return 0
	}
	return floor(new(big.Rat).Sub(whole(k.limit), k.estimate(now)))
}

func (k *counter) charge(_, at, n int64) *Charge {
	c := &Charge{At: at, n: n, cell: k.cell(at), prev: state{latest: k.latest}}
	k.charges, k.latest = append(k.charges, c), at
	return c
}

// cancel restores the state before the newest. Of another the units are given
// back, in a fixed counter only those of its latest window, but the latest
// moment stays.
//
// A fixed counter, whose bookings of a window share one moment, also forgets
// those that were given back before: behind them c is the newest.
func (k *counter) cancel(c *Charge) {
	if k.cells == 0 {
		for last := len(k.charges) - 1; last >= 0 && k.charges[last].back; last-- {
			k.charges = k.charges[:last]
		}
	}
	if rest, ok := newest(k.charges, c); ok {
		k.charges, k.latest = rest, c.prev.latest
		return
	}
	c.back = k.cells > 0 || k.cell(k.latest) == c.cell
}
