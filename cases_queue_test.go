package ratelimit_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed4f92381c/ratelimit"
)

// No goroutine stays behind. The timers of the default clock are stopped; a
// Clock has no way to take an alarm back.
func TestCase_B052_NothingStaysBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	caseBubble(t, []ratelimit.Policy{ratelimit.TokenBucketPolicy(ratelimit.PerHour(1), 1)},
		func(t *testing.T, _ ratelimit.Policy, l ratelimit.Limiter) {
			l.Allow()
			before := l.Decide(1)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var wrong atomic.Int64
			for range 10_000 {
				wg.Go(func() {
					if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
						wrong.Add(1)
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			cancel()
			wg.Wait()
			if wrong.Load() > 0 || time.Since(start) != 0 {
				t.Errorf("%d of 10000 waits did not return context.Canceled at once (%v)", wrong.Load(), time.Since(start))
			}
			if l.Decide(1).RetryAfter < before.RetryAfter {
				t.Errorf("after the cancels a unit comes free %v early", before.RetryAfter-l.Decide(1).RetryAfter)
			}
		})
	for _, p := range append(casePolicies(3, time.Second), ratelimit.Unlimited(), ratelimit.Blocked()) {
		for range 1000 {
			clock := newCaseClock()
			ratelimit.Must(ratelimit.New(p)).Allow()
			ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(clock))).Allow()
			if alarms, _ := clock.armed(); alarms != 0 {
				t.Fatalf("%v: %d alarms are armed after Allow, want none", p, alarms)
			}
		}
		for range 10 {
			ratelimit.Must(ratelimit.NewKeyed[int](p, ratelimit.WithShards(1))).Allow(1)
		}
	}
}

func TestCase_B053_FiftyPerSecond(t *testing.T) {
	caseForms(t, caseQueue(50, 51), func(c *caseRun) {
		for k := range 51 {
			c.at(0).reserveAt(1, time.Duration(k)*20*caseMs)
		}
	})
	caseForms(t, caseMeter(50, 51), func(c *caseRun) {
		for k := range 51 {
			c.at(0).reserveAt(1, time.Duration(k+1)*20*caseMs)
		}
	})
	// A parked caller ends with its context, without a step of the clock.
	caseAlgorithms(t, 1, time.Hour, func(c *caseRun, p ratelimit.Policy) {
		if p.Algorithm() != ratelimit.AlgorithmLeakyBucket {
			c.admit()
		} else if p.ImmediateFirst() {
			return // there is nothing to wait for
		}
		before := c.limiter.Decide(0)
		ctx, cancel := context.WithCancel(c.t.Context())
		done := make(chan error, 1)
		go func() { done <- c.limiter.Wait(ctx) }()
		caseUntil(c, 1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			c.failf("Wait = %v, want context.Canceled", err)
		}
		if after := c.limiter.Decide(0); before != after {
			c.failf("after the cancel Decide(0) = %+v, want %+v", after, before)
		}
	})
}

// MaxWaiters is the capacity of a leaky bucket.
func TestCase_B055_FirstComeFirstServed(t *testing.T) {
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) {
		c.at(0).allowN(10, true)
		c.reserve(10, 10)
		c.at(0.1).reserve(1, 11)
		c.at(5).refuse().remaining(0)
	})
	caseBubble(t, []ratelimit.Policy{casePerSecond(1, 10)}, func(t *testing.T, _ ratelimit.Policy, l ratelimit.Limiter) {
		l.AllowN(10)
		start := time.Now()
		var wg sync.WaitGroup
		wait := func(n int, want time.Duration) {
			wg.Go(func() {
				if err := l.WaitN(t.Context(), n); err != nil || time.Since(start) != want {
					t.Errorf("WaitN(%d) = %v at %v, want nil at %v", n, err, time.Since(start), want)
				}
			})
		}
		wait(10, 10*time.Second)
		time.Sleep(100 * caseMs)
		wait(1, 11*time.Second)
		time.Sleep(4900 * caseMs)
		if l.Allow() {
			t.Error("t = 5s: Allow() = true, want false")
		}
		wg.Wait()
	})
	for _, p := range []ratelimit.Policy{caseMeter(1, 2), caseQueue(1, 2)} {
		caseForms(t, p, func(c *caseRun) {
			c.limiter.Reserve()
			c.limiter.Reserve()
			before := c.limiter.Decide(1)
			if err := c.limiter.Reserve().Err(); !errors.Is(err, ratelimit.ErrQueueFull) {
				c.failf("third Reserve: error %v, want ErrQueueFull", err)
			}
			if err := c.limiter.Wait(c.t.Context()); !errors.Is(err, ratelimit.ErrQueueFull) {
				c.failf("third Wait = %v, want ErrQueueFull", err)
			}
			if after := c.limiter.Decide(1); after != before {
				c.failf("after the refusals Decide(1) = %+v, want %+v", after, before)
			}
		})
	}
}

func TestCase_B056_ManyWaitersOfTen(t *testing.T) {
	caseBubble(t, []ratelimit.Policy{casePerSecond(20, 1200)}, func(t *testing.T, _ ratelimit.Policy, l ratelimit.Limiter) {
		start := time.Now()
		var mu sync.Mutex
		var admitted []time.Duration // of ten units each
		ctx, cancel := context.WithDeadline(t.Context(), start.Add(180*time.Second))
		defer cancel()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				for l.WaitN(ctx, 10) == nil {
					mu.Lock()
					admitted = append(admitted, time.Since(start))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(admitted)
		upTo := func(at time.Duration) int {
			n, _ := slices.BinarySearch(admitted, at+1)
			return n * 10
		}
		for s := time.Duration(1); s <= 180; s++ {
			if got, want := upTo(s*time.Second), 1200+20*int(s); got != want {
				t.Fatalf("t = %ds: %d units admitted, want %d", s, got, want)
			}
		}
		for s := time.Duration(60); s <= 180; s++ {
			if got := upTo(s*time.Second) - upTo((s-60)*time.Second); got > 1200 {
				t.Errorf("%d units in the 60 s up to %ds, want at most 1200", got, s)
			}
		}
	})
}

func TestCase_B058_NoSlackStillBlocks(t *testing.T) {
	caseForms(t, caseQueue(100, 10), func(c *caseRun) {
		for k := range 10 {
			c.at(0).reserveAt(1, time.Duration(k)*10*caseMs)
		}
		for k := range 10 {
			c.at(30).reserveAt(1, 30*time.Second+time.Duration(k)*10*caseMs)
		}
		for k := range time.Duration(10) { // nudged between calls
			c.atExactly(60*time.Second+k*time.Microsecond).reserveAt(1, 60*time.Second+k*10*caseMs)
		}
	})
}

func TestCase_B059_NoStoredBurst(t *testing.T) {
	caseForms(t, caseQueue(1, 3), func(c *caseRun) {
		for _, start := range []int{0, 6, 100} {
			for k := range 3 {
				c.at(float64(start)).reserve(1, float64(start+k))
			}
		}
	})
	caseForms(t, casePerSecond(1, 1), func(c *caseRun) {
		c.at(6).reserve(1, 6)
		c.reserve(1, 7)
	})
}

func TestCase_B061_LongestWait(t *testing.T) {
	caseForms(t, caseQueue(3, 60), func(c *caseRun) {
		for k := range 10 {
			c.at(0).reserveAt(1, time.Duration(math.Ceil(float64(k)*1e9/3)))
		}
	}, ratelimit.WithMaxWait(20*time.Second))
	caseForms(t, caseQueue(3, 60), func(c *caseRun) {
		c.at(0).reserve(1, 0)
		for range 9 {
			if err := c.limiter.Reserve().Err(); !errors.Is(err, ratelimit.ErrWaitTooLong) {
				c.failf("Reserve: error %v, want ErrWaitTooLong", err)
			}
		}
		c.at(0.333333334).reserveAt(1, 333333334)
	}, ratelimit.WithMaxWait(0))
	// The bound is inclusive in every algorithm: a wait of just so long is taken.
	policies := slices.DeleteFunc(casePolicies(1, time.Second), ratelimit.Policy.ImmediateFirst)
	for _, p := range append(policies, caseQueue(1, 2)) {
		t.Run(p.String(), func(t *testing.T) {
			wait := newCaseForm(t, "plain", p).nextWait(p)
			for _, short := range []time.Duration{0, 1} {
				caseForms(t, p, func(c *caseRun) {
					c.nextWait(p)
					if r := c.limiter.Reserve(); r.OK() != (short == 0) || short > 0 && !errors.Is(r.Err(), ratelimit.ErrWaitTooLong) {
						c.failf("wait of %v, at most %v: OK %v, error %v", wait, wait-short, r.OK(), r.Err())
					}
				}, ratelimit.WithMaxWait(wait-short))
			}
		})
	}
}

// nextWait uses what a limit of 1 has at once, and returns the wait of the next.
func (c *caseRun) nextWait(p ratelimit.Policy) time.Duration {
	c.t.Helper()
	switch {
	case p.ImmediateFirst():
		c.reserve(1, 0)
		return time.Second
	case p.Algorithm() == ratelimit.AlgorithmLeakyBucket:
		return time.Second
	}
	return c.admit().limiter.Decide(1).RetryAfter
}

// A queue of five behind the one that leaves at once is a capacity of 6.
func TestCase_B062_BurstIsDelayed(t *testing.T) {
	caseForms(t, caseQueue(1, 6), func(c *caseRun) {
		for k := range 3 {
			c.at(0).reserve(1, float64(k))
		}
	})
	caseForms(t, caseQueue(1, 6), func(c *caseRun) {
		for k := range 6 {
			c.at(0).reserve(1, float64(k))
		}
		if err := c.limiter.Reserve().Err(); !errors.Is(err, ratelimit.ErrQueueFull) {
			c.failf("seventh Reserve: error %v, want ErrQueueFull", err)
		}
	})
	caseForms(t, caseMeter(2, 4), func(c *caseRun) { // at the end of the slots
		for k := range 4 {
			c.at(0).reserve(1, float64(k+1)/2)
		}
		for range 2 {
			if err := c.limiter.Reserve().Err(); !errors.Is(err, ratelimit.ErrQueueFull) {
				c.failf("Reserve of a full bucket: error %v, want ErrQueueFull", err)
			}
		}
	})
	caseBubble(t, []ratelimit.Policy{caseQueue(1, 6)}, func(t *testing.T, _ ratelimit.Policy, l ratelimit.Limiter) {
		admitted, refused := caseWaiters(7, func() error { return l.Wait(t.Context()) })
		if want := caseSeconds(0, 1, 2, 3, 4, 5); !slices.Equal(admitted, want) || len(refused) != 1 {
			t.Errorf("admitted at %v, %d refused; want %v and 1", admitted, len(refused), want)
		}
	})
}

func TestCase_B130_EverythingTakesAClock(t *testing.T) {
	start := time.Now()
	for _, p := range casePolicies(5, time.Minute) {
		caseForms(t, p, func(c *caseRun) { // a day of traffic
			admitted := 0
			for s := range time.Duration(86400 / 5) {
				admitted += c.atExactly(s * 5 * time.Second).count(1)
			}
			if want := 5 * 1440; admitted < want-60 || admitted > want+5 {
				if p.Algorithm() != ratelimit.AlgorithmSlidingCounter { // an estimate that may admit less
					c.failf("%v: admitted %d in a day, want about %d", p, admitted, want)
				}
			}
		})
	}
	t.Logf("%d days took %v", 3*len(casePolicies(5, time.Minute)), time.Since(start))
}
