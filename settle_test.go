package ratelimit_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// What has refilled meanwhile is not given back a second time.
func TestSettleAfterARefill(t *testing.T) {
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) {
		first := c.at(0).reserve(10, 0)
		c.at(10).reserve(10, 10)
		first.Settle(0)
		c.remaining(0).refuse()
	})
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) { // half of it has
		first := c.at(0).reserve(10, 0)
		c.at(5).allowN(5, true)
		first.Settle(0)
		c.remaining(5).exactly(5)
	})
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) { // nothing has
		first := c.at(0).reserve(10, 0)
		first.Settle(3)
		c.exactly(7)
	})
}

// Of g units to give back, g − max(0, L + g + rate·(t−s) − burst) come free, at
// least 0, whatever else was charged meanwhile. At 1/s the time until the bucket
// is full tells the balance to the nanosecond.
func TestSettleFormula(t *testing.T) {
	const burst, second = 10, int64(time.Second)
	caseForms(t, casePerSecond(1, burst), func(c *caseRun) {
		rng := rand.New(rand.NewPCG(1, 10))
		balance := func() int64 { return burst*second - int64(c.limiter.Decide(0).ResetAfter) }
		for range 5000 {
			c.clock.advance(time.Duration(rng.Int64N(8 * second)))
			n := 1 + rng.IntN(burst)
			r := c.limiter.ReserveN(n)
			c.clock.advance(r.Delay())
			start, left := c.clock.offset(), balance()
			for range rng.IntN(4) {
				c.clock.advance(time.Duration(rng.Int64N(2 * second)))
				c.limiter.AllowN(1 + rng.IntN(4))
			}
			c.step++
			actual := rng.IntN(n + 1)
			g, before := int64(n-actual)*second, balance()
			back := max(0, g-max(0, left+g+int64(c.clock.offset()-start)-burst*second))
			r.Settle(actual)
			if got, want := balance(), before+back; got != want {
				c.failf("%d units booked at %v settled to %d: balance %d → %d billionths, want %d", n, start, actual, before, got, want)
			}
		}
	})
}

// A future booking that is settled keeps its moment, and the next one comes no
// earlier than that.
func TestSettleBeforeTheMoment(t *testing.T) {
	caseForms(t, casePerSecond(1, 4), func(c *caseRun) {
		c.at(0).allowN(4, true)
		r := c.reserve(4, 4)
		c.at(1)
		r.Settle(1)
		c.refuse()
		if next := c.clock.offset() + c.limiter.Reserve().Delay(); next < 4*time.Second || next > 5*time.Second {
			c.failf("the next booking is due at %v, want from 4s to 5s", next)
		}
	})
	caseForms(t, caseQueue(1, 4), func(c *caseRun) {
		c.at(0).reserve(1, 0)
		r := c.reserve(3, 3)
		r.Settle(1)
		c.at(1).reserve(1, 4)
	})
	caseForms(t, caseMeter(1, 4), func(c *caseRun) {
		r := c.at(0).reserve(3, 3)
		r.Settle(1)
		if next := c.clock.offset() + c.limiter.Reserve().Delay(); next != 4*time.Second {
			c.failf("the next booking is due at %v, want 4s: a second after the one at 3s", next)
		}
	})
}

// The slot of a booking that has acted is not given away, even if it cost less.
func TestSettleKeepsTheSlot(t *testing.T) {
	caseForms(t, caseQueue(1, 4), func(c *caseRun) {
		r := c.at(0).reserve(2, 1)
		c.at(1)
		r.Settle(1) // one unit has acted at 1s
		if next := c.clock.offset() + c.limiter.Reserve().Delay(); next < 2*time.Second {
			c.failf("the next booking is due at %v, want 2s or later: a unit acted at 1s", next)
		}
	})
}

func TestSettleIntoTheWindowThatWasCharged(t *testing.T) {
	caseForms(t, ratelimit.FixedCounterPolicy(5, time.Minute), func(c *caseRun) {
		c.at(0).allowN(5, true)
		r := c.reserve(3, 60)
		c.at(10)
		r.Settle(1)
		c.refuse()
		c.at(60).remaining(4).exactly(4)
	})
	caseForms(t, ratelimit.FixedCounterPolicy(5, time.Minute), func(c *caseRun) {
		r := c.at(0).reserve(3, 0)
		c.allowN(2, true)
		c.reserve(4, 60)
		c.at(10)
		r.Settle(0) // the window of the newest booking is another one
		c.at(60).remaining(1)
	})
	caseForms(t, ratelimit.SlidingLogPolicy(5, time.Minute), func(c *caseRun) {
		c.at(0).allowN(5, true)
		r := c.reserve(3, 60)
		c.at(10)
		r.Settle(1)
		c.at(60).remaining(4).exactly(4)
		c.at(119.999999999).refuse()
		c.at(120).exactly(5)
	})
	caseForms(t, ratelimit.SlidingLogPolicy(5, time.Minute), func(c *caseRun) {
		r := c.at(0).reserve(3, 0)
		c.at(20).allowN(2, true)
		c.at(30)
		r.Settle(1)
		c.exactly(2)
		c.at(60).exactly(1) // only the one of 0s has left
	})
	caseForms(t, ratelimit.SlidingLogPolicy(5, time.Minute), func(c *caseRun) {
		r := c.at(0).reserve(3, 0)
		c.at(60).allowN(4, true)
		r.Settle(0) // it has left the window
		c.remaining(1)
	})
	caseForms(t, ratelimit.SlidingCounterPolicy(5, time.Minute), func(c *caseRun) {
		c.at(0).allowN(5, true)
		r := c.reserve(3, 96)
		c.at(10)
		r.Settle(1)
		c.at(96).remaining(2)
	})
	caseForms(t, ratelimit.SlidingCounterPolicy(5, time.Minute).WithCells(4), func(c *caseRun) {
		r := c.at(0).reserve(3, 0)
		c.at(20).allowN(2, true)
		r.Settle(1)
		c.at(30).exactly(2)
		c.at(67.5).remaining(0) // half of the one left in the first cell counts as one
		c.at(75).remaining(1)
		r.Settle(0)
		c.remaining(1)
	})
}

// More is charged at once and delays what comes later.
func TestSettleMoreIsDebt(t *testing.T) {
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) {
		c.at(0).reserve(1, 0).Settle(6)
		c.remaining(4)
		c.reserve(1, 0).Settle(9) // a balance of -5
		c.refuse().retryAfter(1, 6*time.Second)
		c.at(5).remaining(0)
		c.at(6).exactly(1)
	})
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) { // after a refill the difference counts
		r := c.at(0).reserve(1, 0)
		c.at(60)
		r.Settle(6)
		c.remaining(5)
	})
	caseForms(t, casePerSecond(1, 10), func(c *caseRun) { // before the moment
		c.at(0).allowN(10, true)
		r := c.reserve(1, 1)
		c.at(0.5)
		r.Settle(5)
		c.reserve(1, 6)
	})
	caseForms(t, caseMeter(1, 10), func(c *caseRun) {
		r := c.at(0).reserve(1, 1)
		r.Settle(6)
		c.remaining(4)
		c.at(6).remaining(10)
	})
	for _, actual := range []int{6, 10, 15, 25, 30} {
		caseAlgorithms(t, 10, 10*time.Second, func(c *caseRun, p ratelimit.Policy) {
			c.at(0).limiter.Reserve().Settle(actual)
			c.remaining(max(0, 10-actual))
			admitted := 0
			for s := range 91 {
				admitted += c.at(float64(s)).count(10)
			}
			most, least := 100-actual, 90-actual-20
			if p.Algorithm() == ratelimit.AlgorithmSlidingCounter {
				most, least = most+10, 0 // an estimate
			}
			if admitted > most || admitted < least {
				c.failf("%v: %d used, then %d admitted in 90s; want from %d to %d", p, actual, admitted, least, most)
			}
		})
	}
}

// Debt saturates: whatever is settled, nothing panics, no answer leaves its
// range, and the limiter refuses until it has recovered.
func TestSettleHuge(t *testing.T) {
	policies := append(casePolicies(3, time.Second),
		casePerSecond(2e9, 3), caseMeter(2e9, 3), casePerSecond(1e-8, 3), caseQueue(1e-8, 3),
		ratelimit.SlidingLogPolicy(1, 1), ratelimit.FixedCounterPolicy(1, 1), ratelimit.SlidingCounterPolicy(1, 1),
		ratelimit.SlidingLogPolicy(math.MaxInt, 100*policyYear), ratelimit.FixedCounterPolicy(math.MaxInt, 100*policyYear),
		ratelimit.SlidingCounterPolicy(math.MaxInt, 100*policyYear).WithCells(1024),
		ratelimit.SlidingCounterPolicy(7, 1024).WithCells(1024),
		ratelimit.Unlimited(),
	)
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			caseForms(t, p, func(c *caseRun) {
				check := func() ratelimit.Decision {
					c.step++
					d := c.limiter.Decide(0)
					if d.Remaining < 0 || d.Remaining > d.Limit || d.ResetAfter < 0 || d.RetryAfter != 0 {
						c.failf("Decide(0) = %+v, want remaining in range and no negative time", d)
					}
					return d
				}
				for i, actual := range []int{1 << 30, math.MaxInt, math.MaxInt - 1, math.MaxInt} {
					r := c.limiter.Reserve()
					if i%2 == 1 && r.OK() {
						c.clock.advance(min(r.Delay(), policyYear))
					}
					r.Settle(actual)
					d := check()
					if d.Policy.Algorithm() != ratelimit.AlgorithmUnlimited && actual >= p.Limit() && r.OK() {
						c.refuse()
						if got := c.limiter.Decide(1); got.RetryAfter <= 0 {
							c.failf("refused with retry after %v", got.RetryAfter)
						}
					}
				}
				for _, wait := range []time.Duration{1, time.Second, 24 * time.Hour, policyYear, 100 * policyYear} {
					c.clock.advance(wait)
					check()
					c.limiter.Allow()
					c.limiter.Reserve().Cancel()
					c.limiter.ReserveN(p.Limit()).Settle(0)
					check()
				}
			})
		})
	}
}

func TestSettleCountsOnce(t *testing.T) {
	caseAlgorithms(t, 10, 10*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		for _, first := range []int{0, 2, 5, 9, 25} {
			c.clock.advance(time.Hour)
			r := c.limiter.ReserveN(5)
			r.Settle(-1)
			r.Settle(first)
			once := c.limiter.Decide(0)
			for _, again := range []int{0, 5, 9, 1000, -1, math.MaxInt} {
				c.step++
				r.Settle(again)
				r.Cancel()
				if got := c.limiter.Decide(0); got != once {
					c.failf("settled to %d, then to %d: Decide(0) = %+v, want %+v", first, again, got, once)
				}
			}
		}
	})
	// To what was booked: no change.
	caseAlgorithms(t, 10, 10*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		r := c.at(0).limiter.ReserveN(5)
		before := c.limiter.Decide(0)
		r.Settle(5)
		if got := c.limiter.Decide(0); got != before {
			c.failf("settled to what was booked: Decide(0) = %+v, want %+v", got, before)
		}
	})
}
