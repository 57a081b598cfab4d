package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B070_StaleEntriesDoNotCount(t *testing.T) {
	caseAlgorithms(t, 3, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0).exactly(3)
		c.at(5).admit().remaining(2)
	})
}

func TestCase_B071_RefusedCallsDoNotCount(t *testing.T) {
	for policy, want := range map[ratelimit.Policy]string{
		ratelimit.SlidingLogPolicy(5, 10*time.Second):     "0 1 2 3 4 10 11 12 13 14 20 21 22 23 24 30 31 32 33 34",
		ratelimit.FixedCounterPolicy(5, 10*time.Second):   "0 1 2 3 4 10 11 12 13 14 20 21 22 23 24 30 31 32 33 34",
		ratelimit.SlidingCounterPolicy(5, 10*time.Second): "0 1 2 3 4 12 14 16 18 20 23 25 28 30 33 35 38",
		// Both admit at the first whole seconds k with floor(5 + k/2) units minted.
		casePerSecond(0.5, 5): "0 1 2 3 4 5 6 7 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38",
		caseMeter(0.5, 5):     "0 1 2 3 4 5 6 7 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38",
	} {
		t.Run(policy.String(), func(t *testing.T) {
			caseForms(t, policy, func(c *caseRun) {
				var admitted []string
				for s := range 40 {
					if c.at(float64(s)).count(1) == 1 {
						admitted = append(admitted, fmt.Sprint(s))
					}
				}
				if got := strings.Join(admitted, " "); got != want {
					c.failf("admitted at %s, want %s", got, want)
				}
			})
		})
	}
}

// A refusal by whatever method leaves the budget as it was.
func TestCase_B071_NoRefusalCounts(t *testing.T) {
	caseAlgorithms(t, 5, 10*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(1.25).allowN(4, true)
		before := c.limiter.Decide(0)
		for range 200 {
			c.step++
			c.limiter.AllowN(2)
			c.limiter.Decide(2)
			if r := c.limiter.ReserveN(2); !errors.Is(r.Err(), ratelimit.ErrWaitTooLong) && !errors.Is(r.Err(), ratelimit.ErrQueueFull) {
				c.failf("ReserveN(2) beyond the longest wait: error %v", r.Err())
			}
			if err := c.limiter.WaitN(c.t.Context(), 2); err == nil {
				c.failf("WaitN(2) beyond the longest wait = nil")
			}
			if err := c.limiter.WaitN(caseEnded(), 1); !errors.Is(err, context.Canceled) {
				c.failf("WaitN(1) with an ended context = %v, want context.Canceled", err)
			}
			if after := c.limiter.Decide(0); after != before {
				c.failf("after refusals Decide(0) = %+v, want %+v", after, before)
			}
		}
	}, ratelimit.WithMaxWait(time.Millisecond))
}

func TestCase_B073_TwiceTheLimitAtABoundary(t *testing.T) {
	caseForms(t, ratelimit.FixedCounterPolicy(60, time.Minute), func(c *caseRun) {
		c.at(59.9).exactly(60)
		c.at(60).exactly(60)
	})
	caseForms(t, ratelimit.SlidingLogPolicy(60, time.Minute), func(c *caseRun) {
		c.at(59.9).exactly(60)
		c.at(60).refuse()
		c.at(119.899999999).refuse()
		c.at(119.9).exactly(60)
	})
	caseForms(t, ratelimit.SlidingCounterPolicy(60, time.Minute), func(c *caseRun) {
		c.at(59.9).exactly(60)
		c.at(60).refuse()
		c.at(75).exactly(15)
	})
	caseForms(t, ratelimit.SlidingCounterPolicy(60, time.Minute).WithCells(60), func(c *caseRun) {
		c.at(59.9).exactly(60)
		c.at(60).refuse()
		c.at(119).refuse()                 // the cell of 59 s has just become the oldest
		c.at(119.5).exactly(30)            // half of it is still inside
		c.at(120).exactly(30).remaining(0) // now it has left
	})
}

func TestCase_B074_IdleWindows(t *testing.T) {
	for _, p := range []ratelimit.Policy{ratelimit.SlidingCounterPolicy(10, time.Second)} {
		caseForms(t, p, func(c *caseRun) {
			c.at(0.5).exactly(10)
			c.at(1).refuse()
			c.at(1.5).exactly(5)
		})
		for _, later := range []float64{2, 3, 4.999, 1000} {
			caseForms(t, p, func(c *caseRun) {
				c.at(0.5).exactly(10)
				c.at(later).exactly(10)
			})
		}
	}
	// With cells a count stays until its own cell has left.
	caseForms(t, ratelimit.SlidingCounterPolicy(10, time.Second).WithCells(4), func(c *caseRun) {
		c.at(0.5).allowN(4, true)
		c.at(0.75).exactly(6)
		c.at(1.5).refuse()
		c.at(1.75).exactly(4)
		c.at(2).exactly(6)
		c.at(60).exactly(10)
	})
}

// A Cancel after the moment does nothing; a Settle goes into the window that
// was charged, which for a fixed counter is gone.
func TestCase_B077_RefundIntoItsOwnWindow(t *testing.T) {
	for name, refund := range map[string]func(*ratelimit.Reservation){
		"cancel": func(r *ratelimit.Reservation) { r.Cancel() },
		"settle": func(r *ratelimit.Reservation) { r.Settle(0) },
	} {
		t.Run(name, func(t *testing.T) {
			caseForms(t, ratelimit.FixedCounterPolicy(5, time.Minute), func(c *caseRun) {
				r := c.at(59).reserve(1, 59)
				c.at(61).allowN(3, true).remaining(2)
				c.at(62)
				refund(r)
				c.remaining(2).exactly(2)
			})
			caseForms(t, ratelimit.SlidingCounterPolicy(5, time.Minute), func(c *caseRun) {
				r := c.at(59).reserve(1, 59)
				c.at(61).allowN(3, true).remaining(1)
				c.at(62)
				refund(r)
				if name == "cancel" {
					c.remaining(1).exactly(1)
				} else {
					c.remaining(2).exactly(2) // the previous count is 0 now, not below
				}
			})
			caseForms(t, ratelimit.SlidingLogPolicy(5, time.Minute), func(c *caseRun) {
				r := c.at(59).reserve(1, 59)
				c.at(61).allowN(3, true).remaining(1)
				c.at(62)
				refund(r)
				if name == "cancel" {
					c.remaining(1).exactly(1)
				} else {
					c.remaining(2).exactly(2)
				}
			})
		})
	}
}

func TestCase_B086_ExpiryWithoutATimer(t *testing.T) {
	caseForms(t, ratelimit.FixedCounterPolicy(20, 5*time.Second), func(c *caseRun) {
		c.at(0).exactly(20)
		c.at(4.999).decide(1, false, 0, time.Millisecond, time.Millisecond)
		c.at(5).admit()
	})
	caseAlgorithms(t, 20, 5*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0).exactly(20)
		for k := range time.Duration(200) {
			c.step++
			if d := c.atExactly(k * 100 * caseMs).limiter.Decide(0); d.ResetAfter < 0 || d.RetryAfter < 0 {
				c.failf("Decide(0) = reset %v, retry %v; want neither below 0", d.ResetAfter, d.RetryAfter)
			}
		}
		c.decide(0, true, 20, 0, 0)
	})
}

func TestCase_B109_SteadySlowClient(t *testing.T) {
	caseAlgorithms(t, 5, time.Minute, func(c *caseRun, _ ratelimit.Policy) {
		for s := 0; s <= 600; s += 15 {
			c.at(float64(s)).admit()
		}
	})
}

func TestCase_B112_PreviousWindowIsKept(t *testing.T) {
	caseForms(t, ratelimit.SlidingCounterPolicy(6, time.Minute), func(c *caseRun) {
		c.at(0).exactly(6)
		c.at(60).refuse()
		c.at(70).exactly(1)
		c.at(90).exactly(2)
		c.at(119).exactly(2)
	})
	caseBuckets(t, ratelimit.PerSecond(1), 10, func(c *caseRun) {
		c.at(0).exactly(10)
		c.at(5).exactly(5)
	})
}

func TestCase_B116_SameInstant(t *testing.T) {
	caseAlgorithms(t, 3, time.Second, func(c *caseRun, _ ratelimit.Policy) { c.at(0).exactly(3) })
	caseForms(t, ratelimit.SlidingLogPolicy(3000, time.Second), func(c *caseRun) {
		admitted := 0
		for k := range time.Duration(5000) {
			admitted += c.atExactly(k * 200).count(1)
		}
		if admitted != 3000 {
			c.failf("admitted %d, want 3000", admitted)
		}
		c.at(0.999999999).refuse()
		c.at(1).exactly(1) // the first one has left
		c.at(1.001).remaining(2999).allowN(2999, true).refuse()
	})
	caseAlgorithms(t, 7, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0).allowN(3, true).remaining(4).allowN(5, false).allowN(3, true).exactly(1)
	})
}
