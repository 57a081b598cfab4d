package ratelimit

import (
	"slices"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// A SlidingCounter admits about limit units in any window. It counts by cells,
// each the window's length / cells, aligned to the Unix epoch as in a
// FixedCounter, and estimates what is in the window as the units of the cells
// that lie wholly in it, plus those of the oldest cell × the share of it that
// is still inside. n units pass if estimate + n ≤ limit, in exact arithmetic.
//
// Bound: in any interval of length window − window/cells at most limit units
// act; within one window at worst 2·limit, which more cells (WithCells) make
// rarer and shorter.
//
// Reserve books the first moment at which the estimate has room. Nothing is
// available before the newest booking, so that none is overtaken. Cancel of the
// newest booking restores the state before it; any other gives back its units
// unless their cell has been left behind.
//
// The state is one moment and cells+1 counts, which roll over together, and for
// each booking that lies ahead a copy of them.
//
// Source: with one cell, the approximated sliding window that Cloudflare
// described in "How we built rate limiting capable of scaling to millions of
// domains", 2017.
//
// The zero SlidingCounter refuses everything. A SlidingCounter must not be
// copied.
type SlidingCounter struct {
	limiter
	_ noCopy
}

// NewSlidingCounter returns a counter of one cell that admits about limit
// units in any window. Both are checked as by Policy.Validate. For more cells
// use New with SlidingCounterPolicy(limit, window).WithCells(c).
func NewSlidingCounter(limit int, window time.Duration, opts ...Option) (*SlidingCounter, error) {
	return newSlidingCounter(SlidingCounterPolicy(limit, window), opts)
}

func newSlidingCounter(p Policy, opts []Option) (*SlidingCounter, error) {
	l, err := newLimiter(p, opts)
	if err != nil {
		return nil, err
	}
	return &SlidingCounter{limiter: l}, nil
}

// slidingState is the counts of the cell of the moment at, the latest at which
// any unit may act, and of the cells before it.
type slidingState struct {
	at      int64
	cell    uint64  // of at
	charges uint64  // how many were made: it tells which of two states is newer
	counts  []int64 // of the cell k before at's at k; nil is all zero

	// before is the state without the newest booking, while that lies ahead.
	before *slidingState
}

// sliding is the arithmetic of the sliding counter. It measures time within a
// cell in ticks, of which there are cells in a nanosecond and window in a cell,
// so that cells need not be whole nanoseconds.
type sliding struct {
	max    int64
	window int64
	start  time.Time // of the timeline
	plan   uint64    // tells the cells of this counter from those of another
	phase  int64     // how far start is into its window
	cells  uint64
}

func newSliding(p Policy, start time.Time) *sliding {
	return &sliding{
		max: int64(p.Limit()), window: int64(p.Window()),
		start: start, plan: lastPlan.Add(1), phase: phase(start, p.Window()), cells: uint64(p.Cells()),
	}
}

func (c *sliding) limit(slidingState) int64 { return c.max }

// cell returns the index of t's cell, and how many ticks of it have passed.
func (c *sliding) cell(t int64) (index, ticks uint64) {
	t64, w := uint64(t)+uint64(c.phase), uint64(c.window)
	whole, rest := t64/w, t64%w
	if c.cells == 1 {
		return whole, rest
	}
	return whole*c.cells + arith.MulDiv(rest, c.cells, w), arith.MulMod(rest, c.cells, w)
}

// moment returns the first moment at or after that many ticks of a cell.
func (c *sliding) moment(index, ticks uint64) int64 {
	w, in := uint64(c.window), index%c.cells
	whole := arith.Add(arith.Mul(index/c.cells, w), arith.MulDiv(in, w, c.cells))
	part := arith.MulDivUp(1, arith.MulMod(in, w, c.cells)+ticks, c.cells)
	return arith.Int64(arith.Sub(arith.Add(whole, part), uint64(c.phase)))
}

// full returns the units of the cells that lie wholly in the window of a moment
// in cell i, at or after that of s, and of the oldest cell, which lies partly in it.
func (c *sliding) full(s *slidingState, i uint64) (full, oldest int64) {
	ahead := i - s.cell
	if s.counts == nil || ahead > c.cells {
		return 0, 0
	}
	for _, n := range s.counts[:c.cells-ahead] {
		full += n
	}
	return full, s.counts[c.cells-ahead]
}

// room returns the units that fit at a moment of cell i when that many ticks
// of it have passed.
func (c *sliding) room(s *slidingState, i, ticks uint64) int64 {
	full, oldest := c.full(s, i)
	if oldest == 0 {
		return c.max - full
	}
	w := uint64(c.window)
	return c.max - full - int64(arith.MulDivUp(uint64(oldest), w-ticks, w))
}

// add charges n units at t ≥ s.at, which lies in cell i, in place.
func (c *sliding) add(s slidingState, t int64, i uint64, n int64) slidingState {
	if s.counts == nil {
		s.counts = make([]int64, c.cells+1)
	}
	if ahead := i - s.cell; ahead > 0 {
		gone := min(ahead, uint64(len(s.counts)))
		copy(s.counts[gone:], s.counts)
		clear(s.counts[:gone])
	}
	s.counts[0] += n
	s.at, s.cell = t, i
	s.charges++
	s.before = nil
	return s
}

func (c *sliding) admit(s slidingState, now, n int64) (slidingState, bool) {
	if s.at > now {
		return s, false
	}
	i, ticks := c.cell(now)
	if c.room(&s, i, ticks) < n {
		return s, false
	}
	return c.add(s, now, i, n), true
}

// first returns the first moment from t on that has room for n units.
func (c *sliding) first(s *slidingState, t, n int64) int64 {
	t = max(t, s.at)
	i, ticks := c.cell(t)
	if c.room(s, i, ticks) >= n {
		return t
	}
	w := uint64(c.window)
	for ; ; i, ticks = i+1, 0 {
		full, oldest := c.full(s, i)
		// The oldest cell has to shrink to what the others leave.
		left := c.max - n - full
		if left < 0 {
			continue // not in this cell; in the end all have left
		}
		need := uint64(0)
		if oldest > left {
			need = w - arith.MulDiv(uint64(left), w, uint64(oldest))
		}
		if need < w {
			return c.moment(i, max(need, ticks))
		}
	}
}

func (c *sliding) book(s slidingState, now, notBefore, n, maxWait int64) (slidingState, booking[slidingState], error) {
	at := c.first(&s, max(now, notBefore), n)
	done := booking[slidingState]{n: n, at: at, plan: c.plan}
	if !permitted(at, now, maxWait) {
		return s, done, ErrWaitTooLong
	}
	next := s
	if at > now {
		next.counts = slices.Clone(s.counts) // those of s are kept as they are
	}
	i, _ := c.cell(at)
	next = c.add(next, at, i, n)
	if at > now {
		if s.at <= now {
			s.before = nil // due: it cannot be cancelled any more
		}
		next.before = &s
	}
	done.after.charges = next.charges
	return next, done, nil
}

func (c *sliding) settle(s slidingState, now int64, b booking[slidingState], actual int64) slidingState {
	if actual > b.n {
		return c.indebt(s, now, actual-b.n)
	}
	if b.plan != c.plan {
		return s // what was charged has been counted together with the rest
	}
	if now < b.at && actual == 0 && s.before != nil && s.charges == b.after.charges {
		return *s.before
	}
	// Also in the states to which a later cancel would go back.
	of, _ := c.cell(b.at)
	for in := &s; in != nil && in.charges >= b.after.charges; in = in.before {
		if k := in.cell - of; of <= in.cell && k < uint64(len(in.counts)) {
			in.counts[k] = max(0, in.counts[k]-(b.n-actual))
		}
	}
	return s
}

// indebt charges n units that have been used already, limit by limit, each at
// the first moment that has room; none is more than a century away.
func (c *sliding) indebt(s slidingState, now, n int64) slidingState {
	whole := (n - 1) / c.max
	part := n - whole*c.max
	at := c.first(&s, now, part)
	i, _ := c.cell(at)
	s = c.add(s, at, i, part)
	if whole > 0 {
		at = c.first(&s, at, c.max)
		// A cell that has the whole limit leaves nothing until it is gone.
		i, _ = c.cell(at)
		most := uint64(century) / uint64(c.window) * c.cells
		if more := min(arith.Mul(uint64(whole-1), c.cells+1), most); more > 0 {
			i += more
			at = c.moment(i, 0)
		}
		s = c.add(s, at, i, c.max)
	}
	return s
}

func (c *sliding) measure(s slidingState, now, n int64) (m measurement) {
	if s.at <= now {
		i, ticks := c.cell(now)
		m.remaining = c.room(&s, i, ticks)
	}
	if at := c.first(&s, now, n); at > now {
		m.retry = until(at, now)
	}
	if !c.idle(s, now) {
		m.reset = until(max(c.emptied(&s), s.at), now)
	}
	return m
}

// emptied returns the moment at which the newest cell that has units is out of
// the window.
func (c *sliding) emptied(s *slidingState) int64 {
	for k, n := range s.counts {
		if n > 0 {
			return c.moment(s.cell-uint64(k)+c.cells+1, 0)
		}
	}
	return 0
}

func (c *sliding) idle(s slidingState, now int64) bool {
	if s.at > now {
		return false
	}
	i, _ := c.cell(now)
	full, oldest := c.full(&s, i)
	return full == 0 && oldest == 0
}

func (c *sliding) become(p Policy, _ int64) *sliding {
	next := newSliding(p, c.start)
	if next.window == c.window && next.cells == c.cells {
		next.plan = c.plan
	}
	return next
}

// carry keeps the counts where the cells stay the same. Else it charges what
// the window has to one cell, that of now or of the newest booking.
func (c *sliding) carry(s slidingState, now int64, to *sliding) slidingState {
	if c.plan == to.plan {
		s.before = nil
		return s
	}
	at := max(now, s.at)
	i, ticks := c.cell(at)
	units := c.max - c.room(&s, i, ticks)
	j, _ := to.cell(at)
	return to.add(slidingState{at: at, cell: j, charges: s.charges}, at, j, units)
}
