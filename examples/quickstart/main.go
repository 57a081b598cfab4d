// Quickstart sends the same requests to all five algorithms and draws what
// becomes of them. Time is simulated, so it is done at once:
//
//	go run ./examples/quickstart
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func main() { fmt.Print(draw()) }

func draw() string {
	w := new(strings.Builder)
	fmt.Fprintln(w, "Five algorithms meet the same requests, in simulated time.")
	fmt.Fprintln(w, "█ goes ahead at once   ▒ goes ahead after a wait   · is refused")
	burstAfterBurst(w)
	waitForYourTurn(w)
	acrossTheMinute(w)
	pauseAndReturn(w)
	return w.String()
}

// algorithms are five policies that admit limit per window in the long run.
// They differ in what they do with a burst.
func algorithms(limit int, window time.Duration) []ratelimit.Policy {
	rate := ratelimit.Per(float64(limit), window)
	return []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(rate, limit),
		ratelimit.LeakyBucketPolicy(rate, limit),
		ratelimit.SlidingLogPolicy(limit, window),
		ratelimit.FixedCounterPolicy(limit, window),
		ratelimit.SlidingCounterPolicy(limit, window),
	}
}

// newLimiter returns a limiter on a clock of its own, which stands at start.
func newLimiter(policy ratelimit.Policy, start time.Duration) (ratelimit.Limiter, *stepClock) {
	clock := &stepClock{now: time.Unix(0, 0).Add(start)}
	return ratelimit.Must(ratelimit.New(policy, ratelimit.WithClock(clock))), clock
}

// admitted makes n requests at once and counts those that go ahead.
func admitted(limiter ratelimit.Limiter, n int) (count int) {
	for range n {
		if limiter.Allow() {
			count++
		}
	}
	return count
}

// Nobody waits: a request goes ahead now or not at all.
func burstAfterBurst(w *strings.Builder) {
	const size = 6
	t := newTable(w, "1. Six requests at once, every second. The limit is 4 in 2 seconds.",
		"Buckets earn evenly. Windows are spent at once, and the sliding counter estimates.")
	defer t.flush()

	t.row("", "0 s", "1 s", "2 s", "3 s", "4 s", "in all")
	for _, policy := range algorithms(4, 2*time.Second) {
		// It is one second to the next edge of a fixed window.
		limiter, clock := newLimiter(policy, time.Second)
		var n [5]int
		for i := range n {
			n[i] = admitted(limiter, size)
			clock.step(time.Second)
		}
		t.row(policy.Algorithm(), bar(n[0], size), bar(n[1], size), bar(n[2], size), bar(n[3], size), bar(n[4], size),
			fmt.Sprintf("%2d of %d", n[0]+n[1]+n[2]+n[3]+n[4], len(n)*size))
	}
}

// Everybody waits: a request books its turn and is told when that comes.
func waitForYourTurn(w *strings.Builder) {
	const tick = 500 * time.Millisecond
	t := newTable(w, "2. Six requests at once that wait for their turn. The limit is 4 in 2 seconds.",
		"A token bucket lets a burst through. A leaky bucket spaces it out, and is full at four.")
	defer t.flush()

	t.row("", "0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "refused")
	for _, policy := range algorithms(4, 2*time.Second) {
		limiter, _ := newLimiter(policy, time.Second)
		var turns [5]int
		refused := 0
		for range 6 {
			if r := limiter.Reserve(); r.OK() {
				turns[r.Delay()/tick]++
			} else {
				refused++ // ErrQueueFull
			}
		}
		t.row(policy.Algorithm(), bar(turns[0], turns[0]),
			wait(turns[1]), wait(turns[2]), wait(turns[3]), wait(turns[4]), fmt.Sprintf("%d of 6", refused))
	}
}

// The edge of a fixed window is where its limit can be had twice.
func acrossTheMinute(w *strings.Builder) {
	const size = 60
	t := newTable(w, "3. 60 requests at 59.9 s and 60 more at 60.1 s. The limit is 60 per minute.",
		"A fixed counter starts anew at 60 s, and lets all 120 through in 0.2 seconds.")
	defer t.flush()

	t.row("", "59.9 s", "", "60.1 s", "", "in all", "the next may come")
	for _, policy := range algorithms(size, time.Minute) {
		limiter, clock := newLimiter(policy, 59900*time.Millisecond)
		before := admitted(limiter, size)
		clock.step(200 * time.Millisecond)
		after := admitted(limiter, size)
		t.row(policy.Algorithm(), bar(before/3, size/3), before, bar(after/3, size/3), after,
			fmt.Sprintf("%6d", before+after), fmt.Sprintf("%5.1f s later", limiter.Decide(1).RetryAfter.Seconds()))
	}
}

// A token bucket earns while nobody comes, but never more than its burst.
func pauseAndReturn(w *strings.Builder) {
	const size = 25
	t := newTable(w, "4. 25 requests at once after each pause. A token bucket holds 20 and gains one every 50 ms.",
		"A pause earns as long as it lasts, until the bucket is full.")
	defer t.flush()

	policy := ratelimit.TokenBucketPolicy(ratelimit.Every(50*time.Millisecond), 20)
	limiter, clock := newLimiter(policy, 0)
	for _, pause := range []time.Duration{
		0, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, time.Minute,
	} {
		clock.step(pause)
		n := admitted(limiter, size)
		t.row(fmt.Sprint("after ", pause), bar(n, size), fmt.Sprintf("%2d", n))
	}
}
