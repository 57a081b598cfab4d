package ratelimit

import (
	"slices"
	"sort"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// A SlidingLog admits exactly limit units in any window. It remembers when
// each unit was admitted, and a unit aged exactly window has left.
//
// Bound: in any window (t−window, t] at most limit units act.
//
// Memory follows what is in the window: 16 bytes for each distinct moment at
// which something was admitted, never what was refused. The costs of a call
// are constant, amortized; a RetryAfter takes a binary search.
//
// Reserve books the first moment that has room. Nothing is available before
// the newest booking, so that none is overtaken. Cancel always gives back all
// its units.
//
// Source: none is needed; the log is the definition of "limit per window".
//
// The zero SlidingLog refuses everything. A SlidingLog must not be copied.
type SlidingLog struct {
	limiter
	_ noCopy
}

// NewSlidingLog returns an empty log that admits limit units in any window.
// Both are checked as by Policy.Validate.
func NewSlidingLog(limit int, window time.Duration, opts ...Option) (*SlidingLog, error) {
	return newSlidingLog(SlidingLogPolicy(limit, window), opts)
}

func newSlidingLog(p Policy, opts []Option) (*SlidingLog, error) {
	l, err := newLimiter(p, opts)
	if err != nil {
		return nil, err
	}
	return &SlidingLog{limiter: l}, nil
}

// logSlot is one moment at which units act.
type logSlot struct {
	at    int64
	total int64 // units of this slot and all before it, since the log was last empty
}

// logState is the log, oldest slot first. slots[:gone] have left the window.
// Invariant: at rises strictly, and of a slot in slots[:gone] only the total
// counts. A total may wrap around: only the difference of two is used, and in
// a window that is at most the limit.
type logState struct {
	slots []logSlot
	gone  int
}

// log is the arithmetic of the sliding log.
type log struct {
	max    int64
	window int64
}

func newLog(p Policy) *log { return &log{max: int64(p.Limit()), window: int64(p.Window())} }

func (l *log) limit(logState) int64 { return l.max }

// latest returns the moment before which nothing is available.
func (s *logState) latest() int64 {
	if s.gone == len(s.slots) {
		return 0
	}
	return s.slots[len(s.slots)-1].at
}

// before returns the units of the slots before slot i.
func (s *logState) before(i int) int64 {
	if i == 0 {
		return 0
	}
	return s.slots[i-1].total
}

// units returns the units of slots[i:].
func (s *logState) units(i int) int64 { return s.before(len(s.slots)) - s.before(i) }

// first returns the first slot that is still in the window at t.
func (l *log) first(s *logState, t int64) int {
	rest := s.slots[s.gone:]
	if len(rest) == 0 || t-rest[0].at < l.window {
		return s.gone
	}
	return s.gone + sort.Search(len(rest), func(i int) bool { return t-rest[i].at < l.window })
}

// trim forgets what has left the window at now.
func (l *log) trim(s logState, now int64) logState {
	s.gone = l.first(&s, now)
	live := len(s.slots) - s.gone
	switch {
	case live == 0:
		if cap(s.slots) > 16 {
			return logState{}
		}
		return logState{slots: s.slots[:0]}
	case s.gone <= live:
		return s
	}
	// More is gone than lives: move what lives, which those that left have paid for.
	base := s.before(s.gone)
	kept := s.slots[:0]
	if cap(s.slots) > 16 && live < cap(s.slots)/4 {
		kept = make([]logSlot, 0, 2*live)
	}
	for _, slot := range s.slots[s.gone:] {
		kept = append(kept, logSlot{slot.at, slot.total - base})
	}
	return logState{slots: kept}
}

// add charges n units at a moment at or after the latest.
func (s logState) add(at, n int64) logState {
	if last := len(s.slots) - 1; last >= s.gone && s.slots[last].at == at {
		s.slots[last].total += n
		return s
	}
	s.slots = append(s.slots, logSlot{at, s.before(len(s.slots)) + n})
	return s
}

func (l *log) admit(s logState, now, n int64) (logState, bool) {
	s = l.trim(s, now)
	if s.latest() > now || s.units(s.gone) > l.max-n {
		return s, false
	}
	return s.add(now, n), true
}

// moment returns the first moment from t on that has room for n units.
func (l *log) moment(s *logState, t, n int64) int64 {
	t = max(t, s.latest())
	i := l.first(s, t)
	if s.units(i) <= l.max-n {
		return t
	}
	// The slot whose leaving makes the room.
	i += sort.Search(len(s.slots)-i, func(j int) bool { return s.units(i+j+1) <= l.max-n })
	return arith.After(s.slots[i].at, l.window)
}

func (l *log) book(s logState, now, notBefore, n, maxWait int64) (logState, booking[logState], error) {
	s = l.trim(s, now)
	done := booking[logState]{n: n, at: l.moment(&s, max(now, notBefore), n)}
	if !permitted(done.at, now, maxWait) {
		return s, done, ErrWaitTooLong
	}
	return s.add(done.at, n), done, nil
}

func (l *log) settle(s logState, now int64, b booking[logState], actual int64) logState {
	s = l.trim(s, now)
	if actual > b.n {
		return l.indebt(s, now, actual-b.n)
	}
	i := s.gone + sort.Search(len(s.slots)-s.gone, func(i int) bool { return s.slots[s.gone+i].at >= b.at })
	if i == len(s.slots) || s.slots[i].at != b.at {
		return s
	}
	back := min(b.n-actual, s.slots[i].total-s.before(i))
	for j := range s.slots[i:] {
		s.slots[i+j].total -= back
	}
	if s.slots[i].total == s.before(i) {
		s.slots = slices.Delete(s.slots, i, i+1)
	}
	return s
}

// indebt charges n units that have been used already, limit by limit, each at
// the first moment that has room. Of many such moments only the last counts;
// none is more than a century away.
func (l *log) indebt(s logState, now, n int64) logState {
	whole := (n - 1) / l.max
	at := l.moment(&s, now, n-whole*l.max)
	s = s.add(at, n-whole*l.max)
	if whole > 0 {
		at = l.moment(&s, at, l.max)
		more := arith.Int64(arith.Mul(uint64(whole-1), uint64(l.window)))
		s = s.add(arith.After(at, min(more, int64(century))), l.max)
	}
	return s
}

func (l *log) measure(s logState, now, n int64) (m measurement) {
	if latest := s.latest(); latest <= now {
		m.remaining = l.max - s.units(l.first(&s, now))
	}
	if at := l.moment(&s, now, n); at > now {
		m.retry = until(at, now)
	}
	if i := l.first(&s, now); i < len(s.slots) {
		m.reset = until(arith.After(s.latest(), l.window), now)
	}
	return m
}

func (l *log) idle(s logState, now int64) bool { return l.first(&s, now) == len(s.slots) }

func (l *log) become(p Policy, _ int64) *log { return newLog(p) }

// carry keeps what is in the old window at now.
func (l *log) carry(s logState, now int64, _ *log) logState { return l.trim(s, now) }
