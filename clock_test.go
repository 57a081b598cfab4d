package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// clockEach runs a test for each algorithm, plain and keyed, on a clock that
// starts at start.
func clockEach(t *testing.T, start time.Time, test func(*testing.T, ratelimit.Limiter, *conformance.Clock)) {
	t.Helper()
	for _, named := range conformance.Policies() {
		if named.Policy.Algorithm() == ratelimit.AlgorithmTokenBucket && named.Policy.Initial() != named.Policy.Limit() {
			continue
		}
		for maker, make := range boundMakers {
			if maker == "all" {
				continue
			}
			t.Run(named.Name+"/"+maker, func(t *testing.T) {
				c := conformance.NewClock(start)
				test(t, make(t, named.Policy, c), c)
			})
		}
	}
}

// clockDrain takes all there is and checks that it is the limit.
func clockDrain(t *testing.T, l ratelimit.Limiter, c *conformance.Clock) {
	t.Helper()
	limit := l.Decide(0).Limit
	for i := range limit {
		if !l.Allow() {
			t.Fatalf("t=%v: unit %d: got refused, want %d", c.Elapsed(), i, limit)
		}
	}
	if l.Allow() {
		t.Fatalf("t=%v: got more than %d", c.Elapsed(), limit)
	}
}

func TestClockStandsStillWhenItGoesBack(t *testing.T) {
	t.Parallel()
	clockEach(t, boundStart, func(t *testing.T, l ratelimit.Limiter, c *conformance.Clock) {
		c.Advance(time.Hour)
		clockDrain(t, l, c)
		before := l.Decide(1)
		r := l.Reserve()
		delay := r.Delay()
		for _, back := range []time.Duration{1, time.Second, time.Hour, 200 * 365 * 24 * time.Hour} {
			c.Set(time.Hour - back)
			if got := r.Delay(); got != delay {
				t.Errorf("back by %v: delay: got %v, want %v", back, got, delay)
			}
			if l.Allow() {
				t.Errorf("back by %v: got admitted, want refused", back)
			}
		}
		if r.OK() {
			c.Set(0)
			r.Cancel() // not due: the clock has not gone on
		}
		c.Set(time.Hour)
		if got := l.Decide(1); got != before {
			t.Errorf("when it has caught up: got %+v, want %+v", got, before)
		}
		c.Advance(before.RetryAfter - 1)
		if l.Allow() {
			t.Error("one nanosecond early: got admitted, want refused")
		}
		if c.Advance(1); !l.Allow() {
			t.Error("at RetryAfter: got refused, want admitted")
		}
	})
}

func TestClockJumpsFarAhead(t *testing.T) {
	t.Parallel()
	clockEach(t, boundStart, func(t *testing.T, l ratelimit.Limiter, c *conformance.Clock) {
		clockDrain(t, l, c)
		for range 2 { // 198 years in all; a Duration ends at 292
			c.Set(c.Now().AddDate(99, 0, 0).Sub(boundStart))
			clockDrain(t, l, c)
			d := l.Decide(1)
			if d.RetryAfter <= 0 || d.RetryAfter > 2*time.Second || d.ResetAfter <= 0 || d.ResetAfter > 10*time.Second {
				t.Fatalf("t=%v: got %+v, want small waits", c.Now(), d)
			}
			c.Advance(d.RetryAfter - 1)
			if l.Allow() {
				t.Fatalf("t=%v: one nanosecond early: got admitted, want refused", c.Now())
			}
			if c.Advance(1); !l.Allow() {
				t.Fatalf("t=%v: at RetryAfter: got refused, want admitted", c.Now())
			}
		}
	})
}

// clockFree is a clock that can be set to any time.Time.
type clockFree struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clockFree) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clockFree) After(time.Duration) <-chan time.Time { return nil }

func (c *clockFree) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// TestClockStartsAnywhere starts at the zero time and at the ends of what a
// time.Time can be, and jumps to today.
func TestClockStartsAnywhere(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, start := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(-1, 999_999_999), time.Unix(math.MinInt64/2, 0), time.Unix(math.MaxInt64/4, 1),
		time.Date(1600, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		for _, named := range conformance.Policies() {
			t.Run(fmt.Sprint(start.Unix(), "/", named.Name), func(t *testing.T) {
				c := &clockFree{now: start}
				l := conformingNew(t, named.Policy, ratelimit.WithClock(c))
				admitted := func(what string, most int) {
					t.Helper()
					got := 0
					for got <= named.Policy.Limit() && l.Allow() {
						got++
					}
					d := l.Decide(1)
					if got > most || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Second {
						t.Errorf("%s: got %d units and then %+v, want at most %d and a small wait", what, got, d, most)
					}
				}
				admitted("at the start", named.Policy.Limit())
				c.set(start.Add(time.Nanosecond))
				admitted("a nanosecond later", named.Policy.Limit()) // perhaps in a new window
				before := l.Decide(1)
				c.set(today)
				if today.After(start) {
					admitted("today", named.Policy.Limit())
				} else if got := l.Decide(1); got != before {
					t.Errorf("back to today: got %+v, want %+v", got, before)
				}
				c.set(time.Time{})
				if l.Allow() {
					t.Error("back to the zero time: got admitted, want refused")
				}
			})
		}
	}
}

// clockSlips is a clock on which time passes between a booking and the sleep:
// each time somebody sets an alarm, it first moves on.
type clockSlips struct {
	*conformance.Clock
	slips []time.Duration
	asked []time.Duration
}

func (c *clockSlips) After(d time.Duration) <-chan time.Time {
	ring := c.Clock.After(d)
	c.asked = append(c.asked, d)
	if len(c.slips) > 0 {
		c.Clock.AdvanceInSilence(c.slips[0])
		c.slips = c.slips[1:]
	}
	return ring
}

// TestClockMovesBeforeTheSleep checks that a sleep ends at the booked moment
// though time has passed since the booking.
func TestClockMovesBeforeTheSleep(t *testing.T) {
	t.Parallel()
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1)
	// The whole wait passes before the alarm is set: no alarm rings.
	slips := &clockSlips{Clock: conformance.NewClock(boundStart), slips: []time.Duration{time.Second}}
	l := conformingNew(t, p, ratelimit.WithClock(slips))
	l.Allow()
	crowdGuard(t, func() {
		if err := l.Wait(context.Background()); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
	// A part passes: the next alarm is for the rest.
	slips = &clockSlips{Clock: conformance.NewClock(boundStart), slips: []time.Duration{300 * time.Millisecond}}
	l = conformingNew(t, p, ratelimit.WithClock(slips))
	l.Allow()
	done := make(chan error, 1)
	go func() { done <- l.Wait(context.Background()) }()
	slips.AwaitAlarms(t, 2)
	slips.Clock.Advance(700 * time.Millisecond)
	crowdGuard(t, func() {
		if err := <-done; err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
	if len(slips.asked) != 2 || slips.asked[0] != time.Second || slips.asked[1] != 700*time.Millisecond {
		t.Errorf("alarms: got %v, want 1s and 700ms", slips.asked)
	}
}

// TestClockBackDuringSleep sets the clock back while somebody sleeps: the alarm
// that rings early on is not the moment.
func TestClockBackDuringSleep(t *testing.T) {
	t.Parallel()
	c := conformance.NewClock(boundStart)
	l := conformingNew(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1), ratelimit.WithClock(c))
	l.Allow()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Wait(ctx) }()
	c.AwaitAlarms(t, 1)
	c.Advance(-time.Hour)
	select {
	case err := <-done:
		t.Fatalf("got %v, want still asleep", err)
	case <-time.After(2 * time.Millisecond):
	}
	cancel()
	crowdGuard(t, func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
}

func TestClockOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := ratelimit.New(ratelimit.Unlimited(), ratelimit.WithClock(nil)); !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("WithClock(nil): got %v, want ErrInvalidPolicy", err)
	}
	if _, err := ratelimit.New(ratelimit.Unlimited(), ratelimit.WithMaxWait(-1)); !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("WithMaxWait(-1): got %v, want ErrInvalidPolicy", err)
	}
}
