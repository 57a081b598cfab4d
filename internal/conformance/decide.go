package conformance

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func burst(r *run) {
	first := r.initial()
	check(r, "remaining of a new budget", r.decide(0).Remaining, first)
	for i := range first {
		d := r.decide(1)
		check(r, "allowed", d.Allowed, true)
		check(r, "limit", d.Limit, r.limit())
		check(r, "remaining", d.Remaining, first-i-1)
		check(r, "retry after of what is allowed", d.RetryAfter, 0)
		check(r, "policy", d.Policy, r.policy)
		check(r, "degraded", d.Degraded, false)
		r.that(d.ResetAfter > 0 && d.ResetAfter < ratelimit.Never, "reset after", d.ResetAfter, "a positive wait")
	}
	for range 3 {
		d := r.decide(1)
		check(r, "allowed beyond the limit", d.Allowed, false)
		check(r, "remaining of nothing", d.Remaining, 0)
		r.that(d.RetryAfter > 0 && d.RetryAfter < ratelimit.Never, "retry after of a refusal", d.RetryAfter, "a positive wait")
		check(r, "Allow beyond the limit", r.allow(1), false)
	}
}

func allOrNothing(r *run) {
	first := r.initial()
	if first < r.limit() {
		check(r, "more than there is", r.allow(first+1), false)
	}
	if first > 0 {
		check(r, "all there is", r.allow(first), true)
	}
	check(r, "one more", r.allow(1), false)
	check(r, "remaining", r.decide(0).Remaining, 0)
}

func refusalsCostNothing(r *run) {
	twin := r.twin()
	r.drain()
	twin.drain()
	for step := range 200 {
		before := r.look()
		for n := before.Look.Remaining + 1; n <= r.limit(); n++ {
			check(r, "Allow of more than remains", r.allow(n), false)
			check(r, "Decide of more than remains", r.decide(n).Allowed, false)
		}
		check(r, "state after refusals", r.look(), before)
		check(r, "state against a twin never refused", before.Look, twin.decide(0))
		if step%7 == 6 {
			check(r, "Allow against a twin never refused", r.allow(1), twin.allow(1))
		}
		r.clock.Advance(13 * time.Millisecond)
		twin.clock.Advance(13 * time.Millisecond)
	}
}

// retryAfter obeys RetryAfter and one grain less from many states.
func retryAfter(r *run) {
	for seed := range uint64(40) {
		r.renew(ratelimit.Never)
		rng := r.random(seed)
		r.churn(rng, 1+rng.IntN(12), !r.subject.NoReserve && seed%2 == 1)
		n := 1 + rng.IntN(r.limit())
		d := r.decide(n)
		if d.Allowed {
			continue
		}
		r.that(d.RetryAfter > 0 && d.RetryAfter%r.subject.Grain == 0, "retry after", d.RetryAfter, "a positive multiple of the grain")
		r.clock.Advance(d.RetryAfter - r.subject.Grain)
		early := r.decide(n)
		check(r, "allowed one grain before RetryAfter", early.Allowed, false)
		check(r, "retry after one grain before", early.RetryAfter, r.subject.Grain)
		r.clock.Advance(r.subject.Grain)
		check(r, "allowed at RetryAfter", r.decide(n).Allowed, true)
	}
}

func looking(r *run) {
	twin := r.twin()
	r.churn(r.random(1), 5, false)
	twin.churn(r.random(1), 5, false)
	before := r.look()
	for range r.subject.Polls {
		d := r.decide(0)
		check(r, "state when looked at", d, before.Look)
		check(r, "looking is allowed", d.Allowed, true)
		check(r, "retry after of a look", d.RetryAfter, 0)
	}
	check(r, "Allow of 0", r.allow(0), true)
	check(r, "state after looks at one instant", r.look(), before)
	step := time.Second / time.Duration(r.subject.Polls)
	step = max(r.ceil(step), r.subject.Grain)
	for range r.subject.Polls {
		r.clock.Advance(step)
		r.decide(0)
	}
	twin.clock.Advance(step * time.Duration(r.subject.Polls))
	check(r, "state after looks against a twin never looked at", r.look(), twin.look())
}

func unfit(r *run) {
	r.churn(r.random(2), 3, false)
	before := r.look()
	for _, n := range []int{-1, math.MinInt, r.limit() + 1, math.MaxInt} {
		d := r.decide(n)
		check(r, "allowed", d.Allowed, false)
		check(r, "retry after", d.RetryAfter, ratelimit.Never)
		check(r, "remaining", d.Remaining, before.Look.Remaining)
		check(r, "limit", d.Limit, r.limit())
		check(r, "Allow", r.allow(n), false)
		if !r.subject.NoReserve {
			booked := r.reserve(n)
			check(r, "OK", booked.OK(), false)
			check(r, "delay", booked.Delay(), ratelimit.Never)
			r.that(errors.Is(booked.Err(), ratelimit.ErrExceedsLimit), "error of Reserve", booked.Err(), ratelimit.ErrExceedsLimit)
			booked.Cancel()
			booked.Settle(3)
		}
		if !noWait(r.subject, r.policy) {
			err := r.wait(context.Background(), n)
			r.that(errors.Is(err, ratelimit.ErrExceedsLimit), "error of Wait", err, ratelimit.ErrExceedsLimit)
		}
		check(r, "state", r.look(), before)
	}
	if !r.subject.NoReserve {
		booked := r.reserve(0)
		check(r, "OK of 0", booked.OK(), true)
		check(r, "delay of 0", booked.Delay(), 0)
		booked.Cancel()
		check(r, "state after 0", r.look(), before)
	}
}

// remaining takes what is said to remain, and one more.
func remaining(r *run) {
	for seed := range uint64(40) {
		r.renew(ratelimit.Never)
		rng := r.random(seed)
		r.churn(rng, rng.IntN(12), !r.subject.NoReserve && seed%2 == 1)
		left := r.decide(0).Remaining
		r.that(left >= 0 && left <= r.limit(), "remaining", left, "from 0 to the limit")
		if left < r.limit() {
			check(r, "one more than remains", r.allow(left+1), false)
		}
		if left > 0 {
			check(r, "what remains", r.allow(left), true)
		}
		check(r, "remaining after it", r.decide(0).Remaining, 0)
	}
}

// resetAfter waits until the budget is said to be as good as new.
func resetAfter(r *run) {
	for seed := range uint64(40) {
		r.renew(ratelimit.Never)
		rng := r.random(seed)
		r.churn(rng, 1+rng.IntN(12), !r.subject.NoReserve && seed%2 == 1)
		d := r.decide(0)
		if d.Remaining < r.limit() {
			r.that(d.ResetAfter > 0, "reset after of a used budget", d.ResetAfter, "a positive wait")
		}
		if d.ResetAfter == 0 {
			continue
		}
		check(r, "reset after, off the grid by", d.ResetAfter%r.subject.Grain, 0)
		r.clock.Advance(d.ResetAfter - r.subject.Grain)
		check(r, "reset after one grain before", r.decide(0).ResetAfter, r.subject.Grain)
		r.clock.Advance(r.subject.Grain)
		check(r, "reset after of a budget as good as new", r.decide(0).ResetAfter, 0)
		check(r, "remaining of a budget as good as new", r.decide(0).Remaining, r.limit())
		check(r, "the limit of a budget as good as new", r.allow(r.limit()), true)
	}
}

func endedContext(r *run) {
	before := r.look()
	d, err := r.limiter.Decide(ended(), r.key, 1)
	if err == nil { // a plain limiter's Decide has no context
		check(r, "allowed without a context", d.Allowed, r.initial() > 0)
		return
	}
	r.that(errors.Is(err, context.Canceled), "error", err, context.Canceled)
	check(r, "allowed", d.Allowed, false)
	check(r, "state", r.look(), before)
}

// clockBackwards checks that a clock that goes back stands still for the
// limiter until it catches up.
func clockBackwards(r *run) {
	for _, back := range []time.Duration{r.subject.Grain, 700 * time.Millisecond, 8 * time.Hour, 50 * 365 * 24 * time.Hour} {
		r.renew(ratelimit.Never)
		r.clock.Advance(10 * time.Second)
		r.decide(0) // the limiter has seen this moment
		at := r.clock.Elapsed()
		if !r.subject.NoReserve {
			r.reserve(1)
		}
		before := r.look()
		r.clock.Advance(-back)
		check(r, "state when the clock has gone back", r.look(), before)
		check(r, "units when the clock has gone back", r.drain(), before.Look.Remaining)
		drained := r.look()
		for _, d := range []time.Duration{at - back/2, at - r.subject.Grain, at - back, at} {
			r.clock.Set(d)
			check(r, "state while the clock catches up", r.look(), drained)
			check(r, "Allow while the clock catches up", r.allow(1), false)
		}
		r.clock.Advance(r.decide(1).RetryAfter)
		check(r, "Allow once the clock has caught up", r.allow(1), true)
	}
}

func unlimited(r *run) {
	for _, n := range []int{0, 1, 1_000_000, math.MaxInt, math.MaxInt, 1} {
		want := ratelimit.Decision{Allowed: true, Limit: math.MaxInt, Remaining: math.MaxInt, Policy: r.policy}
		check(r, "decision", r.decide(n), want)
		check(r, "Allow", r.allow(n), true)
		if !r.subject.NoReserve {
			booked := r.reserve(n)
			check(r, "OK", booked.OK(), true)
			check(r, "delay", booked.Delay(), 0)
			booked.Cancel()
		}
		if !noWait(r.subject, r.policy) {
			check(r, "Wait", r.wait(context.Background(), n), nil)
			r.that(errors.Is(r.wait(ended(), n), context.Canceled), "Wait with an ended context", nil, context.Canceled)
		}
	}
	check(r, "allowed for -1", r.decide(-1).Allowed, false)
	check(r, "retry after for -1", r.decide(-1).RetryAfter, ratelimit.Never)
}

func blocked(r *run) {
	for _, n := range []int{0, 1, -1, math.MaxInt} {
		check(r, "decision", r.decide(n), ratelimit.Decision{RetryAfter: ratelimit.Never, Policy: r.policy})
		check(r, "Allow", r.allow(n), false)
		if !r.subject.NoReserve {
			booked := r.reserve(n)
			check(r, "OK", booked.OK(), false)
			check(r, "delay", booked.Delay(), ratelimit.Never)
			r.that(errors.Is(booked.Err(), ratelimit.ErrExceedsLimit), "error", booked.Err(), ratelimit.ErrExceedsLimit)
		}
		if !noWait(r.subject, r.policy) {
			err := r.wait(context.Background(), n)
			r.that(errors.Is(err, ratelimit.ErrExceedsLimit), "error of Wait", err, ratelimit.ErrExceedsLimit)
			r.that(errors.Is(r.wait(ended(), n), context.Canceled), "Wait with an ended context", nil, context.Canceled)
		}
	}
}

// keys checks that one key's calls do not touch another's budget.
func keys(r *run) {
	fresh := r.look()
	for _, key := range []string{"", "a", "b", "a:b", "a\x00", "key2"} {
		other := *r
		other.key = key
		check(&other, "state of a new key", other.look(), fresh)
		check(&other, "units of a new key", other.drain(), r.initial())
		check(r, "state of the first key", r.look(), fresh)
	}
	r.clock.Advance(5 * time.Minute)
	check(r, "remaining after a long time", r.decide(0).Remaining, r.limit())
}
