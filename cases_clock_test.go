package ratelimit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B004_ClockJumpsBack(t *testing.T) {
	t.Run("eight hours", func(t *testing.T) {
		caseBuckets(t, ratelimit.PerSecond(10), 1, func(c *caseRun) {
			c.at(0).admit()
			c.at(0.1).admit()
			c.at(-28800).refuse().remaining(0)
			c.at(-28799.9).refuse()
			c.at(0.15).refuse()
			c.at(0.2).admit().refuse()
		})
	})
	t.Run("a jump takes nothing away", func(t *testing.T) {
		caseAlgorithms(t, 5, 500*caseMs, func(c *caseRun, _ ratelimit.Policy) {
			c.at(5).allowN(0, true)
			c.at(4.999).remaining(5).allowN(5, true).refuse()
		})
	})
}

// A clock that goes backwards answers as one that stands still does, in every
// method.
func TestCase_B004_BackwardsIsStandingStill(t *testing.T) {
	for _, p := range casePolicies(4, time.Second) {
		t.Run(p.String(), func(t *testing.T) {
			casePairs(t, p, func(jumping, standing *caseRun) {
				rng := rand.New(rand.NewPCG(4, 4))
				var highest time.Duration
				for i := range 3000 {
					now := highest + time.Duration(rng.Int64N(int64(300*caseMs)))
					if i%3 == 0 {
						now = highest - time.Duration(rng.Int64N(int64(time.Hour)))
					}
					highest = max(highest, now)
					jumping.atExactly(now)
					standing.atExactly(highest)
					jumping.step++
					n := rng.IntN(5)
					switch i % 4 {
					case 0, 1:
						got, want := jumping.limiter.Decide(n), standing.limiter.Decide(n)
						if got != want {
							jumping.failf("highest reading %v: Decide(%d) = %+v, want %+v", highest, n, got, want)
						}
					case 2:
						if got, want := jumping.limiter.AllowN(n), standing.limiter.AllowN(n); got != want {
							jumping.failf("highest reading %v: AllowN(%d) = %v, want %v", highest, n, got, want)
						}
					case 3:
						got, want := jumping.limiter.ReserveN(n), standing.limiter.ReserveN(n)
						if got.OK() != want.OK() || got.Delay() != want.Delay() {
							jumping.failf("highest reading %v: ReserveN(%d): OK %v, delay %v; want %v, %v",
								highest, n, got.OK(), got.Delay(), want.OK(), want.Delay())
						}
						if rng.IntN(2) == 0 {
							got.Cancel()
							want.Cancel()
						}
					}
				}
			})
		})
	}
}

func TestCase_B005_MeterDrainsBackwards(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(1), 5, func(c *caseRun) {
		c.at(100).exactly(5)
		c.at(97).refuse()
		c.at(100).refuse()
		c.at(101).exactly(1)
	})
}

// The rate of the case, 2.25e15/s, is a construction error by the design; the
// highest rate permitted, and every other algorithm, stand in for it.
func TestCase_B007_ClockStartsAtZeroTime(t *testing.T) {
	if l, err := ratelimit.New(casePerSecond(2147483647*1048576, 1000)); err == nil || l != nil {
		t.Fatalf("New with 2.25e15/s = %v, %v; want nil and an error", l, err)
	}
	policies := append(casePolicies(1000, time.Hour), casePerSecond(2e9, 1000), caseMeter(2e9, 1000))
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			clock := newCaseClock()
			clock.setTime(time.Time{})
			l, err := ratelimit.New(p, ratelimit.WithClock(clock))
			if err != nil {
				t.Fatal(err)
			}
			c := &caseRun{t: t, clock: clock, limiter: l}
			c.at(0).allowN(1000, true).refuse().remaining(0)
		})
	}
}

// A step of the clock by more than 292 years does not overflow either.
func TestCase_B007_HugeSteps(t *testing.T) {
	for _, p := range append(casePolicies(3, time.Hour), casePerSecond(2e9, 3), caseMeter(2e9, 3)) {
		t.Run(p.String(), func(t *testing.T) {
			c := newCaseRun(t, p)
			for _, year := range []int{2027, 2226, 9999, 1, 9999, 20000} {
				earlier := year == 1 || year == 9999 && c.step > 12
				c.clock.setTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
				c.step++
				switch got := c.count(4); {
				case !earlier && got != 3:
					c.failf("year %d: %d of 4 admitted, want 3", year, got)
				case earlier && got != 0:
					c.failf("year %d: %d of 4 admitted while the clock was behind, want 0", year, got)
				}
			}
		})
	}
}

func TestCase_B083_SweepWithAnOlderReading(t *testing.T) {
	for _, p := range casePolicies(2, time.Minute) {
		t.Run(p.String(), func(t *testing.T) {
			clock := newCaseClock()
			k := ratelimit.Must(ratelimit.NewKeyed[int](p, ratelimit.WithClock(clock), ratelimit.WithShards(1)))
			clock.set(10 * time.Second)
			for key := range 100 {
				if !k.AllowN(key, 2) {
					t.Fatalf("key %d, t = 10s: AllowN(2) = false, want true", key)
				}
			}
			clock.set(9900 * caseMs)
			for range 10_000 { // more than enough to sweep all keys
				k.Allow(0)
			}
			if got := k.Len(); got != 100 {
				t.Errorf("t = 9.9s: Len() = %d, want all 100", got)
			}
			for key := range 100 {
				if k.Allow(key) {
					t.Fatalf("key %d, t = 9.9s: Allow = true, want false: its budget is used up", key)
				}
			}
		})
	}
}
