package ratelimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// runningClock is an injected clock that moves by itself.
type runningClock struct{ alarms atomic.Int64 }

func (*runningClock) Now() time.Time { return time.Now() }

func (c *runningClock) After(d time.Duration) <-chan time.Time {
	c.alarms.Add(1)
	return time.After(d)
}

// TestWaitSleepsOnARunningClock: nanoseconds pass between any two readings,
// which is no reason to set the alarm again and again.
func TestWaitSleepsOnARunningClock(t *testing.T) {
	clock := &runningClock{}
	l := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(20), 1, ratelimit.WithClock(clock)))
	require.NoError(t, l.Wait(context.Background()))
	require.NoError(t, l.Wait(context.Background()))
	assert.LessOrEqual(t, clock.alarms.Load(), int64(12), "alarms set for one wait of 50 ms")
}

// TestAllNestedConcurrently builds an All of an All that is in use.
func TestAllNestedConcurrently(t *testing.T) {
	l := ratelimit.Must(ratelimit.NewTokenBucket(ratelimit.PerSecond(1), 1))
	nested := ratelimit.All(l, ratelimit.Must(ratelimit.New(ratelimit.Unlimited())))
	var callers sync.WaitGroup
	callers.Go(func() {
		for range 1000 {
			nested.Decide(1)
		}
	})
	for range 1000 {
		ratelimit.All(nested, l).Decide(1)
	}
	callers.Wait()
	assert.False(t, nested.Allow())
}

// TestAllSweepsForNewKeys: a bounded limiter that is used through All alone has
// to find out that its keys are idle.
func TestAllSweepsForNewKeys(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	policy := ratelimit.FixedCounterPolicy(1, time.Second)
	k := ratelimit.Must(ratelimit.NewKeyed[int](policy, ratelimit.WithClock(clock), ratelimit.WithMaxKeys(4), ratelimit.WithOverflow(ratelimit.Blocked())))
	other := ratelimit.Must(ratelimit.New(ratelimit.Unlimited(), ratelimit.WithClock(clock)))
	for key := range 4 {
		require.True(t, ratelimit.All(k.For(key), other).Allow())
	}
	require.False(t, ratelimit.All(k.For(4), other).Allow(), "all places are taken")
	clock.Advance(time.Minute)
	admitted := 0
	for key := range 100 { // a place is found in a few calls
		if ratelimit.All(k.For(1000+key), other).Allow() {
			admitted++
		}
	}
	assert.Positive(t, admitted, "new keys after all were idle for a minute")
	assert.LessOrEqual(t, k.Len(), 4)
}

// TestSettleAfterSetPolicyTakesNothingFromOthers: after the change the window
// holds what others were charged.
func TestSettleAfterSetPolicyTakesNothingFromOthers(t *testing.T) {
	for _, policyOf := range []func(time.Duration) ratelimit.Policy{
		func(w time.Duration) ratelimit.Policy { return ratelimit.FixedCounterPolicy(10, w) },
		func(w time.Duration) ratelimit.Policy { return ratelimit.SlidingCounterPolicy(10, w) },
	} {
		clock := conformance.NewClock(time.Unix(3600*300_000, 0))
		for name, l := range settables(t, policyOf(time.Second), clock) {
			first := l.ReserveN(10)
			clock.Advance(2 * time.Second)
			require.True(t, l.AllowN(10), name)
			require.NoError(t, l.set(policyOf(time.Hour)))
			first.Settle(0)
			assert.Equal(t, 0, l.Decide(0).Remaining, "%s %s: the ten of others stay charged", l.Decide(0).Policy, name)
		}
	}
}

// TestTakeOfSeveralPoliciesTellsTheWholeWait: the retry suits all policies, and
// is Never where the units take longer to drain than the caller would wait.
func TestTakeOfSeveralPoliciesTellsTheWholeWait(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	ctx := context.Background()
	k := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.TokenBucketPolicy(ratelimit.Every(5*time.Second), 1),
		ratelimit.WithAlso(ratelimit.SlidingLogPolicy(1, 50*time.Second)), ratelimit.WithClock(clock)))
	require.True(t, k.Allow("ann"))
	d, _, err := k.Take(ctx, "ann", 1, time.Second)
	require.NoError(t, err)
	assert.Equal(t, 49*time.Second, d.RetryAfter)
	clock.Advance(d.RetryAfter - 1)
	d, _, _ = k.Take(ctx, "ann", 1, time.Second)
	assert.Equal(t, time.Duration(1), d.RetryAfter)
	clock.Advance(1)
	d, r, _ := k.Take(ctx, "ann", 1, time.Second)
	assert.True(t, d.Allowed)
	assert.Equal(t, time.Second, r.Delay())

	slow := ratelimit.Must(ratelimit.NewKeyedFunc(func(string) ratelimit.Policy {
		return ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1), 5)
	}, ratelimit.WithClock(clock)))
	d, _, _ = slow.Take(ctx, "ann", 1, time.Second/2)
	assert.False(t, d.Allowed)
	assert.Equal(t, ratelimit.Never, d.RetryAfter)
}

func TestTakeFromOverflowSaysWhen(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	k := ratelimit.Must(ratelimit.NewKeyed[int](ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1), ratelimit.WithClock(clock), ratelimit.WithMaxKeys(1)))
	require.True(t, k.Allow(1))
	for i, want := range []time.Duration{0, time.Second, time.Second} {
		d, _, err := k.Take(context.Background(), 2, 1, 0)
		require.NoError(t, err)
		assert.Equal(t, i == 0, d.Allowed, "call %d", i)
		assert.Equal(t, want, d.RetryAfter, "call %d", i)
	}
	k.Reserve(3).Cancel()
	assert.EqualValues(t, 4, k.Stats().Overflowed)
	require.NoError(t, k.SetPolicy(ratelimit.TokenBucketPolicy(ratelimit.PerSecond(2), 1)))
	d, _ := k.Decide(context.Background(), 2, 1)
	assert.Equal(t, time.Second/2, d.RetryAfter, "the overflow budget follows the policy")
}

// TestResetVoidsOnlyItsKey: reservations of the key change nothing any more, and
// those of other keys in its shard still do.
func TestResetVoidsOnlyItsKey(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	k := ratelimit.Must(ratelimit.NewKeyed[string](ratelimit.SlidingLogPolicy(10, time.Minute), ratelimit.WithClock(clock), ratelimit.WithShards(1)))
	ann, bob := k.ReserveN("ann", 5), k.ReserveN("bob", 5)
	k.Reset("ann")
	require.True(t, k.AllowN("ann", 5))
	ann.Settle(0)
	bob.Settle(0)
	assert.Equal(t, 5, k.For("ann").Decide(0).Remaining)
	assert.Equal(t, 10, k.For("bob").Decide(0).Remaining)
	bob = k.ReserveN("bob", 5)
	for i := range 200 {
		k.Reset("someone" + string(rune('a'+i%26)) + string(rune('a'+i/26)))
	}
	bob.Settle(0)
	assert.Equal(t, 5, k.For("bob").Decide(0).Remaining, "after many resets giving back nothing is safe")
}

// TestLimitIsThatOfThePolicyReported for keys of several policies.
func TestLimitIsThatOfThePolicyReported(t *testing.T) {
	clock := conformance.NewClock(time.Unix(1e9, 0))
	second, hour := ratelimit.FixedCounterPolicy(10, time.Second), ratelimit.FixedCounterPolicy(15, time.Hour)
	k := ratelimit.Must(ratelimit.NewKeyed[string](second, ratelimit.WithAlso(hour), ratelimit.WithClock(clock)))
	require.True(t, k.AllowN("ann", 10))
	clock.Advance(time.Second)
	d, _ := k.Decide(context.Background(), "ann", 0)
	assert.Equal(t, hour, d.Policy)
	assert.Equal(t, 15, d.Limit)
	assert.Equal(t, 5, d.Remaining)
}

func TestParsePolicyKeepsLargeBursts(t *testing.T) {
	p, err := ratelimit.ParsePolicy("5000000000/10s")
	if ^uint(0)>>32 == 0 {
		assert.ErrorIs(t, err, ratelimit.ErrInvalidPolicy)
		return
	}
	require.NoError(t, err)
	assert.EqualValues(t, int64(5_000_000_000), p.Limit())
}

// TestAllOverOneOverflowBudget: two keys without a place draw on one budget, of
// which there is not enough for both. Nothing may hang, and nothing is charged.
func TestAllOverOneOverflowBudget(t *testing.T) {
	for _, policy := range []ratelimit.Policy{
		ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1), ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1), 1),
		ratelimit.SlidingLogPolicy(1, time.Second), ratelimit.FixedCounterPolicy(1, time.Second), ratelimit.SlidingCounterPolicy(1, time.Second),
	} {
		clock := conformance.NewClock(time.Unix(1e9, 0))
		k := ratelimit.Must(ratelimit.NewKeyed[string](policy, ratelimit.WithClock(clock), ratelimit.WithMaxKeys(1), ratelimit.WithShards(1)))
		require.True(t, k.Allow("held"))
		all := ratelimit.All(k.For("b"), k.For("c"))
		assert.False(t, all.Reserve().OK(), "%v", policy)
		d := all.Decide(1)
		assert.False(t, d.Allowed, "%v", policy)
		assert.Greater(t, d.RetryAfter, time.Millisecond, "%v: not a wait to spin on", policy)
		assert.True(t, k.Allow("b"), "%v: the refusals have cost nothing", policy)
	}
}

func TestRemainingAfterALoweredLimit(t *testing.T) {
	for _, policyOf := range []func(int) ratelimit.Policy{
		func(n int) ratelimit.Policy { return ratelimit.FixedCounterPolicy(n, time.Minute) },
		func(n int) ratelimit.Policy { return ratelimit.SlidingCounterPolicy(n, time.Minute) },
		func(n int) ratelimit.Policy { return ratelimit.SlidingLogPolicy(n, time.Minute) },
		func(n int) ratelimit.Policy { return ratelimit.LeakyBucketPolicy(ratelimit.PerMinute(1), n) },
	} {
		clock := conformance.NewClock(time.Unix(1e9, 0))
		for name, l := range settables(t, policyOf(5), clock) {
			require.True(t, l.AllowN(5))
			require.NoError(t, l.set(policyOf(2)))
			assert.Equal(t, 0, l.Decide(0).Remaining, "%v %s", policyOf(2), name)
			assert.False(t, l.Allow())
		}
	}
}
