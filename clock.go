package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// A Clock tells the time and wakes sleepers. *clock.Mock and clock.New() of
// github.com/benbjohnson/clock satisfy it. It must be safe for concurrent use.
//
// A clock that goes backwards stands still, for the limiter, at its highest
// reading until it catches up: no credit, no refusal for longer than that.
// One step forwards is credited with at most 100 years.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// SystemClock returns the default clock: the runtime's monotonic clock, which
// inside a testing/synctest bubble is the bubble's.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// century bounds windows, the time a bucket takes to fill, and the credit for
// one step of an injected clock.
const century = 100 * 365.25 * 24 * time.Hour

// timeline turns a clock's readings into nanoseconds since the limiter's
// start, the only notion of time that the algorithms know. It never runs
// backwards.
type timeline struct {
	start  time.Time
	steady *steadyClock // nil for the clocks that are steady by themselves
	coarse *CoarseClock // nil for all others
	begun  int64        // start, by the coarse clock
}

func newTimeline(c Clock) timeline {
	switch c := c.(type) {
	case nil, systemClock:
		return timeline{start: time.Now()}
	case *CoarseClock:
		if c == nil || c.start.IsZero() {
			return timeline{start: time.Now()}
		}
		begun := c.sinceStart()
		return timeline{start: c.start.Add(time.Duration(begun)), coarse: c, begun: begun}
	}
	start := c.Now()
	return timeline{start: start, steady: &steadyClock{clock: c, highest: start}}
}

// now is the one clock reading of a decision.
func (t *timeline) now() int64 {
	switch {
	case t.steady != nil:
		return t.steady.now()
	case t.coarse != nil:
		return t.coarse.sinceStart() - t.begun
	}
	return int64(time.Since(t.start))
}

// system reports whether the system clock is read at every call.
func (t *timeline) system() bool { return t.steady == nil && t.coarse == nil }

// at places a moment of the clock on the timeline.
func (t *timeline) at(moment time.Time) int64 {
	if t.steady == nil {
		return int64(moment.Sub(t.start))
	}
	return t.steady.at(moment)
}

// sleep returns nil at the moment at, or ctx's error when ctx ends before.
// It holds no lock and leaves no goroutine behind, and on the system clock no
// timer.
func (t *timeline) sleep(ctx context.Context, at int64) error {
	for moved := 0; ; {
		left := at - t.now()
		if left <= 0 {
			return nil
		}
		wake, stop := t.after(time.Duration(left))
		if t.steady != nil && at-t.now() < left && moved < 3 {
			// The clock moved before the alarm was set, which would ring too
			// late. A clock that always moves is not a mock: a little late is fine.
			moved++
			continue
		}
		select {
		case <-wake:
			moved = 0
		case <-ctx.Done():
			stop()
			return ctx.Err()
		}
	}
}

func (t *timeline) after(d time.Duration) (<-chan time.Time, func()) {
	if t.steady != nil {
		return t.steady.clock.After(d), func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

// steadyClock wraps an injected clock so that it never goes backwards and
// never overflows.
type steadyClock struct {
	clock Clock

	mu      sync.Mutex
	highest time.Time // the highest reading so far
	elapsed int64     // nanoseconds credited up to it
}

func (s *steadyClock) now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Read under the lock: readings arrive in the order in which they were made.
	reading := s.clock.Now()
	if step := reading.Sub(s.highest); step > 0 {
		s.highest = reading
		s.elapsed = arith.After(s.elapsed, int64(min(step, century)))
	}
	return s.elapsed
}

func (s *steadyClock) at(moment time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ahead := int64(moment.Sub(s.highest))
	if ahead < 0 {
		return s.elapsed + ahead
	}
	return arith.After(s.elapsed, ahead)
}
