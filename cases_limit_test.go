package ratelimit_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// By the design a rate of 0 is an error; Blocked says Never.
func TestCase_B020_RateZero(t *testing.T) {
	zero := ratelimit.PerSecond(0)
	caseRejects(t, "rate", ratelimit.TokenBucketPolicy(zero, 3), ratelimit.TokenBucketPolicy(zero, 1),
		ratelimit.TokenBucketPolicy(zero, 3).WithIntervalRefill(), ratelimit.LeakyBucketPolicy(zero, 3))
	caseForms(t, ratelimit.Blocked(), func(c *caseRun) {
		for _, after := range []time.Duration{0, time.Hour, 10 * 365 * 24 * time.Hour} {
			c.atExactly(after).decide(1, false, 0, ratelimit.Never, 0)
			c.decide(0, false, 0, ratelimit.Never, 0)
			if r := c.limiter.Reserve(); r.OK() || r.Delay() != ratelimit.Never {
				c.failf("Reserve() OK = %v, delay %v; want refused, Never", r.OK(), r.Delay())
			}
			if err := c.limiter.Wait(t.Context()); !errors.Is(err, ratelimit.ErrExceedsLimit) {
				c.failf("Wait() = %v, want ErrExceedsLimit", err)
			}
		}
	})
}

func TestCase_B022_BurstZero(t *testing.T) {
	second := ratelimit.PerSecond(1)
	for _, none := range []int{0, -1} {
		caseRejects(t, "burst", ratelimit.TokenBucketPolicy(second, none))
		caseRejects(t, "capacity", ratelimit.LeakyBucketPolicy(second, none))
		caseRejects(t, "limit", ratelimit.SlidingLogPolicy(none, time.Second),
			ratelimit.FixedCounterPolicy(none, time.Second), ratelimit.SlidingCounterPolicy(none, time.Second))
	}
}

func TestCase_B023_DerivedBurst(t *testing.T) {
	for text, burst := range map[string]int{
		"0.5/s": 1, "1/m": 1, "0.3333333333333333/s": 1, "0.33/s": 1, "1/h": 1, "1.5/s": 2, "0.1/10s": 1,
	} {
		t.Run(text, func(t *testing.T) {
			p, err := ratelimit.ParsePolicy(text)
			if err != nil || p.Limit() != burst {
				t.Fatalf("ParsePolicy(%q) has burst %d, error %v; want %d", text, p.Limit(), err, burst)
			}
			caseForms(t, p, func(c *caseRun) { c.exactly(burst) })
		})
	}
}

func TestCase_B026_NegativeN(t *testing.T) {
	caseAlgorithms(t, 10, 10*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		for _, used := range []int{0, 10} {
			c.at(0).allowN(used, true)
			before := c.limiter.Decide(0)
			for _, n := range []int{-1, -5, -1 << 31, 11, 1<<31 - 1} {
				c.allowN(n, false)
				if d := c.limiter.Decide(n); d.Allowed || d.RetryAfter != ratelimit.Never || d.Remaining != 10-used {
					c.failf("Decide(%d) = allowed %v, retry %v, remaining %d; want false, Never, %d",
						n, d.Allowed, d.RetryAfter, d.Remaining, 10-used)
				}
				if r := c.limiter.ReserveN(n); !errors.Is(r.Err(), ratelimit.ErrExceedsLimit) {
					c.failf("ReserveN(%d): error %v, want ErrExceedsLimit", n, r.Err())
				}
				if err := c.limiter.WaitN(c.t.Context(), n); !errors.Is(err, ratelimit.ErrExceedsLimit) {
					c.failf("WaitN(%d) = %v, want ErrExceedsLimit", n, err)
				}
			}
			if after := c.limiter.Decide(0); after != before {
				c.failf("after refusals Decide(0) = %+v, want %+v", after, before)
			}
		}
	})
}

// A refund is a Settle for less: it never raises the budget above its limit.
func TestCase_B026_RefundIsClamped(t *testing.T) {
	caseAlgorithms(t, 10, 10*time.Second, func(c *caseRun, p ratelimit.Policy) {
		if p.Algorithm() == ratelimit.AlgorithmLeakyBucket {
			return // a booking lies in the future: see TestSettle
		}
		c.at(0)
		three := c.reserve(3, 0)
		c.remaining(7)
		three.Settle(0)
		three.Settle(0)
		c.remaining(10)
		ten := c.reserve(10, 0)
		ten.Settle(8)
		ten.Settle(0)
		c.exactly(2)
	})
}

func TestCase_B029_DefaultBurst(t *testing.T) {
	six, err := ratelimit.ParsePolicy("6/m")
	if err != nil {
		t.Fatal(err)
	}
	caseForms(t, six, func(c *caseRun) {
		c.at(0).exactly(6).retryAfter(1, 10*time.Second)
		c.at(10).exactly(1)
	})
	caseForms(t, ratelimit.TokenBucketPolicy(ratelimit.PerMinute(6), 1), func(c *caseRun) {
		c.at(0).exactly(1).retryAfter(1, 10*time.Second)
		c.at(9.999999999).refuse()
		c.at(10).exactly(1)
	})
}

func TestCase_B034_IdleCreditIsCapped(t *testing.T) {
	caseAlgorithms(t, 10, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(1000).exactly(10)
		c.at(2000).exactly(10)
		c.atExactly(50 * 365 * 24 * time.Hour).exactly(10)
	})
}

func TestCase_B035_NoExtraCellAfterIdling(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(5), 5, func(c *caseRun) {
		c.at(0).exactly(5)
		c.at(2).exactly(5)
		c.at(2.2).exactly(1)
	})
}

// The accessors while calls go on. Changes of the policy are tested with
// SetPolicy.
func TestCase_B038_AccessorsRace(t *testing.T) {
	for _, p := range casePolicies(5, time.Millisecond) {
		t.Run(p.String(), func(t *testing.T) {
			l, err := ratelimit.New(p)
			if err != nil {
				t.Fatal(err)
			}
			ruled, ok := l.(interface{ Policy() ratelimit.Policy })
			if !ok {
				t.Fatalf("%T has no method Policy", l)
			}
			var wg sync.WaitGroup
			end := time.Now().Add(20 * time.Millisecond)
			for range 8 {
				wg.Go(func() {
					for time.Now().Before(end) {
						l.Allow()
						r := l.Reserve()
						r.Delay()
						r.Cancel()
						d := l.Decide(1)
						if ruled.Policy() != p || d.Policy != p || d.Policy.String() != p.String() || d.Limit != 5 ||
							d.Remaining < 0 || d.Remaining > 5 || d.RetryAfter < 0 || d.ResetAfter < 0 {
							t.Errorf("Policy() = %v, Decide(1) = %+v; want policy %v and values in range", ruled.Policy(), d, p)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestCase_B065_RemainingNeverAboveTheLimit(t *testing.T) {
	caseAlgorithms(t, 10, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0).allowN(3, true).remaining(7)
		c.at(3600).decide(0, true, 10, 0, 0)
	})
	caseAlgorithms(t, 7, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		rng := rand.New(rand.NewPCG(65, 65))
		var last *ratelimit.Reservation
		for range 5000 {
			c.step++
			c.clock.advance(time.Duration(rng.Int64N(int64(400 * caseMs))))
			n := rng.IntN(9) - 1
			switch rng.IntN(4) {
			case 0:
				last = c.limiter.ReserveN(n)
			case 1:
				if last != nil {
					last.Cancel()
				}
			case 2:
				if last != nil {
					last.Settle(rng.IntN(12))
				}
			}
			d := c.limiter.Decide(n)
			if d.Remaining < 0 || d.Remaining > 7 || d.Limit != 7 || d.RetryAfter < 0 || d.ResetAfter < 0 {
				c.failf("Decide(%d) = %+v, want 0 ≤ remaining ≤ 7 and no negative times", n, d)
			}
		}
	})
}

func TestCase_B067_HammeringDoesNotLockOut(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(1), 5, func(c *caseRun) {
		if got := c.at(0).count(1000); got != 5 {
			c.failf("admitted %d of 1000, want 5", got)
		}
		c.at(1).exactly(1)
	})
	caseAlgorithms(t, 5, 5*time.Second, func(c *caseRun, _ ratelimit.Policy) {
		if got := c.at(0).count(1000); got != 5 {
			c.failf("admitted %d of 1000, want 5", got)
		}
		c.at(10).exactly(5)
	})
}

// Exactly L units pass at one instant, by every way to ask.
func TestCase_B068_ExactlyTheLimit(t *testing.T) {
	ways := map[string]func(*caseRun) bool{
		"Allow":  func(c *caseRun) bool { return c.limiter.Allow() },
		"Decide": func(c *caseRun) bool { return c.limiter.Decide(1).Allowed },
		"Reserve": func(c *caseRun) bool {
			r := c.limiter.Reserve()
			return r.OK() && r.Delay() == 0
		},
		"Wait": func(c *caseRun) bool { return c.limiter.Wait(c.t.Context()) == nil },
	}
	for _, limit := range []int{1, 2, 10} {
		for way, ask := range ways {
			t.Run(way, func(t *testing.T) {
				caseAlgorithms(t, limit, time.Minute, func(c *caseRun, p ratelimit.Policy) {
					queue := p.Algorithm() == ratelimit.AlgorithmLeakyBucket && (way == "Reserve" || way == "Wait")
					if queue {
						return // releases one by one; see B061 and B062
					}
					for round := range 3 {
						c.at(float64(round * 120))
						for i := range limit {
							if c.step++; !ask(c) {
								c.failf("unit %d of %d is refused", i+1, limit)
							}
						}
						if ask(c) {
							c.failf("unit %d is admitted, want %d", limit+1, limit)
						}
						c.refuse().remaining(0)
					}
				}, ratelimit.WithMaxWait(0))
			})
		}
		t.Run("Take", func(t *testing.T) {
			for _, p := range casePolicies(limit, time.Minute) {
				k := ratelimit.Must(ratelimit.NewKeyed[string](p, ratelimit.WithClock(newCaseClock())))
				for i := range limit + 1 {
					d, r, err := k.Take(t.Context(), "key", 1, 0)
					if want := i < limit; d.Allowed != want || r.OK() != want || err != nil {
						t.Errorf("%v: Take %d = allowed %v, OK %v, error %v; want %v", p, i+1, d.Allowed, r.OK(), err, want)
					}
				}
			}
		})
	}
}
