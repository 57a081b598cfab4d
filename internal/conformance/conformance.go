// Package conformance is the one suite that every implementation of a policy
// has to pass: plain limiters, keyed limiters, and limiters in other modules.
// It is for tests only.
package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// A Limiter is what the suite calls. A limiter that has one budget ignores the
// key; the suite uses one key unless the Subject is Keyed.
type Limiter interface {
	Decide(ctx context.Context, key string, n int) (ratelimit.Decision, error)
	Allow(key string, n int) bool
	Reserve(key string, n int) *ratelimit.Reservation
	Wait(ctx context.Context, key string, n int) error
}

// A Subject is an implementation under test.
type Subject struct {
	// New returns a limiter for p that takes its time from c. It refuses waits
	// longer than maxWait, which is ratelimit.Never for no bound.
	New func(t testing.TB, p ratelimit.Policy, c *Clock, maxWait time.Duration) Limiter
	// Grain is the time grid: every answer is a multiple, rounded up. 0 means 1ns.
	Grain time.Duration
	// Policies are those to test; nil means Policies().
	Policies []Named
	// Keyed says that distinct keys have budgets of their own.
	Keyed bool
	// Polls is how often the cheap calls are repeated; 0 means 10,000.
	Polls int

	// What the implementation leaves out.
	NoReserve, NoSettle, NoWait, NoMaxWait, NoBackwards bool
}

// Named is a policy with a name for its subtest.
type Named struct {
	Name   string
	Policy ratelimit.Policy
}

// Policies returns a policy for each algorithm and variant. Every window and
// interval is a second long, so that a clock's start has a phase in it.
func Policies() []Named {
	sliding := ratelimit.SlidingCounterPolicy(5, time.Second)
	return []Named{
		{"token-bucket", ratelimit.TokenBucketPolicy(ratelimit.PerSecond(3), 5)},
		{"token-bucket/initial", ratelimit.TokenBucketPolicy(ratelimit.PerSecond(3), 5).WithInitial(2)},
		{"token-bucket/empty", ratelimit.TokenBucketPolicy(ratelimit.PerSecond(7), 4).WithInitial(0)},
		{"token-bucket/interval", ratelimit.TokenBucketPolicy(ratelimit.Per(2, time.Second), 5).WithIntervalRefill()},
		{"token-bucket/interval+initial", ratelimit.TokenBucketPolicy(ratelimit.Per(2, time.Second), 5).WithIntervalRefill().WithInitial(1)},
		{"leaky-bucket", ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(3), 5)},
		{"leaky-bucket/immediate-first", ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(3), 5).WithImmediateFirst()},
		{"sliding-log", ratelimit.SlidingLogPolicy(5, time.Second)},
		{"fixed-counter", ratelimit.FixedCounterPolicy(5, time.Second)},
		{"sliding-counter", sliding},
		{"sliding-counter/cells=4", sliding.WithCells(4)},
		{"sliding-counter/cells=7", sliding.WithCells(7)},
	}
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if s.Grain == 0 {
		s.Grain = 1
	}
	if s.Polls == 0 {
		s.Polls = 10_000
	}
	policies := s.Policies
	if policies == nil {
		policies = Policies()
	}
	for _, p := range policies {
		t.Run(p.Name, func(t *testing.T) {
			for _, c := range cases {
				if c.skip != nil && c.skip(s, p.Policy) {
					continue
				}
				t.Run(c.name, func(t *testing.T) { c.run(newRun(t, s, p.Policy)) })
			}
		})
	}
	t.Run("unlimited", func(t *testing.T) { unlimited(newRun(t, s, ratelimit.Unlimited())) })
	t.Run("blocked", func(t *testing.T) { blocked(newRun(t, s, ratelimit.Blocked())) })
	if s.Keyed {
		t.Run("keys", func(t *testing.T) {
			for _, p := range policies {
				t.Run(p.Name, func(t *testing.T) { keys(newRun(t, s, p.Policy)) })
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*run)
	skip func(Subject, ratelimit.Policy) bool
}

var cases = []testCase{
	{"burst", burst, nil},
	{"all or nothing", allOrNothing, nil},
	{"refusals cost nothing", refusalsCostNothing, nil},
	{"retry after", retryAfter, nil},
	{"looking charges nothing", looking, nil},
	{"unfit n", unfit, nil},
	{"remaining", remaining, nil},
	{"reset after", resetAfter, nil},
	{"ended context", endedContext, nil},
	{"clock backwards", clockBackwards, func(s Subject, _ ratelimit.Policy) bool { return s.NoBackwards }},
	{"reserve moments", reserveMoments, noReserve},
	{"reserve in order", reserveInOrder, noReserve},
	{"queue full", queueFull, func(s Subject, p ratelimit.Policy) bool {
		return s.NoReserve || p.Algorithm() != ratelimit.AlgorithmLeakyBucket
	}},
	{"cancel newest", cancelNewest, noReserve},
	{"cancel older", cancelOlder, noReserve},
	{"cancel after due", cancelAfterDue, noReserve},
	{"settle", settle, func(s Subject, _ ratelimit.Policy) bool { return s.NoReserve || s.NoSettle }},
	{"max wait", maxWait, func(s Subject, _ ratelimit.Policy) bool { return s.NoReserve || s.NoMaxWait }},
	{"wait at once", waitAtOnce, noWait},
	{"wait sleeps", waitSleeps, noWait},
	{"wait deadline", waitDeadline, noWait},
	{"wait max wait", waitMaxWait, func(s Subject, p ratelimit.Policy) bool { return noWait(s, p) || s.NoMaxWait }},
	{"wait precedence", waitPrecedence, noWait},
	{"wait cancelled", waitCancelled, noWait},
	{"wait due beats context", waitDueBeatsContext, noWait},
}

func noReserve(s Subject, _ ratelimit.Policy) bool { return s.NoReserve }
func noWait(s Subject, _ ratelimit.Policy) bool    { return s.NoReserve || s.NoWait }

// run is one case on one policy.
type run struct {
	*testing.T
	subject Subject
	policy  ratelimit.Policy
	clock   *Clock
	limiter Limiter
	key     string
	step    int
}

// phase is how far the clock's start is into a window of a second.
const phase = 250 * time.Millisecond

func newRun(t *testing.T, s Subject, p ratelimit.Policy) *run {
	r := &run{T: t, subject: s, policy: p, key: "key"}
	r.renew(ratelimit.Never)
	return r
}

// renew starts again with a new clock and a new limiter.
func (r *run) renew(maxWait time.Duration) {
	r.Helper()
	r.clock = NewClock(time.Date(2026, 11, 30, 12, 0, 0, int(phase), time.UTC))
	r.limiter = r.subject.New(r, r.policy, r.clock, maxWait)
	r.step = 0
}

// twin returns a run of the same policy with a clock and limiter of its own.
func (r *run) twin() *run {
	r.Helper()
	t := *r
	t.renew(ratelimit.Never)
	return &t
}

// check fails the case unless got is want.
func check[T comparable](r *run, what string, got, want T) {
	r.Helper()
	r.step++
	if got != want {
		r.Fatalf("%v: step %d, t=%v: %s: got %v, want %v", r.policy, r.step, r.clock.Elapsed(), what, show(got), show(want))
	}
}

// that fails the case unless ok.
func (r *run) that(ok bool, what string, got, want any) {
	r.Helper()
	r.step++
	if !ok {
		r.Fatalf("%v: step %d, t=%v: %s: got %v, want %v", r.policy, r.step, r.clock.Elapsed(), what, show(got), want)
	}
}

func show(v any) any {
	if d, ok := v.(ratelimit.Decision); ok {
		return fmt.Sprintf("%+v", d)
	}
	return v
}

func (r *run) decide(n int) ratelimit.Decision {
	r.Helper()
	d, err := r.limiter.Decide(context.Background(), r.key, n)
	if err != nil {
		r.Fatalf("%v: step %d, t=%v: Decide(%d): got error %v, want nil", r.policy, r.step, r.clock.Elapsed(), n, err)
	}
	return d
}

func (r *run) allow(n int) bool                      { return r.limiter.Allow(r.key, n) }
func (r *run) reserve(n int) *ratelimit.Reservation  { return r.limiter.Reserve(r.key, n) }
func (r *run) wait(ctx context.Context, n int) error { return r.limiter.Wait(ctx, r.key, n) }
func (r *run) limit() int                            { return r.policy.Limit() }
func (r *run) is(a ratelimit.Algorithm) bool         { return r.policy.Algorithm() == a }
func (r *run) ceil(d time.Duration) time.Duration {
	return (d + r.subject.Grain - 1) / r.subject.Grain * r.subject.Grain
}
func (r *run) random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
func (r *run) upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d/r.subject.Grain)+1)) * r.subject.Grain
}

// initial is what a new budget admits at once.
func (r *run) initial() int {
	if r.is(ratelimit.AlgorithmTokenBucket) {
		return r.policy.Initial()
	}
	return r.limit()
}

// drain takes all there is, unit by unit.
func (r *run) drain() (taken int) {
	r.Helper()
	for ; r.allow(1); taken++ {
		if taken > r.limit() {
			r.Fatalf("%v: t=%v: got more than %d units at one instant", r.policy, r.clock.Elapsed(), r.limit())
		}
	}
	return taken
}

// state is all that can be seen of a budget without charging it.
type state struct {
	Look        ratelimit.Decision
	Next, Whole time.Duration // RetryAfter of one unit more than remains, and of the limit
}

func (r *run) look() state {
	r.Helper()
	s := state{Look: r.decide(0)}
	if s.Look.Remaining < r.limit() {
		s.Next = r.decide(s.Look.Remaining + 1).RetryAfter
		s.Whole = r.decide(r.limit()).RetryAfter
	}
	return s
}

// churn does the steps of a random schedule: it lets time pass and calls.
func (r *run) churn(rng *rand.Rand, steps int, book bool) {
	for range steps {
		if rng.IntN(3) == 0 {
			r.clock.Advance(r.upTo(rng, 400*time.Millisecond))
		}
		n := 1 + rng.IntN(r.limit())
		if book && rng.IntN(3) == 0 {
			r.reserve(n)
		} else {
			r.allow(n)
		}
	}
}

// testContext is a context whose deadline and end are set by hand, on the test's clock.
type testContext struct {
	context.Context
	deadline time.Time
}

func (c testContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// until returns a context with a deadline on the run's clock; it does not end by itself.
func (r *run) until(d time.Duration) context.Context {
	return testContext{context.Background(), r.clock.Now().Add(d)}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
