package conformance

import (
	"sync"
	"testing"
	"time"
)

// Clock is a clock that stands still until it is set, also backwards. It is a
// ratelimit.Clock.
type Clock struct {
	start time.Time

	mu     sync.Mutex
	now    time.Time
	alarms []alarm
}

type alarm struct {
	at   time.Time
	ring chan time.Time
}

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock { return &Clock{start: start, now: start} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Elapsed returns the time since the clock was made.
func (c *Clock) Elapsed() time.Duration { return c.Now().Sub(c.start) }

// After returns a channel that rings once the clock is set to d from now or later.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ring := make(chan time.Time, 1)
	if d <= 0 {
		ring <- c.now
		return ring
	}
	c.alarms = append(c.alarms, alarm{c.now.Add(d), ring})
	return ring
}

// Advance sets the clock d ahead, or back, and rings what is due.
func (c *Clock) Advance(d time.Duration) { c.set(c.Now().Add(d), true) }

// Set sets the clock to d after its start and rings what is due.
func (c *Clock) Set(d time.Duration) { c.set(c.start.Add(d), true) }

// AdvanceInSilence sets the clock d ahead and rings nothing.
func (c *Clock) AdvanceInSilence(d time.Duration) { c.set(c.Now().Add(d), false) }

func (c *Clock) set(now time.Time, ring bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	if !ring {
		return
	}
	var later []alarm
	for _, a := range c.alarms {
		if a.at.After(now) {
			later = append(later, a)
		} else {
			a.ring <- now
		}
	}
	c.alarms = later
}

// Alarms returns the number of alarms that have not rung.
func (c *Clock) Alarms() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.alarms)
}

// AwaitAlarms waits until n alarms are set.
func (c *Clock) AwaitAlarms(t testing.TB, n int) {
	t.Helper()
	for end := time.Now().Add(patience); c.Alarms() < n; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("t=%v: got %d sleepers after %v, want %d", c.Elapsed(), c.Alarms(), patience, n)
		}
	}
}

// patience is the real time after which something is taken to hang.
const patience = 10 * time.Second
