package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// A CoarseClock caches the system clock: a goroutine reads it once every
// resolution, and to ask it costs a memory load. It is for limiters so hot that
// the clock is what they spend.
//
// Bound: a reading is at most one resolution old, and older only while the
// scheduler keeps the goroutine waiting. A limiter may therefore refuse up to
// one resolution longer than it had to, and in an interval of length t it
// admits at most what its policy admits in t + resolution: rate × resolution
// more, never beyond.
//
// Stop ends the goroutine. A CoarseClock that was stopped, and the zero one,
// read the system clock at every call: right, and no faster than it.
type CoarseClock struct {
	start   time.Time
	elapsed atomic.Int64 // since start, plus 1; 0 when nothing updates it
	once    sync.Once
	done    chan struct{}
}

// NewCoarseClock returns a running clock. The resolution is from 10µs to 1s;
// else the error wraps ErrInvalidPolicy.
func NewCoarseClock(resolution time.Duration) (*CoarseClock, error) {
	if resolution < 10*time.Microsecond || resolution > time.Second {
		return nil, invalid("resolution", resolution, "must be from 10µs to 1s")
	}
	c := &CoarseClock{start: time.Now(), done: make(chan struct{})}
	c.elapsed.Store(1)
	go c.run(time.NewTicker(resolution))
	return c, nil
}

func (c *CoarseClock) run(ticker *time.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.elapsed.Store(int64(time.Since(c.start)) + 1)
		case <-c.done:
			c.elapsed.Store(0)
			return
		}
	}
}

// Stop ends the clock's goroutine. It may be called more than once.
func (c *CoarseClock) Stop() {
	c.once.Do(func() {
		if c.done != nil {
			close(c.done)
		}
	})
}

// Now returns the latest reading.
func (c *CoarseClock) Now() time.Time {
	if c.start.IsZero() {
		return time.Now()
	}
	return c.start.Add(time.Duration(c.sinceStart()))
}

func (c *CoarseClock) sinceStart() int64 {
	if e := c.elapsed.Load(); e > 0 {
		return e - 1
	}
	return int64(time.Since(c.start))
}

// After is time.After: a sleep does not depend on the resolution.
func (c *CoarseClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
