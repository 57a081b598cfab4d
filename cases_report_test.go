package ratelimit_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B097_RetryAfterIsNeverTooShort(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(5), 1, func(c *caseRun) {
		c.at(0).admit().retryAfter(1, 200*caseMs)
	})
	caseBuckets(t, ratelimit.PerSecond(3), 1, func(c *caseRun) {
		c.at(0).admit().retryAfter(1, 333_333_334) // rounded up
	})
}

// Obeying RetryAfter succeeds, one nanosecond less does not, and Remaining is
// just what passes, after whatever has happened.
func TestCase_B097_ObeyingSucceeds(t *testing.T) {
	windows := []time.Duration{time.Second, 333_333_333, 101, 90 * 24 * time.Hour}
	for seed := range uint64(24) {
		limit, window := 1+int(seed%7), windows[seed%4]
		for _, p := range casePolicies(limit, window) {
			t.Run(p.String(), func(t *testing.T) {
				form := []string{"plain", "keyed", "all"}[seed%3]
				c := newCaseForm(t, form, p)
				rng := rand.New(rand.NewPCG(seed, 97))
				var last *ratelimit.Reservation
				for range 150 {
					c.clock.advance(time.Duration(rng.Int64N(int64(window) + 1)))
					n := 1 + rng.IntN(limit)
					switch rng.IntN(6) {
					case 0:
						last = c.limiter.ReserveN(n)
					case 1:
						if last != nil {
							last.Settle(rng.IntN(2 * limit))
						}
					default:
						caseObey(c, n)
					}
				}
			})
		}
	}
}

func caseObey(c *caseRun, n int) {
	c.t.Helper()
	c.step++
	d := c.limiter.Decide(0)
	if d.Remaining < d.Limit {
		c.allowN(d.Remaining+1, false)
	}
	if got := c.limiter.Decide(n); got.Allowed != (n <= d.Remaining) {
		c.failf("Decide(%d).Allowed = %v with %d remaining", n, got.Allowed, d.Remaining)
	} else if !got.Allowed {
		now := c.clock.offset()
		if got.RetryAfter <= 0 || got.RetryAfter == ratelimit.Never {
			c.failf("Decide(%d) is refused, retry after %v", n, got.RetryAfter)
		}
		c.atExactly(now+got.RetryAfter-1).allowN(n, false)
		c.atExactly(now+got.RetryAfter).allowN(n, true)
	}
	now, reset := c.clock.offset(), c.limiter.Decide(0).ResetAfter
	if reset > 0 && c.step%3 == 0 {
		c.atExactly(now+reset).decide(0, true, d.Limit, 0, 0)
	}
}

func TestCase_B098_RetryAfterIsTheTimeLeft(t *testing.T) {
	for policy, want := range map[ratelimit.Policy]time.Duration{
		ratelimit.FixedCounterPolicy(10, time.Minute):   40 * time.Second,
		ratelimit.SlidingLogPolicy(10, time.Minute):     40 * time.Second,
		ratelimit.SlidingCounterPolicy(10, time.Minute): 46 * time.Second,
	} {
		t.Run(policy.String(), func(t *testing.T) {
			caseForms(t, policy, func(c *caseRun) {
				for s := 0; s <= 18; s += 2 {
					c.at(float64(s)).admit()
				}
				c.at(20).retryAfter(1, want)
				c.atExactly(20*time.Second + want - 1).refuse()
				c.atExactly(20*time.Second + want).admit()
			})
		})
	}
}

func TestCase_B100_ResetAndRetryInOneUnit(t *testing.T) {
	caseBuckets(t, ratelimit.Per(2, time.Minute), 2, func(c *caseRun) {
		c.at(0).decide(1, true, 1, 0, 30*time.Second)
		c.decide(1, true, 0, 0, time.Minute)
		c.decide(1, false, 0, 30*time.Second, time.Minute)
	})
}

func TestCase_B101_RemainingIsNeverNegative(t *testing.T) {
	caseAlgorithms(t, 5, time.Minute, func(c *caseRun, _ ratelimit.Policy) {
		for i := range 20 {
			c.step++
			d := c.at(0).limiter.Decide(1)
			if want := max(0, 4-i); d.Remaining != want || d.Allowed != (i < 5) {
				c.failf("call %d: allowed %v, remaining %d; want %v, %d", i+1, d.Allowed, d.Remaining, i < 5, want)
			}
		}
	})
	for _, p := range casePolicies(2, time.Hour) { // on the real clock
		if d := ratelimit.Must(ratelimit.New(p)).Decide(1); !d.Allowed || d.Remaining != 1 {
			t.Errorf("%v, real clock: Decide(1) = allowed %v, remaining %d; want true, 1", p, d.Allowed, d.Remaining)
		}
	}
}

func TestCase_B127_AllOrNone(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		clock := newCaseClock()
		a := ratelimit.Must(ratelimit.New(casePerSecond(10, 10), ratelimit.WithClock(clock)))
		policyB := ratelimit.TokenBucketPolicy(ratelimit.Per(1, time.Minute), 1)
		b := ratelimit.Must(ratelimit.New(policyB, ratelimit.WithClock(clock)))
		both := ratelimit.All(a, b)
		if swapped {
			both = ratelimit.All(b, a)
		}
		c := &caseRun{t: t, clock: clock, limiter: both}
		c.exactly(1)
		for range 3 {
			c.decide(1, false, 0, time.Minute, time.Minute)
			if d := both.Decide(1); d.Policy != policyB {
				c.failf("Decide(1) names %v, want %v", d.Policy, policyB)
			}
		}
		(&caseRun{t: t, clock: clock, limiter: a}).remaining(9)
	}
	// Any two algorithms: the refusal of one charges the other nothing.
	for _, p := range casePolicies(10, time.Minute) {
		for _, q := range casePolicies(1, time.Minute) {
			clock := newCaseClock()
			a := ratelimit.Must(ratelimit.New(p, ratelimit.WithClock(clock)))
			b := ratelimit.Must(ratelimit.New(q, ratelimit.WithClock(clock), ratelimit.WithMaxWait(0)))
			c := &caseRun{t: t, clock: clock, limiter: ratelimit.All(a, b)}
			c.exactly(1)
			if err := c.limiter.Reserve().Err(); err == nil {
				c.failf("All(%v, %v): a second Reserve is booked beyond the longest wait", p, q)
			}
			if err := c.limiter.WaitN(t.Context(), 2); !errors.Is(err, ratelimit.ErrExceedsLimit) {
				c.failf("All(%v, %v): WaitN(2) = %v, want ErrExceedsLimit", p, q, err)
			}
			(&caseRun{t: t, clock: clock, limiter: a}).remaining(9)
		}
	}
}

// All of one limiter answers as that limiter does.
func TestCase_B127_AllOfOne(t *testing.T) {
	for _, p := range casePolicies(4, time.Second) {
		t.Run(p.String(), func(t *testing.T) {
			one, all := newCaseForm(t, "plain", p), newCaseForm(t, "all", p)
			rng := rand.New(rand.NewPCG(127, 127))
			for range 2000 {
				one.clock.advance(time.Duration(rng.Int64N(int64(500 * caseMs))))
				all.clock.set(one.clock.offset())
				all.step++
				n := rng.IntN(5)
				if rng.IntN(3) == 0 {
					got, want := all.limiter.ReserveN(n), one.limiter.ReserveN(n)
					if got.Delay() != want.Delay() {
						all.failf("ReserveN(%d) is due in %v, want %v", n, got.Delay(), want.Delay())
					}
				} else if got, want := all.limiter.Decide(n), one.limiter.Decide(n); got != want {
					all.failf("Decide(%d) = %+v, want %+v", n, got, want)
				}
			}
		})
	}
}

func TestCase_B128_LookingChangesNothing(t *testing.T) {
	clock := newCaseClock()
	a := ratelimit.Must(ratelimit.New(ratelimit.TokenBucketPolicy(ratelimit.Per(1, 2*time.Second), 1), ratelimit.WithClock(clock)))
	b := ratelimit.Must(ratelimit.New(ratelimit.TokenBucketPolicy(ratelimit.Per(1, time.Minute), 1), ratelimit.WithClock(clock)))
	(&caseRun{t: t, clock: clock, limiter: ratelimit.All(a, b)}).exactly(1).retryAfter(1, time.Minute)
	(&caseRun{t: t, clock: clock, limiter: a}).retryAfter(1, 2*time.Second)

	caseAlgorithms(t, 5, time.Minute, func(c *caseRun, p ratelimit.Policy) {
		unseen := newCaseRun(t, p)
		for _, used := range []int{0, 3, 2} {
			now := c.clock.offset() + 3*time.Second
			c.atExactly(now).allowN(used, true)
			unseen.atExactly(now).allowN(used, true)
			for range caseLong(20_000) {
				c.limiter.Decide(0)
				c.clock.advance(100 * time.Microsecond)
			}
			unseen.clock.set(c.clock.offset())
			n := min(5, 5*used) // refused where something has been used
			if got, want := c.limiter.Decide(n), unseen.limiter.Decide(n); got != want {
				c.failf("Decide(%d) = %+v, want %+v as without the looks", n, got, want)
			}
		}
	})
}
