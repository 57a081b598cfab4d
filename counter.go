package ratelimit

import (
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// A FixedCounter admits limit units in each window. Windows are aligned to the
// Unix epoch: [k·window, (k+1)·window), by the wall clock read once at
// construction and advanced by the monotonic clock from then on.
//
// Bound: in any aligned window at most limit units act; across a boundary,
// within any length of window, at most 2·limit.
//
// Reserve books the first window that has room. Nothing is available before
// the newest booking, so that none is overtaken. Cancel gives back all its
// units unless a later window has been booked, and nothing in that case.
//
// The state is one moment and one count, which roll over together.
//
// The zero FixedCounter refuses everything. A FixedCounter must not be copied.
type FixedCounter struct {
	limiter
	_ noCopy
}

// NewFixedCounter returns a counter that admits limit units in each window.
// Both are checked as by Policy.Validate.
func NewFixedCounter(limit int, window time.Duration, opts ...Option) (*FixedCounter, error) {
	return newFixedCounter(FixedCounterPolicy(limit, window), opts)
}

func newFixedCounter(p Policy, opts []Option) (*FixedCounter, error) {
	l, err := newLimiter(p, opts)
	if err != nil {
		return nil, err
	}
	return &FixedCounter{limiter: l}, nil
}

// fixedState is the units of one window: that of the moment at, the latest at
// which any may act.
type fixedState struct {
	at    int64
	count int64
}

// fixed is the arithmetic of the fixed counter.
type fixed struct {
	max    int64
	window int64
	start  time.Time // of the timeline
	plan   uint64    // tells the windows of this counter from those of another
	phase  int64     // how far start is into its window
}

func newFixed(p Policy, start time.Time) *fixed {
	return &fixed{max: int64(p.Limit()), window: int64(p.Window()), start: start, plan: lastPlan.Add(1), phase: phase(start, p.Window())}
}

// phase returns the time from the last multiple of window since the Unix epoch
// to start, also for a start that does not fit 64 bits of nanoseconds.
func phase(start time.Time, window time.Duration) int64 {
	w := int64(window)
	second := start.Unix() % w
	if second < 0 {
		second += w
	}
	whole := arith.MulMod(uint64(second), uint64(time.Second), uint64(w))
	return int64((whole + uint64(start.Nanosecond())) % uint64(w))
}

func (f *fixed) limit(fixedState) int64 { return f.max }

// begin returns the start of t's window, which for the first is not positive.
func (f *fixed) begin(t int64) int64 {
	// Unsigned: up to two centuries of uptime and one of phase do fit.
	return t - int64((uint64(t)+uint64(f.phase))%uint64(f.window))
}

// next returns the start of the k-th window after t's.
func (f *fixed) next(t int64, k uint64) int64 {
	begin := f.begin(t)
	ahead := arith.Int64(arith.Mul(k, uint64(f.window)))
	if begin < 0 {
		return begin + ahead
	}
	return arith.After(begin, ahead)
}

// roll brings s to to t ≥ s.at: a window that has ended counts no more.
func (f *fixed) roll(s fixedState, t int64) fixedState {
	if s.at < f.begin(t) {
		return fixedState{at: t}
	}
	return fixedState{t, s.count}
}

func (f *fixed) admit(s fixedState, now, n int64) (fixedState, bool) {
	if s.at > now {
		return s, false
	}
	next := f.roll(s, now)
	if next.count > f.max-n {
		return s, false
	}
	next.count += n
	return next, true
}

// place charges n units at the first moment from t on that has room.
func (f *fixed) place(s fixedState, t, n int64) fixedState {
	s = f.roll(s, max(t, s.at))
	if s.count > f.max-n {
		s = fixedState{at: f.next(s.at, 1)}
	}
	s.count += n
	return s
}

func (f *fixed) book(s fixedState, now, notBefore, n, maxWait int64) (fixedState, booking[fixedState], error) {
	next := f.place(s, max(now, notBefore), n)
	done := booking[fixedState]{n: n, at: next.at, plan: f.plan, before: s, after: next}
	if !permitted(next.at, now, maxWait) {
		return s, done, ErrWaitTooLong
	}
	return next, done, nil
}

// permitted reports whether a booking at the moment at is within maxWait.
func permitted(at, now, maxWait int64) bool {
	if maxWait == atOnce {
		return at <= now
	}
	return at != never && at-now <= maxWait
}

func (f *fixed) settle(s fixedState, now int64, b booking[fixedState], actual int64) fixedState {
	switch {
	case actual > b.n:
		return f.indebt(s, now, actual-b.n)
	case b.plan != f.plan:
		return s // what was charged has been counted together with the rest
	case now < b.at && actual == 0 && s == b.after:
		return b.before
	case f.begin(s.at) == f.begin(b.at):
		s.count = max(0, s.count-(b.n-actual))
	}
	return s
}

// indebt charges n units that have been used already, limit by limit, each in
// the first window that has room; none is more than a century away.
func (f *fixed) indebt(s fixedState, now, n int64) fixedState {
	whole := (n - 1) / f.max
	s = f.place(s, now, n-whole*f.max)
	if whole > 0 {
		s = f.place(s, now, f.max)
		most := uint64(century) / uint64(f.window)
		if more := min(uint64(whole-1), most); more > 0 {
			s.at = f.next(s.at, more)
		}
	}
	return s
}

func (f *fixed) measure(s fixedState, now, n int64) (m measurement) {
	if s.at <= now {
		m.remaining = f.max - f.roll(s, now).count
	}
	if at := f.place(s, now, n).at; at > now {
		m.retry = until(at, now)
	}
	if !f.idle(s, now) {
		m.reset = until(s.at, now)
		if s.count > 0 {
			m.reset = until(f.next(s.at, 1), now)
		}
	}
	return m
}

func (f *fixed) idle(s fixedState, now int64) bool {
	return s.at <= now && f.roll(s, now).count == 0
}

func (f *fixed) become(p Policy, _ int64) *fixed {
	next := newFixed(p, f.start)
	if next.window == f.window {
		next.plan = f.plan
	}
	return next
}

// carry charges what the window of now has had to the new window of now.
func (f *fixed) carry(s fixedState, now int64, _ *fixed) fixedState { return f.roll(s, max(now, s.at)) }
