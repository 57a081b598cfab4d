package ratelimit_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// settleCalls records what a reservation's settle was called with.
type settleCalls struct {
	mu      sync.Mutex
	actuals []int
}

func (s *settleCalls) settle(actual int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actuals = append(s.actuals, actual)
}

func TestNewReservation(t *testing.T) {
	type step struct {
		at     float64
		cancel bool // else Settle(actual)
		actual int
	}
	for name, test := range map[string]struct {
		steps []step
		want  []int
	}{
		"nothing":                         {nil, nil},
		"cancel":                          {[]step{{at: 1, cancel: true}}, []int{0}},
		"cancel twice":                    {[]step{{at: 1, cancel: true}, {at: 1, cancel: true}}, []int{0}},
		"cancel at the moment":            {[]step{{at: 2, cancel: true}}, nil},
		"cancel after the moment":         {[]step{{at: 3, cancel: true}}, nil},
		"settle before":                   {[]step{{at: 1, actual: 7}}, []int{7}},
		"settle at the moment":            {[]step{{at: 2, actual: 7}}, []int{7}},
		"settle after":                    {[]step{{at: 9, actual: 7}}, []int{7}},
		"settle to nothing":               {[]step{{at: 9, actual: 0}}, []int{0}},
		"settle to much":                  {[]step{{at: 9, actual: math.MaxInt}}, []int{math.MaxInt}},
		"settle twice":                    {[]step{{at: 1, actual: 7}, {at: 3, actual: 8}}, []int{7}},
		"settle, then cancel":             {[]step{{at: 1, actual: 7}, {at: 1, cancel: true}}, []int{7}},
		"cancel, then settle":             {[]step{{at: 1, cancel: true}, {at: 3, actual: 7}}, []int{0}},
		"negative is ignored":             {[]step{{at: 1, actual: -1}, {at: 1, actual: math.MinInt}}, nil},
		"negative does not use it up":     {[]step{{at: 1, actual: -1}, {at: 1, actual: 7}}, []int{7}},
		"a late cancel does not either":   {[]step{{at: 2, cancel: true}, {at: 3, actual: 7}}, []int{7}},
		"the clock goes back behind it":   {[]step{{at: 2, actual: -1}, {at: 1, cancel: true}}, nil},
		"the clock goes back to before 0": {[]step{{at: -5, cancel: true}}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			clock, calls := newCaseClock(), &settleCalls{}
			r := ratelimit.NewReservation(clock, 2*time.Second, nil, calls.settle)
			highest := 0.0
			for i, s := range test.steps {
				clock.set(caseAt(s.at))
				highest = max(highest, s.at)
				if got, want := r.Delay(), max(0, 2*time.Second-caseAt(highest)); got != want || !r.OK() || r.Err() != nil {
					t.Errorf("step %d, t = %v: Delay() = %v, OK %v, Err %v; want %v, true, nil", i, clock.offset(), got, r.OK(), r.Err(), want)
				}
				if s.cancel {
					r.Cancel()
				} else {
					r.Settle(s.actual)
				}
			}
			if len(calls.actuals) != len(test.want) || len(test.want) == 1 && calls.actuals[0] != test.want[0] {
				t.Errorf("settle was called with %v, want %v", calls.actuals, test.want)
			}
		})
	}
}

func TestNewReservationRefused(t *testing.T) {
	oops := errors.New("oops")
	calls := &settleCalls{}
	for _, clock := range []ratelimit.Clock{nil, newCaseClock()} {
		r := ratelimit.NewReservation(clock, time.Second, oops, calls.settle)
		if r.OK() || r.Err() != oops || r.Delay() != ratelimit.Never {
			t.Errorf("OK %v, Err %v, Delay %v; want false, %v, Never", r.OK(), r.Err(), r.Delay(), oops)
		}
		r.Cancel()
		r.Settle(0)
		r.Settle(5)
	}
	if len(calls.actuals) != 0 {
		t.Errorf("settle was called with %v, want never", calls.actuals)
	}
}

func TestNewReservationDelays(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{
		0: 0, 1: 1, -1: 0, math.MinInt64: 0, time.Hour: time.Hour, math.MaxInt64: math.MaxInt64,
	} {
		r := ratelimit.NewReservation(newCaseClock(), delay, nil, nil)
		if got := r.Delay(); got != want || !r.OK() {
			t.Errorf("delay %v: Delay() = %v, OK %v; want %v, true", delay, got, r.OK(), want)
		}
		r.Cancel() // without a settle
		r.Settle(1)
	}
	calls := &settleCalls{}
	onSystem := ratelimit.NewReservation(nil, time.Hour, nil, calls.settle)
	if got := onSystem.Delay(); got > time.Hour || got < time.Hour-time.Minute {
		t.Errorf("nil clock: Delay() = %v, want just below 1h", got)
	}
	due := ratelimit.NewReservation(nil, 0, nil, calls.settle)
	due.Cancel()
	if due.Delay() != 0 || len(calls.actuals) != 0 {
		t.Errorf("nil clock, due: Delay() = %v, settle calls %v after Cancel; want 0, none", due.Delay(), calls.actuals)
	}
}

func TestNewReservationCountsOnce(t *testing.T) {
	calls := &settleCalls{}
	r := ratelimit.NewReservation(newCaseClock(), time.Hour, nil, calls.settle)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if i%2 == 0 {
				r.Cancel()
			}
			r.Settle(i)
			r.Delay()
		})
	}
	wg.Wait()
	if len(calls.actuals) != 1 {
		t.Errorf("settle was called %d times, want once", len(calls.actuals))
	}
}

// Cancelling the newest booking restores the state before it, in each algorithm.
func TestCancelNewestRestores(t *testing.T) {
	caseAlgorithms(t, 6, time.Second, func(c *caseRun, p ratelimit.Policy) {
		rng := rand.New(rand.NewPCG(6, 6))
		for range 200 {
			c.clock.advance(time.Duration(rng.Int64N(int64(5 * time.Second))))
			c.limiter.ReserveN(1 + rng.IntN(6)) // stays
			var booked []*ratelimit.Reservation
			var before []ratelimit.Decision
			for range 1 + rng.IntN(4) {
				state := c.limiter.Decide(0)
				r := c.limiter.ReserveN(1 + rng.IntN(6))
				if !r.OK() || r.Delay() == 0 {
					continue // nothing to cancel
				}
				booked, before = append(booked, r), append(before, state)
			}
			for i := len(booked) - 1; i >= 0; i-- {
				c.step++
				booked[i].Cancel()
				if got := c.limiter.Decide(0); got != before[i] {
					c.failf("%v: after the cancel of the newest of %d Decide(0) = %+v, want %+v", p, i+1, got, before[i])
				}
			}
		}
	})
}

// A reservation of nothing is due at once and gives nothing back.
func TestReserveNothing(t *testing.T) {
	caseAlgorithms(t, 3, time.Second, func(c *caseRun, _ ratelimit.Policy) {
		c.at(0).allowN(3, true)
		before := c.limiter.Decide(0)
		r := c.reserve(0, 0)
		r.Cancel()
		r.Settle(0)
		if after := c.limiter.Decide(0); after != before {
			c.failf("Decide(0) = %+v, want %+v", after, before)
		}
	})
}
