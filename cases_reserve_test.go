package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestCase_B040_CancelWithALaterOneBehind(t *testing.T) {
	caseForms(t, casePerSecond(10, 20), func(c *caseRun) {
		c.at(0).reserve(15, 0)
		ten := c.at(0.1).reserve(10, 0.5)
		two := c.at(0.2).reserve(2, 0.7)
		// A balance of -4: five more tokens are half a second away.
		c.at(0.3).retryAfter(1, 500*caseMs)
		ten.Cancel()
		d := c.limiter.Decide(0)
		once := c.limiter.Decide(20)
		if least := 1800 * caseMs; d.Remaining > 2 || once.RetryAfter < least || once.RetryAfter > 2400*caseMs {
			c.failf("after the cancel: remaining %d, 20 units after %v; want at most 2, from %v to 2.4s",
				d.Remaining, once.RetryAfter, least)
		}
		if got := two.Delay(); got != 400*caseMs {
			c.failf("the booking behind is due in %v, want 400ms", got)
		}
		ten.Cancel()
		if again := c.limiter.Decide(20); again != once {
			c.failf("after a second Cancel Decide(20) = %+v, want %+v", again, once)
		}
		c.at(0.7)
		due := c.limiter.Decide(20)
		two.Cancel()
		if after := c.limiter.Decide(20); after != due {
			c.failf("after a Cancel at its moment Decide(20) = %+v, want %+v", after, due)
		}
	})
}

// Cancel is idempotent and does nothing from its moment on, in each algorithm.
func TestCase_B040_CancelTwiceOrTooLate(t *testing.T) {
	caseAlgorithms(t, 4, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0.1).limiter.ReserveN(3)
		before := c.limiter.Decide(4)
		later := c.limiter.ReserveN(1)
		if later.Delay() == 0 {
			before = c.limiter.Decide(4) // due: a Cancel does nothing
		}
		later.Cancel()
		later.Cancel()
		if after := c.limiter.Decide(4); after != before {
			c.failf("after the cancels Decide(4) = %+v, want %+v", after, before)
		}
		last := c.at(3).limiter.ReserveN(2)
		c.clock.advance(last.Delay())
		used := c.limiter.Decide(0)
		last.Cancel()
		if after := c.limiter.Decide(0); after != used {
			c.failf("after a Cancel at its moment Decide(0) = %+v, want %+v", after, used)
		}
	})
}

func TestCase_B041_TwoNeverShareAnInstant(t *testing.T) {
	caseForms(t, casePerSecond(1, 1), func(c *caseRun) {
		c.at(0).reserve(1, 0)
		second := c.reserve(1, 1)
		c.reserve(1, 2)
		second.Cancel()
		if d := c.limiter.Reserve().Delay(); d != time.Second && d < 3*time.Second {
			c.failf("the booking after the cancel is due at %v, want 1s or at least 3s", d)
		}
	})
	// The kind: several cancels, in any order, free no slot twice.
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}, {1, 3}, {2, 1}, {3, 1, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			for _, p := range []ratelimit.Policy{casePerSecond(1, 1), caseQueue(1, 10)} {
				caseForms(t, p, func(c *caseRun) {
					booked := make([]*ratelimit.Reservation, 5)
					for i := range booked {
						booked[i] = c.reserve(1, float64(i))
					}
					taken := map[time.Duration]bool{}
					for _, i := range order {
						booked[i].Cancel()
						booked[i] = nil
					}
					for range 4 {
						booked = append(booked, c.limiter.Reserve())
					}
					for _, r := range booked {
						if r == nil {
							continue
						}
						if d := r.Delay(); taken[d] {
							c.failf("two bookings are due at %v", d)
						} else {
							taken[d] = true
						}
					}
				})
			}
		})
	}
}

// A caseEvent is units that act at a moment.
type caseEvent struct {
	at    time.Duration
	units int64
	r     *ratelimit.Reservation // nil once nothing can change
}

// Random programs of Allow, Reserve, Cancel and Settle keep the bound that the
// algorithm promises, and first come is first served.
func TestCase_B041_BoundsUnderCancels(t *testing.T) {
	for seed := range uint64(90) {
		limit := 1 + int(seed%5)
		window := []time.Duration{time.Second, 3*time.Millisecond + 1, 7}[seed%3]
		for _, p := range casePolicies(limit, window) {
			t.Run(fmt.Sprintf("seed %d/%v", seed, p), func(t *testing.T) {
				form := []string{"plain", "keyed", "all"}[seed/3%3]
				c := newCaseForm(t, form, p)
				events := caseRandomProgram(c, p, rand.New(rand.NewPCG(seed, 41)), int64(window))
				sort.SliceStable(events, func(i, j int) bool { return events[i].at < events[j].at })
				caseCheckBound(c, p, int64(limit), int64(window), events)
			})
		}
	}
}

func caseRandomProgram(c *caseRun, p ratelimit.Policy, rng *rand.Rand, window int64) (events []caseEvent) {
	limit := p.Limit()
	queue := p.Algorithm() == ratelimit.AlgorithmLeakyBucket
	booked := []*caseEvent{}
	newest := time.Duration(0) // the moment of the newest booking in force
	for range 150 {
		c.step++
		if rng.IntN(3) > 0 {
			c.clock.advance(time.Duration(rng.Int64N(window + 1)))
		}
		now, n := c.clock.offset(), 1+rng.IntN(limit)
		switch op := rng.IntN(6); {
		case op == 0 && !queue:
			if c.limiter.AllowN(n) {
				if now < newest {
					c.failf("AllowN(%d) = true before the booking at %v", n, newest)
				}
				events = append(events, caseEvent{at: now, units: int64(n)})
			}
		case op <= 3:
			r := c.limiter.ReserveN(n)
			if !r.OK() {
				continue
			}
			at := now + r.Delay()
			if at < newest {
				c.failf("ReserveN(%d) is due at %v, before an earlier booking at %v", n, at, newest)
			}
			booked = append(booked, &caseEvent{at: at, units: int64(n), r: r})
		case len(booked) > 0:
			e := booked[rng.IntN(len(booked))]
			switch {
			case e.r == nil:
			case op == 4 && now < e.at:
				e.r.Cancel()
				e.r, e.units = nil, 0
			case op == 4:
				e.r.Cancel() // too late
			default:
				e.units = rng.Int64N(e.units + 1)
				e.r.Settle(int(e.units))
				e.r = nil
			}
		}
		newest = 0
		for _, e := range booked {
			if e.units > 0 {
				newest = max(newest, e.at)
			}
		}
	}
	for _, e := range booked {
		if e.units > 0 {
			events = append(events, *e)
		}
	}
	return events
}

// caseCheckBound checks every interval that ends and begins with an event. The
// moments of bookings are rounded up to a nanosecond, hence the one more here
// and there. Limit units are limit per window.
func caseCheckBound(c *caseRun, p ratelimit.Policy, limit, window int64, events []caseEvent) {
	c.t.Helper()
	for j := range events {
		var units int64
		for i := j; i >= 0; i-- {
			length := int64(events[j].at - events[i].at)
			units += events[i].units
			over := false
			switch p.Algorithm() {
			case ratelimit.AlgorithmTokenBucket:
				over = units*window > limit*(window+length+1)
				if p.IntervalRefill() {
					over = units > limit+limit*(length/window+1)
				}
			case ratelimit.AlgorithmLeakyBucket: // the gap before each booking is its units' time
				over = i < j && (units-events[i].units)*window > limit*(length+1)
			case ratelimit.AlgorithmSlidingLog:
				over = length < window && units > limit
			case ratelimit.AlgorithmFixedCounter:
				epoch := caseStart.UnixNano()
				over = (epoch+int64(events[i].at))/window == (epoch+int64(events[j].at))/window && units > limit
			case ratelimit.AlgorithmSlidingCounter:
				within := length*int64(p.Cells()) < window*int64(p.Cells()-1) || length == 0
				over = within && units > limit || length < window && units > 2*limit
			}
			if over {
				c.failf("%v: %d units act from %v to %v", p, units, events[i].at, events[j].at)
			}
		}
	}
}
