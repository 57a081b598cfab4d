package conformance

import (
	"errors"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// moments returns when the first units of a new budget may act, as written down
// from the policies' definitions and not computed as a limiter would.
func (r *run) moments() []time.Duration {
	var (
		p     = r.policy
		at    []time.Duration
		first = r.initial()
	)
	switch p.Algorithm() {
	case ratelimit.AlgorithmTokenBucket:
		num, den := p.Rate().Ratio()
		for i := range first + 4 {
			late := uint64(max(0, i+1-first))
			if p.IntervalRefill() { // two units at each whole second
				at = append(at, time.Duration((late+1)/2)*time.Second)
				continue
			}
			at = append(at, time.Duration((late*den+num-1)/num))
		}
	case ratelimit.AlgorithmLeakyBucket:
		num, den := p.Rate().Ratio()
		for i := range uint64(p.Limit()) {
			slot := i + 1
			if p.ImmediateFirst() {
				slot = i
			}
			at = append(at, time.Duration((slot*den+num-1)/num))
		}
	case ratelimit.AlgorithmSlidingLog:
		for i := range 3 * p.Limit() {
			at = append(at, time.Duration(i/p.Limit())*time.Second)
		}
	case ratelimit.AlgorithmFixedCounter:
		for i := range 3 * p.Limit() {
			at = append(at, max(0, time.Duration(i/p.Limit())*time.Second-phase))
		}
	case ratelimit.AlgorithmSlidingCounter:
		if p.Cells() != 1 {
			return nil
		}
		// Of 5 units in the cell at 0, k have faded after k fifths of the next one.
		for range p.Limit() {
			at = append(at, 0)
		}
		for k := 1; k <= p.Limit(); k++ {
			at = append(at, time.Second-phase+time.Duration(k)*time.Second/time.Duration(p.Limit()))
		}
	}
	return at
}

func reserveMoments(r *run) {
	for _, want := range r.moments() {
		booked := r.reserve(1)
		check(r, "error", booked.Err(), nil)
		check(r, "OK", booked.OK(), true)
		check(r, "delay", booked.Delay(), r.ceil(want))
	}
}

// reserveInOrder checks that a later booking never acts before an earlier one,
// and that nothing is available before a booking.
func reserveInOrder(r *run) {
	for seed := range uint64(40) {
		r.renew(ratelimit.Never)
		rng := r.random(seed)
		latest := time.Duration(0)
		for range 25 {
			if rng.IntN(3) == 0 {
				r.clock.Advance(r.upTo(rng, 500*time.Millisecond))
			}
			booked := r.reserve(1 + rng.IntN(r.limit()))
			if r.is(ratelimit.AlgorithmLeakyBucket) && errors.Is(booked.Err(), ratelimit.ErrQueueFull) {
				continue
			}
			check(r, "error", booked.Err(), nil)
			at := r.clock.Elapsed() + booked.Delay()
			r.that(at >= latest, "moment", at, "not before the one booked earlier")
			latest = at
			if ahead := booked.Delay(); ahead > 0 && !r.is(ratelimit.AlgorithmLeakyBucket) {
				check(r, "remaining while a booking lies ahead", r.decide(0).Remaining, 0)
				d := r.decide(1)
				check(r, "allowed while a booking lies ahead", d.Allowed, false)
				r.that(d.RetryAfter >= ahead, "retry after while a booking lies ahead", d.RetryAfter, ahead)
			}
		}
		r.clock.Set(latest)
		check(r, "delay of what is due", r.reserve(0).Delay(), 0)
	}
}

func queueFull(r *run) {
	for range r.limit() {
		check(r, "error", r.reserve(1).Err(), nil)
	}
	before := r.look()
	booked := r.reserve(1)
	r.that(errors.Is(booked.Err(), ratelimit.ErrQueueFull), "error of a full bucket", booked.Err(), ratelimit.ErrQueueFull)
	check(r, "delay of a full bucket", booked.Delay(), ratelimit.Never)
	check(r, "state", r.look(), before)
	r.clock.Advance(before.Next)
	check(r, "error when there is room", r.reserve(1).Err(), nil)
}

// ahead books units one by one until one lies in the future.
func (r *run) ahead() *ratelimit.Reservation {
	r.Helper()
	for range r.limit() + 1 {
		booked := r.reserve(1)
		if booked.Err() != nil {
			break
		}
		if booked.Delay() > 0 {
			return booked
		}
	}
	r.Fatalf("%v: t=%v: got no booking in the future", r.policy, r.clock.Elapsed())
	return nil
}

func cancelNewest(r *run) {
	for seed := range uint64(40) {
		r.renew(ratelimit.Never)
		rng := r.random(seed)
		r.churn(rng, rng.IntN(6), seed%2 == 1)
		states, booked := []state{}, []*ratelimit.Reservation{}
		for range 6 {
			before := r.look()
			b := r.reserve(1 + rng.IntN(r.limit()))
			if b.Delay() == 0 || b.Err() != nil {
				continue
			}
			states, booked = append(states, before), append(booked, b)
		}
		for i := len(booked) - 1; i >= 0; i-- {
			booked[i].Cancel()
			check(r, "state after cancelling the newest", r.look(), states[i])
			booked[i].Cancel()
			booked[i].Settle(r.limit())
			check(r, "state after cancelling it twice", r.look(), states[i])
		}
	}
}

// cancelOlder cancels bookings that others stand behind: those keep their
// moments, and no more comes back than was taken.
func cancelOlder(r *run) {
	before := r.look()
	older := r.ahead()
	if r.is(ratelimit.AlgorithmLeakyBucket) {
		before = r.look()
		older = r.reserve(1)
	}
	newer := r.reserve(1)
	check(r, "error", newer.Err(), nil)
	at := newer.Delay()
	older.Cancel()
	check(r, "delay of the newer after cancelling the older", newer.Delay(), at)
	third := r.reserve(1)
	if third.OK() {
		r.that(third.Delay() >= at, "delay of one booked after it", third.Delay(), "not before the newer")
	}
	newer.Cancel()
	after := r.decide(0)
	r.that(after.Remaining <= before.Look.Remaining, "remaining after cancels", after.Remaining, before.Look.Remaining)
	older.Cancel()
	newer.Cancel()
	check(r, "state after cancelling twice", r.decide(0), after)
	r.clock.Advance(after.ResetAfter)
	check(r, "remaining in the end", r.decide(0).Remaining, r.limit())
}

func cancelAfterDue(r *run) {
	booked := r.ahead()
	delay := booked.Delay()
	r.clock.Advance(delay - r.subject.Grain)
	check(r, "delay one grain before", booked.Delay(), r.subject.Grain)
	r.clock.Advance(r.subject.Grain)
	check(r, "delay of what is due", booked.Delay(), 0)
	before := r.look()
	booked.Cancel()
	check(r, "state after cancelling what is due", r.look(), before)
	r.clock.Advance(time.Second)
	check(r, "delay of what was due", booked.Delay(), 0)
	before = r.look()
	booked.Cancel()
	check(r, "state after cancelling what was due", r.look(), before)
}

// settle corrects bookings at the instant at which they were made.
func settle(r *run) {
	if r.initial() == 0 {
		r.clock.Advance(10 * time.Second)
	}
	r.drain()
	r.clock.Advance(5 * time.Second) // whole windows, and every bucket is full
	twin := r.twin()
	twin.clock.Advance(r.clock.Elapsed() - 5*time.Second)
	twin.drain()
	twin.clock.Advance(5 * time.Second)

	booked := r.reserve(2)
	check(r, "error", booked.Err(), nil)
	booked.Settle(-1) // not a cost
	booked.Settle(2)
	check(r, "Allow of the same", twin.allow(2), true)
	check(r, "state after settling for the same", r.look(), twin.look())
	booked.Settle(0)
	booked.Cancel()
	check(r, "state after settling twice", r.look(), twin.look())

	r.clock.Advance(5 * time.Second)
	twin.clock.Advance(5 * time.Second)
	more := r.reserve(1)
	more.Settle(3)
	check(r, "Allow of more", twin.allow(3), true)
	if more.OK() && r.is(ratelimit.AlgorithmLeakyBucket) {
		check(r, "remaining after settling for more", r.decide(0).Remaining, twin.decide(0).Remaining)
		return // the level is the same, but less never comes back from a queue
	}
	check(r, "state after settling for more", r.look(), twin.look())

	r.clock.Advance(5 * time.Second)
	twin.clock.Advance(5 * time.Second)
	less := r.reserve(3)
	less.Settle(1)
	check(r, "Allow of less", twin.allow(1), true)
	check(r, "state after settling for less", r.look(), twin.look())
	r.reserve(2).Settle(0)
	check(r, "state after settling for nothing", r.look(), twin.look())

	// Debt beyond the limit makes later work wait, and is paid in the end.
	r.reserve(1).Settle(20 * r.limit())
	d := r.decide(1)
	check(r, "allowed in debt", d.Allowed, false)
	check(r, "remaining in debt", d.Remaining, 0)
	r.that(d.RetryAfter > 2*time.Second && d.RetryAfter < time.Hour, "retry after in debt", d.RetryAfter, "a long wait")
	r.clock.Advance(d.RetryAfter - r.subject.Grain)
	check(r, "allowed one grain before", r.decide(1).Allowed, false)
	r.clock.Advance(r.subject.Grain)
	check(r, "allowed when the debt is paid", r.decide(1).Allowed, true)
}

func maxWait(r *run) {
	const most = time.Second
	free := r.twin()
	r.renew(most)
	for range 50 {
		before := r.look()
		want := free.reserve(1)
		got := r.reserve(1)
		if want.Err() == nil && want.Delay() <= most {
			check(r, "error within the longest wait", got.Err(), nil)
			check(r, "delay", got.Delay(), want.Delay())
			continue
		}
		if want.Err() != nil {
			r.that(errors.Is(got.Err(), ratelimit.ErrQueueFull), "error", got.Err(), ratelimit.ErrQueueFull)
			return
		}
		r.that(errors.Is(got.Err(), ratelimit.ErrWaitTooLong), "error beyond the longest wait", got.Err(), ratelimit.ErrWaitTooLong)
		check(r, "OK", got.OK(), false)
		check(r, "delay", got.Delay(), ratelimit.Never)
		check(r, "state after it", r.look(), before)
		r.clock.Advance(want.Delay() - most - r.subject.Grain)
		check(r, "OK one grain too far away", r.reserve(1).OK(), false)
		r.clock.Advance(r.subject.Grain)
		check(r, "OK exactly at the longest wait", r.reserve(1).OK(), true)
		return
	}
	r.Fatalf("%v: got no refusal", r.policy)
}
