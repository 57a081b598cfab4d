package ratelimit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B043_WaitWithAnEndedContext(t *testing.T) {
	caseForms(t, casePerSecond(1, 1), func(c *caseRun) {
		if err := c.limiter.Wait(caseEnded()); !errors.Is(err, context.Canceled) {
			c.failf("Wait = %v, want context.Canceled", err)
		}
		c.exactly(1)
	})
	caseAlgorithms(t, 2, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		expired, cancel := context.WithDeadline(c.t.Context(), time.Unix(1, 0))
		defer cancel()
		for _, n := range []int{0, 1, 2, 3, -1} { // the context comes first
			if err := c.limiter.WaitN(caseEnded(), n); !errors.Is(err, context.Canceled) {
				c.failf("WaitN(%d) = %v, want context.Canceled", n, err)
			}
			if err := c.limiter.WaitN(expired, n); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ratelimit.ErrWaitTooLong) {
				c.failf("WaitN(%d) = %v, want the error of the context", n, err)
			}
		}
		c.exactly(2)
	})
}

// caseBubble runs a test for each algorithm, limit 1 per second, in a bubble
// whose time starts at a whole second.
func caseBubble(t *testing.T, policies []ratelimit.Policy, test func(*testing.T, ratelimit.Policy, ratelimit.Limiter)) {
	t.Helper()
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := ratelimit.New(p)
				if err != nil {
					t.Fatal(err)
				}
				test(t, p, l)
			})
		})
	}
}

func TestCase_B044_DeadlineBeforeTheTurn(t *testing.T) {
	caseBubble(t, casePolicies(1, time.Second), func(t *testing.T, p ratelimit.Policy, l ratelimit.Limiter) {
		if !l.Allow() {
			t.Fatal("t = 0: Allow() = false, want true")
		}
		if p.Algorithm() == ratelimit.AlgorithmLeakyBucket {
			return // full: ErrQueueFull at once, whatever the deadline
		}
		start := time.Now()
		due := l.Decide(1).RetryAfter
		ctx, cancel := context.WithTimeout(t.Context(), due/2)
		defer cancel()
		err := l.Wait(ctx)
		if took := time.Since(start); took != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ratelimit.ErrWaitTooLong) {
			t.Fatalf("Wait = %v after %v; want both DeadlineExceeded and ErrWaitTooLong at once", err, took)
		}
		short, cancel := context.WithTimeout(t.Context(), due-1)
		defer cancel()
		if err := l.Wait(short); !errors.Is(err, ratelimit.ErrWaitTooLong) || time.Since(start) != 0 {
			t.Fatalf("a nanosecond short: Wait = %v after %v, want ErrWaitTooLong at once", err, time.Since(start))
		}
		inclusive, cancel := context.WithDeadline(t.Context(), start.Add(due))
		defer cancel()
		if err := l.Wait(inclusive); err != nil || time.Since(start) != due {
			t.Fatalf("deadline at the moment: Wait = %v after %v, want nil after %v", err, time.Since(start), due)
		}
		if l.Allow() {
			t.Fatalf("t = %v: Allow() = true right after the Wait, want false", due)
		}
	})
	// What a failed Wait asked for is still there at its moment.
	caseBubble(t, []ratelimit.Policy{casePerSecond(1, 1)}, func(t *testing.T, _ ratelimit.Policy, l ratelimit.Limiter) {
		l.Allow()
		ctx, cancel := context.WithTimeout(t.Context(), 500*caseMs)
		defer cancel()
		if l.Wait(ctx) == nil {
			t.Error("Wait = nil, want ErrWaitTooLong")
		}
		time.Sleep(time.Second)
		if !l.Allow() {
			t.Error("t = 1s: Allow() = false, want true")
		}
	})
}

// caseWaiters starts so many waiters at once, and returns the times at which
// they were admitted, in order, and the errors of the others.
func caseWaiters(n int, wait func() error) (admitted []time.Duration, refused []error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		start = time.Now()
	)
	for range n {
		wg.Go(func() {
			err := wait()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				admitted = append(admitted, time.Since(start))
			} else {
				refused = append(refused, err)
			}
		})
	}
	wg.Wait()
	slices.Sort(admitted)
	return admitted, refused
}

func TestCase_B046_OneWaiterPerWindow(t *testing.T) {
	for _, p := range []ratelimit.Policy{
		ratelimit.FixedCounterPolicy(1, time.Second), ratelimit.SlidingLogPolicy(1, time.Second),
		casePerSecond(1, 1), casePerSecond(1, 1).WithIntervalRefill(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.Must(ratelimit.New(p, ratelimit.WithMaxWait(5500*caseMs)))
				admitted, refused := caseWaiters(100, func() error { return l.Wait(t.Context()) })
				if want := caseSeconds(0, 1, 2, 3, 4, 5); !slices.Equal(admitted, want) || len(refused) != 94 {
					t.Errorf("admitted at %v, %d refused; want %v and 94", admitted, len(refused), want)
				}
				for _, err := range refused {
					if !errors.Is(err, ratelimit.ErrWaitTooLong) || errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("error %v, want ErrWaitTooLong without a deadline", err)
					}
				}
			})
		})
	}
}

func caseSeconds(seconds ...float64) []time.Duration {
	var at []time.Duration
	for _, s := range seconds {
		at = append(at, caseAt(s))
	}
	return at
}

func TestCase_B047_ThreePerCycle(t *testing.T) {
	for _, p := range []ratelimit.Policy{
		ratelimit.FixedCounterPolicy(3, 10*time.Second), ratelimit.SlidingLogPolicy(3, 10*time.Second),
		ratelimit.TokenBucketPolicy(ratelimit.Per(3, 10*time.Second), 3).WithIntervalRefill(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.Must(ratelimit.New(p, ratelimit.WithMaxWait(12*time.Second)))
				admitted, refused := caseWaiters(10, func() error { return l.Wait(t.Context()) })
				if want := caseSeconds(0, 0, 0, 10, 10, 10); !slices.Equal(admitted, want) || len(refused) != 4 {
					t.Errorf("admitted at %v, %d refused; want %v and 4", admitted, len(refused), want)
				}
			})
			caseForms(t, p, func(c *caseRun) {
				for i := range 10 {
					if i < 6 {
						c.at(0).reserve(1, float64(i/3*10))
					} else if r := c.limiter.Reserve(); !errors.Is(r.Err(), ratelimit.ErrWaitTooLong) {
						c.failf("booking %d: error %v, want ErrWaitTooLong", i+1, r.Err())
					}
				}
			}, ratelimit.WithMaxWait(12*time.Second))
		})
	}
}

// caseLateClock is the bubble's clock with alarms that ring a millisecond late.
type caseLateClock struct{}

func (caseLateClock) Now() time.Time                         { return time.Now() }
func (caseLateClock) After(d time.Duration) <-chan time.Time { return time.After(d + caseMs) }

func TestCase_B049_CoarseTimer(t *testing.T) {
	for _, test := range []struct {
		policy ratelimit.Policy
		last   time.Duration
	}{
		{casePerSecond(1000, 1), time.Second},
		{casePerSecond(1000, 10), 990 * caseMs},
		{caseQueue(1000, 10), time.Second},
		{ratelimit.SlidingLogPolicy(10, 10*caseMs), 991 * caseMs},
	} {
		t.Run(test.policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				l := ratelimit.Must(ratelimit.New(test.policy, ratelimit.WithClock(caseLateClock{})))
				var first []time.Duration
				for i := range 1000 {
					if err := l.Wait(t.Context()); err != nil {
						t.Fatalf("wait %d, t = %v: %v", i+1, time.Since(start), err)
					}
					if i < 5 {
						first = append(first, time.Since(start))
					}
				}
				if got := time.Since(start); got != test.last {
					t.Errorf("1000 waits end at %v, want %v", got, test.last)
				}
				if want := caseSeconds(0, 0.002, 0.002, 0.004, 0.004); test.policy == casePerSecond(1000, 1) && !slices.Equal(first, want) {
					t.Errorf("the first waits end at %v, want %v", first, want)
				}
			})
		})
	}
}

func TestCase_B050_NoBusyLoop(t *testing.T) {
	caseForms(t, casePerSecond(1e6, 1), func(c *caseRun) {
		c.at(0).exactly(1).retryAfter(1, 1000)
		for ns := time.Duration(1); ns < 1000; ns++ {
			c.atExactly(ns).retryAfter(1, 1000-ns)
		}
		done := make(chan error, 1)
		go func() { done <- c.limiter.Wait(c.t.Context()) }()
		caseUntil(c, 1)
		c.atExactly(1000)
		if err := <-done; err != nil {
			c.failf("Wait = %v, want nil", err)
		}
		if _, asked := c.clock.armed(); asked > 2 {
			c.failf("one Wait asked the clock for %d alarms, want at most 2", asked)
		}
	})
}

// caseUntil waits for so many armed alarms.
func caseUntil(c *caseRun, alarms int) {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if n, _ := c.clock.armed(); n >= alarms {
			return
		} else if time.Now().After(end) {
			c.failf("%d alarms are armed, want %d", n, alarms)
		}
	}
}
