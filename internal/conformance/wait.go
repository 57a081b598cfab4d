package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// peek returns how long a Wait for a unit would take now.
func (r *run) peek() time.Duration {
	r.Helper()
	booked := r.reserve(1)
	check(r, "error of a booking", booked.Err(), nil)
	delay := booked.Delay()
	booked.Cancel()
	return delay
}

// start waits in a goroutine until it sleeps.
func (r *run) start(ctx context.Context, n int) <-chan error {
	r.Helper()
	alarms := r.clock.Alarms()
	done := make(chan error, 1)
	go func() { done <- r.wait(ctx, n) }()
	r.clock.AwaitAlarms(r, alarms+1)
	return done
}

func (r *run) end(done <-chan error) error {
	r.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		r.Fatalf("%v: step %d, t=%v: Wait has not returned after %v", r.policy, r.step, r.clock.Elapsed(), patience)
		return nil
	}
}

// now waits where nothing may sleep.
func (r *run) now(ctx context.Context, n int) error {
	r.Helper()
	done := make(chan error, 1)
	alarms := r.clock.Alarms()
	go func() { done <- r.wait(ctx, n) }()
	err := r.end(done)
	check(r, "alarms of a Wait that does not sleep", r.clock.Alarms(), alarms)
	return err
}

func waitAtOnce(r *run) {
	check(r, "error of Wait for 0", r.now(context.Background(), 0), nil)
	if r.is(ratelimit.AlgorithmLeakyBucket) && !r.policy.ImmediateFirst() {
		return
	}
	r.clock.Advance(5 * time.Second)
	before := r.decide(0).Remaining
	check(r, "error of Wait", r.now(context.Background(), 1), nil)
	check(r, "remaining", r.decide(0).Remaining, before-1)
	r.clock.Advance(5 * time.Second)
	check(r, "error of Wait with a deadline now", r.now(r.until(0), 1), nil)
}

func waitSleeps(r *run) {
	r.ahead()
	delay := r.peek()
	done := r.start(context.Background(), 1)
	r.clock.Advance(delay - r.subject.Grain)
	select {
	case err := <-done:
		r.Fatalf("%v: t=%v: Wait returned %v one grain early", r.policy, r.clock.Elapsed(), err)
	case <-time.After(2 * time.Millisecond):
	}
	r.clock.Advance(r.subject.Grain)
	check(r, "error of Wait", r.end(done), nil)
}

func waitDeadline(r *run) {
	r.ahead()
	before := r.look()
	delay := r.peek()
	for _, early := range []time.Duration{r.subject.Grain, delay, delay + time.Hour} {
		err := r.now(r.until(delay-early), 1)
		r.that(errors.Is(err, ratelimit.ErrWaitTooLong), "error of a Wait beyond the deadline", err, ratelimit.ErrWaitTooLong)
		r.that(errors.Is(err, context.DeadlineExceeded), "error of a Wait beyond the deadline", err, context.DeadlineExceeded)
		check(r, "state after it", r.look(), before)
	}
	done := r.start(r.until(delay), 1)
	r.clock.Advance(delay)
	check(r, "error of a Wait that ends at the deadline", r.end(done), nil)
}

func waitMaxWait(r *run) {
	var delay time.Duration
	for { // the first wait of more than nothing
		if delay = r.reserve(1).Delay(); delay > 0 {
			break
		}
	}
	r.renew(delay - r.subject.Grain)
	for r.reserve(1).OK() {
	}
	before := r.look()
	for _, ctx := range []context.Context{context.Background(), r.until(time.Hour)} {
		err := r.now(ctx, 1)
		r.that(errors.Is(err, ratelimit.ErrWaitTooLong), "error of a Wait too long", err, ratelimit.ErrWaitTooLong)
		r.that(!errors.Is(err, context.DeadlineExceeded), "error of a Wait too long", err, "not a deadline's")
		check(r, "state after it", r.look(), before)
	}
}

func waitPrecedence(r *run) {
	r.drain()
	before := r.look()
	past := testContext{ended(), r.clock.Now().Add(-time.Second)}
	for _, n := range []int{0, 1, r.limit() + 1, -1} {
		err := r.now(past, n)
		r.that(errors.Is(err, context.Canceled), "error with an ended context", err, context.Canceled)
	}
	err := r.now(r.until(-time.Second), r.limit()+1)
	r.that(errors.Is(err, ratelimit.ErrExceedsLimit), "error of too many", err, ratelimit.ErrExceedsLimit)
	r.that(!errors.Is(err, ratelimit.ErrWaitTooLong) && !errors.Is(err, ratelimit.ErrQueueFull), "error of too many", err, "nothing else")
	if err = r.now(r.until(r.subject.Grain), 1); r.is(ratelimit.AlgorithmLeakyBucket) {
		r.that(errors.Is(err, ratelimit.ErrQueueFull), "error of a full queue", err, ratelimit.ErrQueueFull)
		r.that(!errors.Is(err, ratelimit.ErrWaitTooLong), "error of a full queue", err, "nothing else")
	} else {
		r.that(errors.Is(err, ratelimit.ErrWaitTooLong), "error beyond the deadline", err, ratelimit.ErrWaitTooLong)
	}
	check(r, "state", r.look(), before)
}

func waitCancelled(r *run) {
	r.ahead()
	before := r.look()
	cause := errors.New("cause")
	for range 3 {
		ctx, cancel := context.WithCancelCause(context.Background())
		done := r.start(ctx, 1)
		cancel(cause)
		err := r.end(done)
		r.that(errors.Is(err, context.Canceled), "error of a Wait cancelled midway", err, context.Canceled)
		check(r, "state after it", r.look(), before)
	}
}

// waitDueBeatsContext ends the context when the booking is due and the alarm
// has not rung.
func waitDueBeatsContext(r *run) {
	r.ahead()
	delay := r.peek()
	ctx, cancel := context.WithCancel(context.Background())
	done := r.start(ctx, 1)
	r.clock.AdvanceInSilence(delay)
	before := r.look()
	cancel()
	check(r, "error of a Wait that is due when its context ends", r.end(done), nil)
	check(r, "state after it", r.look(), before)
}
