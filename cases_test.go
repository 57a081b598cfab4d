package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// The tests named TestCase_ are faults of real rate limiters, each told as a
// timeline with the right answers. Times are offsets from caseStart, which is
// a multiple of every window used.

const caseMs = time.Millisecond

var caseStart = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// caseAt is an offset of so many seconds, to the nanosecond.
func caseAt(seconds float64) time.Duration {
	if seconds < 0 {
		return -caseAt(-seconds)
	}
	return time.Duration(seconds*1e9 + 0.5)
}

// caseClock stands still until it is set. It rings the alarms that it passes.
type caseClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []caseAlarm
	afters int // calls of After
}

type caseAlarm struct {
	at   time.Time
	ring chan time.Time
}

func newCaseClock() *caseClock { return &caseClock{now: caseStart} }

func (c *caseClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *caseClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.afters++
	ring := make(chan time.Time, 1)
	c.alarms = append(c.alarms, caseAlarm{c.now.Add(d), ring})
	c.ringLocked()
	return ring
}

func (c *caseClock) setTime(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.ringLocked()
}

// ringLocked needs mu.
func (c *caseClock) ringLocked() {
	armed := c.alarms[:0]
	for _, a := range c.alarms {
		if a.at.After(c.now) {
			armed = append(armed, a)
		} else {
			a.ring <- c.now
		}
	}
	c.alarms = armed
}

func (c *caseClock) set(offset time.Duration) { c.setTime(caseStart.Add(offset)) }
func (c *caseClock) offset() time.Duration    { return c.Now().Sub(caseStart) }
func (c *caseClock) advance(d time.Duration)  { c.setTime(c.Now().Add(d)) }
func (c *caseClock) armed() (alarms, asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.alarms), c.afters
}

// caseRun drives one limiter along a timeline and names the step, the time, got
// and want when an answer is wrong.
type caseRun struct {
	t       *testing.T
	clock   *caseClock
	limiter ratelimit.Limiter
	step    int
}

func (c *caseRun) failf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("step %d, t = %v: %s", c.step, c.clock.offset(), fmt.Sprintf(format, args...))
}

// at moves the clock to so many seconds.
func (c *caseRun) at(seconds float64) *caseRun { return c.atExactly(caseAt(seconds)) }

func (c *caseRun) atExactly(offset time.Duration) *caseRun {
	c.clock.set(offset)
	return c
}

func (c *caseRun) allowN(n int, want bool) *caseRun {
	c.t.Helper()
	c.step++
	if got := c.limiter.AllowN(n); got != want {
		c.failf("AllowN(%d) = %v, want %v", n, got, want)
	}
	return c
}

func (c *caseRun) admit() *caseRun  { c.t.Helper(); return c.allowN(1, true) }
func (c *caseRun) refuse() *caseRun { c.t.Helper(); return c.allowN(1, false) }

// exactly admits k single units and refuses the next.
func (c *caseRun) exactly(k int) *caseRun {
	c.t.Helper()
	for i := range k {
		c.step++
		if !c.limiter.Allow() {
			c.failf("Allow() = false for unit %d, want %d units admitted", i+1, k)
		}
	}
	return c.refuse()
}

// count makes so many single calls and returns how many were admitted.
func (c *caseRun) count(calls int) (admitted int) {
	for range calls {
		c.step++
		if c.limiter.Allow() {
			admitted++
		}
	}
	return admitted
}

func (c *caseRun) remaining(want int) *caseRun {
	c.t.Helper()
	c.step++
	if got := c.limiter.Decide(0); got.Remaining != want {
		c.failf("Remaining = %d, want %d", got.Remaining, want)
	}
	return c
}

// decide is Decide(n) with all that its answer must be.
func (c *caseRun) decide(n int, allowed bool, remaining int, retry, reset time.Duration) *caseRun {
	c.t.Helper()
	c.step++
	d := c.limiter.Decide(n)
	if d.Allowed != allowed || d.Remaining != remaining || d.RetryAfter != retry || d.ResetAfter != reset {
		c.failf("Decide(%d) = allowed %v, remaining %d, retry %v, reset %v; want %v, %d, %v, %v",
			n, d.Allowed, d.Remaining, d.RetryAfter, d.ResetAfter, allowed, remaining, retry, reset)
	}
	return c
}

func (c *caseRun) retryAfter(n int, want time.Duration) *caseRun {
	c.t.Helper()
	c.step++
	if d := c.limiter.Decide(n); d.Allowed || d.RetryAfter != want {
		c.failf("Decide(%d) = allowed %v, retry %v; want refused, %v", n, d.Allowed, d.RetryAfter, want)
	}
	return c
}

// reserve books n units, which must be due at that many seconds.
func (c *caseRun) reserve(n int, due float64) *ratelimit.Reservation {
	c.t.Helper()
	return c.reserveAt(n, caseAt(due))
}

func (c *caseRun) reserveAt(n int, due time.Duration) *ratelimit.Reservation {
	c.t.Helper()
	c.step++
	r := c.limiter.ReserveN(n)
	if !r.OK() {
		c.failf("ReserveN(%d) is refused: %v; want a moment at %v", n, r.Err(), due)
	}
	if got := c.clock.offset() + r.Delay(); got != due {
		c.failf("ReserveN(%d) is due at %v, want %v", n, got, due)
	}
	return r
}

func newCaseRun(t *testing.T, p ratelimit.Policy, opts ...ratelimit.Option) *caseRun {
	t.Helper()
	clock := newCaseClock()
	l, err := ratelimit.New(p, append(opts, ratelimit.WithClock(clock))...)
	if err != nil {
		t.Fatalf("New(%v): %v", p, err)
	}
	return &caseRun{t: t, clock: clock, limiter: l}
}

// caseForms runs a timeline on every form in which one budget is enforced.
func caseForms(t *testing.T, p ratelimit.Policy, timeline func(*caseRun), opts ...ratelimit.Option) {
	t.Helper()
	for _, form := range []string{"plain", "keyed", "all"} {
		t.Run(form, func(t *testing.T) { timeline(newCaseForm(t, form, p, opts...)) })
	}
}

// casePairs runs a comparison of two budgets in every form.
func casePairs(t *testing.T, p ratelimit.Policy, compare func(a, b *caseRun)) {
	t.Helper()
	for _, form := range []string{"plain", "keyed", "all"} {
		t.Run(form, func(t *testing.T) { compare(newCaseForm(t, form, p), newCaseForm(t, form, p)) })
	}
}

func newCaseForm(t *testing.T, form string, p ratelimit.Policy, opts ...ratelimit.Option) *caseRun {
	t.Helper()
	c := newCaseRun(t, p, opts...)
	switch form {
	case "keyed":
		keyedOpts := []ratelimit.KeyedOption{ratelimit.WithClock(c.clock), ratelimit.WithShards(1)}
		for _, o := range opts {
			keyedOpts = append(keyedOpts, o)
		}
		k, err := ratelimit.NewKeyed[string](p, keyedOpts...)
		if err != nil {
			t.Fatalf("NewKeyed(%v): %v", p, err)
		}
		c.limiter = k.For("key")
	case "all":
		c.limiter = ratelimit.All(c.limiter)
	}
	return c
}

// casePolicies is every algorithm, with limit units and limit per window.
func casePolicies(limit int, window time.Duration) []ratelimit.Policy {
	rate := ratelimit.Per(float64(limit), window)
	return []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(rate, limit),
		ratelimit.TokenBucketPolicy(rate, limit).WithIntervalRefill(),
		ratelimit.LeakyBucketPolicy(rate, limit),
		ratelimit.LeakyBucketPolicy(rate, limit).WithImmediateFirst(),
		ratelimit.SlidingLogPolicy(limit, window),
		ratelimit.FixedCounterPolicy(limit, window),
		ratelimit.SlidingCounterPolicy(limit, window),
		ratelimit.SlidingCounterPolicy(limit, window).WithCells(4),
	}
}

// caseAlgorithms runs a timeline on every algorithm in every form.
func caseAlgorithms(t *testing.T, limit int, window time.Duration, timeline func(*caseRun, ratelimit.Policy), opts ...ratelimit.Option) {
	t.Helper()
	for _, p := range casePolicies(limit, window) {
		t.Run(p.String(), func(t *testing.T) {
			caseForms(t, p, func(c *caseRun) { timeline(c, p) }, opts...)
		})
	}
}

func casePerSecond(n float64, burst int) ratelimit.Policy {
	return ratelimit.TokenBucketPolicy(ratelimit.PerSecond(n), burst)
}

func caseMeter(n float64, capacity int) ratelimit.Policy {
	return ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(n), capacity)
}

// caseQueue is the real queue of the cases: a leaky bucket that releases the
// first unit at once.
func caseQueue(n float64, capacity int) ratelimit.Policy {
	return caseMeter(n, capacity).WithImmediateFirst()
}

// caseLong is the length of a long trace, of which the race detector, which is
// some twenty times slower and finds nothing in it, and -short get a part.
func caseLong(n int) int {
	if raceEnabled || testing.Short() {
		return n / 30
	}
	return n
}

func caseEnded() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// caseBuckets runs a timeline on the token bucket and on the meter, which give
// the same answers to Allow.
func caseBuckets(t *testing.T, rate ratelimit.Rate, burst int, timeline func(*caseRun)) {
	t.Helper()
	for _, p := range []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(rate, burst),
		ratelimit.LeakyBucketPolicy(rate, burst),
		ratelimit.LeakyBucketPolicy(rate, burst).WithImmediateFirst(),
	} {
		t.Run(p.String(), func(t *testing.T) { caseForms(t, p, timeline) })
	}
}
