package ratelimit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B008_OnePerHour(t *testing.T) {
	caseBuckets(t, ratelimit.PerHour(1), 1, func(c *caseRun) {
		c.at(0).admit()
		c.atExactly(time.Hour - 1).refuse()
		c.atExactly(time.Hour).admit().refuse()
	})
	caseBuckets(t, ratelimit.PerHour(1), 1, func(c *caseRun) {
		c.at(0).admit()
		for at := time.Minute; at < time.Hour; at += time.Minute {
			c.atExactly(at).refuse()
		}
		c.atExactly(time.Hour).admit()
	})
	// The kind: one per period, polled at odd moments, at every algorithm.
	for _, period := range []time.Duration{5, time.Microsecond, time.Second, 7 * time.Hour, 365 * 24 * time.Hour} {
		caseAlgorithms(t, 1, period, func(c *caseRun, p ratelimit.Policy) {
			c.at(0).admit()
			first := period
			if p.Algorithm() == ratelimit.AlgorithmFixedCounter || p.Algorithm() == ratelimit.AlgorithmSlidingCounter {
				d := c.limiter.Decide(1)
				first = d.RetryAfter // by the alignment of the windows
			}
			for i := range time.Duration(37) {
				if poll := first / 37 * i; poll < first {
					c.atExactly(poll).refuse()
				}
			}
			c.atExactly(first - 1).refuse()
			c.atExactly(first).admit().refuse()
		})
	}
}

func TestCase_B010_PollingLosesNothing(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(10), 2, func(c *caseRun) {
		admitted := 0
		for k := range time.Duration(1001) {
			admitted += c.atExactly(k * 19 * caseMs).count(1)
		}
		if admitted != 192 {
			c.failf("admitted %d, want 192", admitted)
		}
	})
	caseBuckets(t, ratelimit.PerSecond(1), 1, func(c *caseRun) {
		for ms := range time.Duration(10_001) {
			c.atExactly(ms*caseMs).allowN(1, ms%1000 == 0)
		}
	})
}

func TestCase_B011_NoDriftInAnHour(t *testing.T) {
	for i, p := range casePolicies(115, time.Second) {
		t.Run(p.String(), func(t *testing.T) {
			seconds := caseLong(3600)
			if i > 0 && p.Algorithm() != ratelimit.AlgorithmFixedCounter {
				seconds = caseLong(600) // the case is about the two others
			}
			c := newCaseRun(t, p)
			total, inSecond := 0, 0
			for ms := range time.Duration(seconds*1000 + 1) {
				if ms%1000 == 0 && ms > 0 {
					windowed := p.Window() > 0 && p.Algorithm() != ratelimit.AlgorithmSlidingCounter
					if windowed && inSecond != 115 {
						c.failf("admitted %d in the second before, want 115", inSecond)
					}
					inSecond = 0
				}
				got := c.atExactly(ms * caseMs).count(1)
				inSecond += got
				total += got
			}
			switch {
			case p.IntervalRefill(): // the last call sees the first unit of a refill
				if total != 115*seconds+1 {
					t.Errorf("t = %ds: admitted %d, want %d", seconds, total, 115*seconds+1)
				}
			case p.Window() == 0 && total != 115+115*seconds:
				t.Errorf("t = %ds: admitted %d, want %d", seconds, total, 115+115*seconds)
			case p.Window() > 0 && total > 115*seconds+115:
				t.Errorf("t = %ds: admitted %d, want at most %d", seconds, total, 115*seconds+115)
			}
		})
	}
}

func TestCase_B013_BigLimitsCountRight(t *testing.T) {
	for _, limit := range []int{31622, 31623, 65535, 1_000_000, 1_000_000_000} {
		for _, p := range casePolicies(limit, time.Second) {
			t.Run(p.String(), func(t *testing.T) {
				if p.IntervalRefill() {
					return // counts by the second; see B032
				}
				caseForms(t, p, func(c *caseRun) {
					for k := range 20 {
						c.atExactly(time.Duration(k) * 100 * caseMs)
						want := limit - 1 // refilled by far more than the one taken
						switch p.Algorithm() {
						case ratelimit.AlgorithmFixedCounter:
							want = limit - 1 - k%10
						case ratelimit.AlgorithmSlidingLog:
							want = limit - min(k+1, 10)
						case ratelimit.AlgorithmSlidingCounter:
							if k >= 10 {
								return // an estimate; see B112
							}
							want = limit - 1 - k
						}
						c.step++
						if d := c.limiter.Decide(1); !d.Allowed || d.Remaining != want || d.Limit != limit {
							c.failf("Decide(1) = allowed %v, remaining %d, limit %d; want true, %d, %d",
								d.Allowed, d.Remaining, d.Limit, want, limit)
						}
					}
				})
			})
		}
	}
}

func TestCase_B014_TwoUnitsPerNanosecond(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(2e9), 10, func(c *caseRun) {
		c.at(0).exactly(10)
		for ns := time.Duration(1); ns <= 1000; ns++ {
			c.atExactly(ns).exactly(2)
		}
		c.atExactly(1003).exactly(6)
		c.atExactly(time.Hour).exactly(10)
		c.atExactly(time.Hour + 1).exactly(2)
	})
}

// By the design a rate of 0 is an error, and Blocked is the explicit plan, which
// refuses n = 0 too.
func TestCase_B016_RateZeroNeverAdmits(t *testing.T) {
	caseRejects(t, "rate", ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(0), 5),
		ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(0), 5).WithImmediateFirst())
	caseForms(t, ratelimit.Blocked(), func(c *caseRun) {
		for range 1000 {
			c.allowN(1, false).allowN(0, false)
		}
		c.atExactly(10*365*24*time.Hour).allowN(1, false).allowN(0, false)
	})
}

// caseRejects checks that no limiter is made of a policy and that the error
// names the field.
func caseRejects(t *testing.T, field string, policies ...ratelimit.Policy) {
	t.Helper()
	for _, p := range policies {
		l, err := ratelimit.New(p)
		if l != nil || !errors.Is(err, ratelimit.ErrInvalidPolicy) {
			t.Errorf("New(%v) = %v, %v; want nil, ErrInvalidPolicy", p, l, err)
		}
		if want := ": " + field + " = "; err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("New(%v): error %q does not name the field %q", p, err, field)
		}
		if k, err := ratelimit.NewKeyed[string](p); k != nil || !errors.Is(err, ratelimit.ErrInvalidPolicy) {
			t.Errorf("NewKeyed(%v) = %v, %v; want nil, ErrInvalidPolicy", p, k, err)
		}
	}
}

func TestCase_B017_QueueAfterALongPause(t *testing.T) {
	caseForms(t, caseQueue(10, 6), func(c *caseRun) {
		c.at(0).reserve(1, 0)
		c.at(100).reserve(1, 100)
		c.at(100.05).reserve(1, 100.1)
	}, ratelimit.WithMaxWait(500*caseMs))
}

// A penalty is what a Settle for far more than was booked leaves behind.
func TestCase_B019_HugePenalty(t *testing.T) {
	const penalty = 1_000_000_000 // seconds
	caseAlgorithms(t, 1, time.Second, func(c *caseRun, p ratelimit.Policy) {
		c.at(0)
		c.limiter.ReserveN(1).Settle(penalty)
		c.refuse()
		c.at(86400).refuse()
		c.at(24.9 * 86400).refuse()
		c.at(penalty - 2).refuse()
		c.atExactly(3 * penalty * time.Second).exactly(1)
	})
}

func TestCase_B019_HugeCapacity(t *testing.T) {
	var capacity int64 = 30000 * 86400
	if int64(int(capacity)) != capacity {
		t.Skip("an int has 32 bits")
	}
	for _, p := range []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(ratelimit.Per(30000, time.Second), int(capacity)),
		ratelimit.LeakyBucketPolicy(ratelimit.Per(30000, time.Second), int(capacity)),
		ratelimit.SlidingLogPolicy(int(capacity), 24*time.Hour),
		ratelimit.FixedCounterPolicy(int(capacity), 24*time.Hour),
		ratelimit.SlidingCounterPolicy(int(capacity), 24*time.Hour),
	} {
		t.Run(p.String(), func(t *testing.T) {
			caseForms(t, p, func(c *caseRun) {
				c.allowN(1, true).remaining(int(capacity - 1))
				c.allowN(int(capacity-1), true).remaining(0).refuse()
			})
		})
	}
}

// By the design an infinite rate is an error, and Unlimited the explicit plan.
func TestCase_B025_InfiniteRate(t *testing.T) {
	inf := ratelimit.PerSecond(math.Inf(1))
	caseRejects(t, "rate", ratelimit.TokenBucketPolicy(inf, 5), ratelimit.TokenBucketPolicy(inf, 0),
		ratelimit.LeakyBucketPolicy(inf, 5))
	caseForms(t, ratelimit.Unlimited(), func(c *caseRun) {
		for _, n := range []int{0, 1, 1000, math.MaxInt} {
			c.allowN(n, true)
			if err := c.limiter.WaitN(t.Context(), n); err != nil {
				c.failf("WaitN(%d) = %v, want nil", n, err)
			}
			c.reserve(n, 0).Cancel()
			c.decide(n, true, math.MaxInt, 0, 0)
		}
	})
}

func TestCase_B028_CostAboveOneSecond(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(0.5), 2, func(c *caseRun) {
		c.at(0).allowN(2, true)
		c.at(3.999999999).allowN(2, false)
		c.at(4).allowN(2, true)
	})
}

func TestCase_B031_SlowRates(t *testing.T) {
	caseBuckets(t, ratelimit.Per(1, 10*time.Second), 1, func(c *caseRun) {
		c.at(0).admit()
		c.at(9.999999999).refuse()
		c.at(10).admit()
	})
	caseAlgorithms(t, 5, time.Hour, func(c *caseRun, _ ratelimit.Policy) {
		for s := range 10 {
			c.at(float64(s)).allowN(1, s < 5)
		}
	})
	caseBuckets(t, ratelimit.PerSecond(3), 1, func(c *caseRun) { c.at(0).exactly(1) })
}

func TestCase_B032_QuantumGrid(t *testing.T) {
	caseForms(t, ratelimit.TokenBucketPolicy(ratelimit.Per(10, time.Minute), 10), func(c *caseRun) {
		c.at(0).exactly(10)
		c.at(6).remaining(1)
		c.at(60).remaining(10)
	})
	caseForms(t, ratelimit.TokenBucketPolicy(ratelimit.Per(10, time.Minute), 10).WithIntervalRefill(), func(c *caseRun) {
		c.at(0).exactly(10)
		c.at(6).remaining(0)
		c.at(59.999999999).remaining(0)
		c.at(60).remaining(10)
	})
	for n := 1; n <= 50; n++ {
		for _, period := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour} {
			for _, burst := range []int{1, n, 2 * n} {
				continuous := ratelimit.TokenBucketPolicy(ratelimit.Per(float64(n), period), burst)
				for _, p := range []ratelimit.Policy{
					continuous,
					continuous.WithIntervalRefill(),
					continuous.WithInitial(0),
					continuous.WithInitial(0).WithIntervalRefill(),
					ratelimit.LeakyBucketPolicy(ratelimit.Per(float64(n), period), burst),
				} {
					t.Run(p.String(), func(t *testing.T) { caseOnePeriod(newCaseRun(t, p), p, n, period) })
				}
			}
		}
	}
}

// caseOnePeriod empties a bucket and expects the whole n back after a period.
func caseOnePeriod(c *caseRun, p ratelimit.Policy, n int, period time.Duration) {
	c.t.Helper()
	burst := p.Limit()
	if p.Initial() > 0 || p.Algorithm() == ratelimit.AlgorithmLeakyBucket {
		c.atExactly(0).allowN(burst, true)
	}
	c.refuse().remaining(0)
	for i := 1; i <= 3; i++ {
		start := time.Duration(i-1) * period
		if p.IntervalRefill() {
			c.atExactly(start + period - 1).remaining(0)
		} else if n <= burst {
			c.atExactly(start + period - 1).remaining(n - 1)
		}
		c.atExactly(start+period).remaining(min(n, burst)).allowN(min(n, burst), true).remaining(0)
	}
}

func TestCase_B064_MeterAndBucketOverThreeSeconds(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(3), 3, func(c *caseRun) {
		want := "0s 100ms 200ms 400ms 700ms 1s 1.4s 1.7s 2s 2.4s 2.7s"
		got := ""
		for k := range time.Duration(30) {
			if c.atExactly(k*100*caseMs).count(1) == 1 {
				got += fmt.Sprint(" ", c.clock.offset())
			}
		}
		if got != " "+want {
			c.failf("admitted at%s, want %s", got, want)
		}
	})
}

func TestCase_B076_RefillAcrossASecond(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(5), 5, func(c *caseRun) {
		c.at(1.9).exactly(5)
		c.at(2.0).refuse()
		c.at(2.1).exactly(1)
	})
}

func TestCase_B110_FastRates(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(6000), 6000, func(c *caseRun) {
		c.at(0).allowN(6000, true).refuse()
		c.at(0.001).exactly(6)
	})
	for _, rate := range []float64{3, 1e6, 1e9, 2e9} {
		caseBuckets(t, ratelimit.PerSecond(rate), 1, func(c *caseRun) { c.at(0).exactly(1) })
	}
}
