package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// crowdGuard fails the test if f hangs.
func crowdGuard(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		stacks := make([]byte, 1<<16)
		t.Fatalf("hangs:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// crowd runs f in n goroutines that start together.
func crowd(t *testing.T, n int, f func(i int)) {
	t.Helper()
	crowdGuard(t, func() {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range n {
			wg.Go(func() { <-start; f(i) })
		}
		close(start)
		wg.Wait()
	})
}

// crowdPolicies admit 500 units at one instant.
var crowdPolicies = map[string]ratelimit.Policy{
	"token-bucket":          ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 500),
	"token-bucket/interval": ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 500).WithIntervalRefill(),
	"leaky-bucket":          ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(10), 500),
	"sliding-log":           ratelimit.SlidingLogPolicy(500, time.Minute),
	"fixed-counter":         ratelimit.FixedCounterPolicy(500, time.Minute),
	"sliding-counter":       ratelimit.SlidingCounterPolicy(500, time.Minute).WithCells(3),
}

// crowdEach runs a test for every algorithm, plain, keyed and through All.
func crowdEach(t *testing.T, test func(t *testing.T, l ratelimit.Limiter, c *conformance.Clock)) {
	for name, p := range crowdPolicies {
		for maker, newLimiter := range boundMakers {
			if maker == "all" {
				newLimiter = func(t *testing.T, p ratelimit.Policy, c ratelimit.Clock) ratelimit.Limiter {
					wide := ratelimit.SlidingLogPolicy(10_000, time.Hour)
					return ratelimit.All(conformingNew(t, p, ratelimit.WithClock(c)), conformingNew(t, wide, ratelimit.WithClock(c)))
				}
			}
			t.Run(name+"/"+maker, func(t *testing.T) {
				c := conformance.NewClock(boundStart)
				test(t, newLimiter(t, p, c), c)
			})
		}
	}
}

func TestCrowdAdmitsExactlyTheLimit(t *testing.T) {
	t.Parallel()
	crowdEach(t, func(t *testing.T, l ratelimit.Limiter, _ *conformance.Clock) {
		var admitted atomic.Int64
		crowd(t, 16, func(i int) {
			for range 100 {
				switch i % 4 {
				case 0:
					if l.Decide(1).Allowed {
						admitted.Add(1)
					}
				case 1:
					if l.AllowN(2) {
						admitted.Add(2)
					}
				default:
					if l.Allow() {
						admitted.Add(1)
					}
				}
			}
		})
		if got := admitted.Load(); got != 500 {
			t.Errorf("admitted at one instant: got %d, want 500", got)
		}
	})
}

// TestCrowdKeepsBooks reserves, cancels and settles from many goroutines at one
// instant: in the end every unit is accounted for.
func TestCrowdKeepsBooks(t *testing.T) {
	t.Parallel()
	crowdEach(t, func(t *testing.T, l ratelimit.Limiter, c *conformance.Clock) {
		var mu sync.Mutex
		var events []boundEvent
		crowd(t, 8, func(i int) {
			for step := range 60 {
				at := c.Elapsed()
				r := l.ReserveN(1 + i%3)
				if !r.OK() {
					continue
				}
				e := boundEvent{at: at + r.Delay(), entered: at, units: 1 + i%3, booked: true}
				switch (step + i) % 4 {
				case 0:
					if r.Delay() > 0 {
						r.Cancel()
						r.Cancel()
						continue
					}
				case 1:
					if r.Delay() == 0 {
						r.Settle(1)
						e.units = 1
					}
				case 2:
					if l.Allow() {
						mu.Lock()
						events = append(events, boundEvent{at: at, entered: at, units: 1})
						mu.Unlock()
					}
				}
				mu.Lock()
				events = append(events, e)
				mu.Unlock()
			}
		})
		// The clock stood still: what acts now is at most the limit.
		now := 0
		for _, e := range events {
			if e.at == 0 {
				now += e.units
			}
		}
		if now > 500 {
			t.Errorf("units that act at one instant: got %d, want at most 500", now)
		}
		slices.SortStableFunc(events, boundOrder)
		if p := l.Decide(0).Policy; p.Algorithm() == ratelimit.AlgorithmTokenBucket && !p.IntervalRefill() {
			if broken := boundBucket(p)(events); broken != "" {
				t.Error(broken)
			}
		}
		c.Advance(l.Decide(0).ResetAfter)
		if got := l.Decide(0).Remaining; got != 500 {
			t.Errorf("remaining in the end: got %d, want 500", got)
		}
	})
}

// TestCrowdSettlesWhole gives back all that was taken, in a race.
func TestCrowdSettlesWhole(t *testing.T) {
	t.Parallel()
	crowdEach(t, func(t *testing.T, l ratelimit.Limiter, _ *conformance.Clock) {
		if l.Decide(0).Policy.Algorithm() == ratelimit.AlgorithmLeakyBucket || l.Reserve().Delay() > 0 {
			t.Skip("a queue gives back only the newest")
		}
		before := l.Decide(0).Remaining
		crowd(t, 8, func(int) {
			for range 50 {
				r := l.ReserveN(3)
				var once sync.WaitGroup
				for range 2 { // only one of them counts
					once.Go(func() { r.Settle(0) })
				}
				once.Wait()
			}
		})
		if got := l.Decide(0).Remaining; got != before {
			t.Errorf("remaining: got %d, want %d", got, before)
		}
	})
}

func TestCase_B001_OldReadingCreditsNothing(t *testing.T) {
	t.Parallel()
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1000), 1)
	t.Run("real clock", func(t *testing.T) {
		for name, allow := range crowdAllows(t, p) {
			t.Run(name, func(t *testing.T) {
				var admitted atomic.Int64
				start := time.Now()
				crowd(t, 64, func(int) {
					for time.Since(start) < 150*time.Millisecond {
						if allow() {
							admitted.Add(1)
						}
					}
				})
				most := 1 + int64(1000*time.Since(start).Seconds()) + 1
				if got := admitted.Load(); got > most || got < 2 {
					t.Errorf("admitted in %v: got %d, want at most %d", time.Since(start), got, most)
				}
			})
		}
	})
	t.Run("stepped clock", func(t *testing.T) {
		c := conformance.NewClock(boundStart)
		for name, allow := range crowdAllows(t, p, ratelimit.WithClock(c)) {
			t.Run(name, func(t *testing.T) {
				var admitted atomic.Int64
				var stop atomic.Bool
				began := c.Elapsed()
				crowd(t, 65, func(i int) {
					if i == 0 {
						for range 1000 {
							c.Advance(time.Millisecond)
							runtime.Gosched()
						}
						stop.Store(true)
						return
					}
					for !stop.Load() {
						if allow() {
							admitted.Add(1)
						}
					}
				})
				for range 64 {
					if allow() {
						admitted.Add(1)
					}
				}
				if got := admitted.Load(); got > 1001 {
					t.Errorf("admitted in %v: got %d, want at most 1001", c.Elapsed()-began, got)
				}
			})
		}
	})
}

func crowdAllows(t *testing.T, p ratelimit.Policy, opts ...ratelimit.Option) map[string]func() bool {
	t.Helper()
	keyed := []ratelimit.KeyedOption{}
	for _, o := range opts {
		keyed = append(keyed, o)
	}
	k, err := ratelimit.NewKeyed[string](p, keyed...)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func() bool{
		"plain": conformingNew(t, p, opts...).Allow,
		"keyed": func() bool { return k.Allow("key") },
		"all":   ratelimit.All(conformingNew(t, p, opts...), conformingNew(t, ratelimit.Unlimited(), opts...)).Allow,
	}
}

func TestCase_B002_AlternatingClockMintsNothing(t *testing.T) {
	t.Parallel()
	c := conformance.NewClock(boundStart)
	for name, allow := range crowdAllows(t, ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 10), ratelimit.WithClock(c)) {
		t.Run(name, func(t *testing.T) {
			start := c.Elapsed() + 100*time.Second
			c.Set(start)
			for i := range 10 {
				if !allow() {
					t.Fatalf("t=%v: unit %d of the burst: got refused", c.Elapsed(), i)
				}
			}
			for round := range 1000 {
				for _, at := range []time.Duration{start - 500*time.Millisecond, start} {
					if c.Set(at); allow() {
						t.Fatalf("round %d, t=%v: got admitted, want refused", round, c.Elapsed())
					}
				}
			}
			c.Set(start + time.Second)
			if first, second := allow(), allow(); !first || second {
				t.Errorf("t=%v: got %v, %v, want true, false", c.Elapsed(), first, second)
			}
		})
	}
}

// TestCrowdRenewsEpochs lets a bucket of a high rate run for simulated years in
// steps of days, so that its words are renewed while others call.
func TestCrowdRenewsEpochs(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{65535, 4999} {
		p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(rate), 100)
		for maker, newLimiter := range boundMakers {
			t.Run(fmt.Sprint(rate, "/", maker), func(t *testing.T) {
				c := conformance.NewClock(boundStart)
				l := newLimiter(t, p, c)
				most := l.Decide(0).Remaining
				for step := range 120 {
					c.Advance(9*24*time.Hour + time.Duration(step))
					var admitted atomic.Int64
					crowd(t, 4, func(i int) {
						for range 40 {
							if l.Allow() {
								admitted.Add(1)
							}
						}
						if i == 0 {
							l.Decide(0)
							l.ReserveN(2).Cancel()
						}
					})
					// A Reserve without a wait may have taken up to two.
					if got := int(admitted.Load()); got > most || got < most-2 {
						t.Fatalf("step %d, t=%v: admitted %d, want %d", step, c.Elapsed(), got, most)
					}
				}
			})
		}
	}
}

// TestRenewalIsExact crosses renewals with a debt of days: it is
// neither forgiven nor raised by a nanosecond.
func TestRenewalIsExact(t *testing.T) {
	t.Parallel()
	const rate, burst = 65535, 100
	debt := int64(rate * 86400 * 6)
	if int64(int(debt)) != debt {
		t.Skip("such a debt does not fit an int of 32 bits")
	}
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(rate), burst)
	for maker, make := range boundMakers {
		if maker == "all" {
			continue
		}
		t.Run(maker, func(t *testing.T) {
			c := conformance.NewClock(boundStart)
			l := make(t, p, c)
			l.Reserve().Settle(int(debt))
			// One unit passes when all but 99 have been paid, rounded up.
			due := time.Duration((debt-burst+1)/rate)*time.Second + time.Duration(((debt-burst+1)%rate*1_000_000_000+rate-1)/rate)
			for step := 0; c.Elapsed() < due-time.Hour; step++ {
				if got, want := l.Decide(1).RetryAfter, due-c.Elapsed(); got != want {
					t.Fatalf("step %d, t=%v: retry after: got %v, want %v", step, c.Elapsed(), got, want)
				}
				c.Advance(59 * time.Minute)
			}
			if c.Set(due - 1); l.Allow() {
				t.Errorf("t=%v: got admitted, want refused", c.Elapsed())
			}
			if c.Set(due); !l.Allow() || l.Allow() {
				t.Errorf("t=%v: got none or two admitted, want one", c.Elapsed())
			}
		})
	}
}

// TestCrowdOfKeys calls with many keys, sweeps and resets at once.
func TestCrowdOfKeys(t *testing.T) {
	t.Parallel()
	for name, p := range crowdPolicies {
		t.Run(name, func(t *testing.T) {
			c := conformance.NewClock(boundStart)
			k, err := ratelimit.NewKeyed[int](p, ratelimit.WithClock(c), ratelimit.WithShards(2))
			if err != nil {
				t.Fatal(err)
			}
			var kept atomic.Int64 // units of key -1, which nobody resets
			crowd(t, 8, func(i int) {
				for step := range 250 {
					key := (i*131 + step) % 500
					if k.AllowN(-1, 3) {
						kept.Add(3)
					}
					k.Allow(key)
					r := k.ReserveN(key, 400)
					if step%3 == 0 {
						k.Reset(key)
					}
					r.Settle(1)
					r.Cancel()
					if step%50 == 0 && k.Len() > 501 {
						t.Errorf("step %d: got %d keys, want at most 501", step, k.Len())
					}
				}
			})
			if got := kept.Load(); got > 500 || got < 498 {
				t.Errorf("units of one key: got %d, want 498", got)
			}
			// Long after, the sweep forgets all of them.
			c.Advance(time.Hour)
			for i := range 6_000 { // both shards have calls
				k.Allow(-2 - i%20)
			}
			c.Advance(time.Hour)
			for i := range 6_000 {
				k.AllowN(-2-i%20, 501) // never fits: only looks
				k.Decide(context.Background(), -2-i%20, 0)
			}
			if got := k.Len(); got != 0 {
				t.Errorf("keys held in the end: got %d, want 0", got)
			}
		})
	}
}

var sleepPolicies = map[string]ratelimit.Policy{
	"token-bucket":    ratelimit.TokenBucketPolicy(ratelimit.PerSecond(2), 1),
	"leaky-bucket":    ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 5),
	"sliding-log":     ratelimit.SlidingLogPolicy(1, time.Second),
	"fixed-counter":   ratelimit.FixedCounterPolicy(1, time.Second),
	"sliding-counter": ratelimit.SlidingCounterPolicy(1, time.Second),
}

// TestSleepInBubble waits on the default clock inside a bubble, whose time
// stands still until everybody sleeps.
func TestSleepInBubble(t *testing.T) {
	t.Parallel()
	want := map[string][]time.Duration{ // a bubble starts at a whole second
		"token-bucket":    {0, 500 * time.Millisecond, time.Second},
		"leaky-bucket":    {500 * time.Millisecond, time.Second, 1500 * time.Millisecond},
		"sliding-log":     {0, time.Second, 2 * time.Second},
		"fixed-counter":   {0, time.Second, 2 * time.Second},
		"sliding-counter": {0, 2 * time.Second, 4 * time.Second},
	}
	for name, p := range sleepPolicies {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/keyed=", keyed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := conformingNew(t, p)
					if keyed {
						k, err := ratelimit.NewKeyed[string](p)
						if err != nil {
							t.Fatal(err)
						}
						l = k.For("key")
					}
					start := time.Now()
					for i, at := range want[name] {
						if err := l.Wait(t.Context()); err != nil {
							t.Fatalf("wait %d: %v", i, err)
						}
						if got := time.Since(start); got != at {
							t.Errorf("wait %d ended at %v, want %v", i, got, at)
						}
					}
					// A deadline refuses at once; a cancel ends the sleep and gives back.
					before := l.Decide(0)
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					at := time.Now()
					if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ratelimit.ErrWaitTooLong) {
						t.Errorf("beyond the deadline: got %v, want ErrWaitTooLong and DeadlineExceeded", err)
					}
					if !time.Now().Equal(at) || l.Decide(0) != before {
						t.Errorf("beyond the deadline: got %v later %+v, want at once %+v", time.Since(at), l.Decide(0), before)
					}
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(10*time.Millisecond, cancel)
					if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("cancelled midway: got %v, want Canceled", err)
					}
					if got := time.Since(at); got != 10*time.Millisecond {
						t.Errorf("cancelled midway after %v, want 10ms", got)
					}
					// A deadline exactly at the moment is met.
					r := l.Reserve()
					delay := r.Delay()
					r.Cancel()
					ctx, cancel = context.WithTimeout(t.Context(), delay)
					defer cancel()
					if err := l.Wait(ctx); err != nil {
						t.Errorf("deadline at the booked moment: got %v, want nil", err)
					}
				})
			})
		}
	}
}

// TestSleepFCFS lets many waiters go one by one, each at its own moment.
func TestSleepFCFS(t *testing.T) {
	t.Parallel()
	for name, p := range sleepPolicies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := conformingNew(t, p)
				var mu sync.Mutex
				var moments []time.Duration
				start := time.Now()
				for range 5 {
					go func() {
						if err := l.Wait(t.Context()); err != nil {
							t.Errorf("got %v, want nil", err)
						}
						mu.Lock()
						defer mu.Unlock()
						moments = append(moments, time.Since(start))
					}()
				}
				synctest.Wait()
				if name != "leaky-bucket" && l.Allow() {
					t.Error("Allow while others wait: got true, want false")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !slices.IsSorted(moments) || len(slices.Compact(slices.Clone(moments))) != 5 {
					t.Errorf("moments: got %v, want five that differ", moments)
				}
			})
		})
	}
}

// TestSleepOnMock works on the mock of github.com/benbjohnson/clock.
func TestSleepOnMock(t *testing.T) {
	t.Parallel()
	for name, p := range sleepPolicies {
		t.Run(name, func(t *testing.T) {
			mock := clock.NewMock()
			mock.Set(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
			l := conformingNew(t, p, ratelimit.WithClock(mock))
			for l.Decide(0).Remaining > 0 {
				if !l.Allow() {
					t.Fatal("Allow of what remains: got false, want true")
				}
			}
			if l.Allow() {
				t.Fatal("Allow of nothing: got true, want false")
			}
			mock.Add(l.Decide(1).RetryAfter)
			r := l.Reserve()
			if !r.OK() {
				t.Fatalf("Reserve: got %v, want nil", r.Err())
			}
			mock.Add(r.Delay())
			if got := r.Delay(); got != 0 {
				t.Errorf("delay of what is due: got %v, want 0", got)
			}
			done := make(chan error, 1)
			go func() { done <- l.Wait(context.Background()) }()
			for end := time.Now().Add(20 * time.Second); ; {
				select {
				case err := <-done:
					if err != nil {
						t.Errorf("Wait: got %v, want nil", err)
					}
					return
				default:
					mock.Add(100 * time.Millisecond)
				}
				if time.Now().After(end) {
					t.Fatal("Wait hangs")
				}
			}
		})
	}
}

// TestSleepLeavesNothing checks that neither a Wait that ended nor one that was
// cancelled leaves a goroutine. In a bubble, a timer left behind would show as
// time that passes while everything is blocked for good.
func TestSleepLeavesNothing(t *testing.T) {
	known := goleak.IgnoreCurrent()
	for _, p := range sleepPolicies {
		l := conformingNew(t, p)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			for l.Wait(ctx) == nil {
				runtime.Gosched()
			}
			done <- nil
		}()
		time.Sleep(time.Millisecond)
		cancel()
		<-done
	}
	goleak.VerifyNone(t, known)
}
