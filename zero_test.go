package ratelimit_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// zeroRefuses checks that l refuses everything and does not panic.
func zeroRefuses(t *testing.T, l ratelimit.Limiter) {
	t.Helper()
	for _, n := range []int{0, 1, -1, math.MaxInt, math.MinInt} {
		if d := l.Decide(n); d.Allowed || d.RetryAfter != ratelimit.Never || d.Remaining != 0 || d.ResetAfter != 0 {
			t.Errorf("Decide(%d): got %+v, want refused for ever", n, d)
		}
		if l.AllowN(n) {
			t.Errorf("AllowN(%d): got true, want false", n)
		}
		r := l.ReserveN(n)
		if r.OK() || r.Err() == nil || r.Delay() != ratelimit.Never {
			t.Errorf("ReserveN(%d): got %v after %v, want refused", n, r.Err(), r.Delay())
		}
		r.Cancel()
		r.Settle(1)
		if err := l.WaitN(context.Background(), n); !errors.Is(err, ratelimit.ErrExceedsLimit) {
			t.Errorf("WaitN(%d): got %v, want ErrExceedsLimit", n, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: got %v, want Canceled", err)
	}
	if l.Allow() || l.Reserve().OK() {
		t.Error("Allow or Reserve: got true, want false")
	}
}

func TestZeroLimitersRefuse(t *testing.T) {
	t.Parallel()
	for _, l := range []interface {
		ratelimit.Limiter
		Policy() ratelimit.Policy
	}{
		new(ratelimit.TokenBucket), new(ratelimit.LeakyBucket), new(ratelimit.SlidingLog),
		new(ratelimit.FixedCounter), new(ratelimit.SlidingCounter),
	} {
		t.Run(fmt.Sprintf("%T", l), func(t *testing.T) {
			zeroRefuses(t, l)
			if got := l.Policy(); got != (ratelimit.Policy{}) {
				t.Errorf("Policy: got %v, want the zero Policy", got)
			}
			if s, ok := l.(interface{ SetPolicy(ratelimit.Policy) error }); ok {
				if err := s.SetPolicy(ratelimit.Blocked()); err == nil {
					t.Error("SetPolicy: got nil, want an error")
				}
				zeroRefuses(t, l)
			}
		})
	}
}

func TestZeroKeyedRefuses(t *testing.T) {
	t.Parallel()
	var k ratelimit.Keyed[string]
	zeroRefuses(t, k.For("key"))
	for _, n := range []int{0, 1, -1, math.MaxInt} {
		if d, err := k.Decide(context.Background(), "key", n); err != nil || d.Allowed || d.RetryAfter != ratelimit.Never {
			t.Errorf("Decide(%d): got %+v, %v, want refused", n, d, err)
		}
		if k.AllowN("key", n) || k.ReserveN("key", n).OK() {
			t.Errorf("AllowN or ReserveN(%d): got true, want false", n)
		}
		for _, wait := range []time.Duration{0, time.Hour, -1, ratelimit.Never} {
			if d, r, err := k.Take(context.Background(), "key", n, wait); err != nil || d.Allowed || r == nil || r.OK() {
				t.Errorf("Take(%d, %v): got %+v, %v, %v, want refused", n, wait, d, r, err)
			}
		}
		if err := k.WaitN(context.Background(), "key", n); !errors.Is(err, ratelimit.ErrExceedsLimit) {
			t.Errorf("WaitN(%d): got %v, want ErrExceedsLimit", n, err)
		}
	}
	if k.Allow("key") || k.Reserve("key").OK() || k.Wait(context.Background(), "key") == nil {
		t.Error("short forms: got admitted, want refused")
	}
	k.Reset("key")
	if k.Len() != 0 || k.Policy() != (ratelimit.Policy{}) {
		t.Errorf("got %d keys under %v, want none", k.Len(), k.Policy())
	}
	if s, ok := any(&k).(interface{ SetPolicy(ratelimit.Policy) error }); ok && s.SetPolicy(ratelimit.Blocked()) == nil {
		t.Error("SetPolicy: got nil, want an error")
	}
	if s, ok := any(&k).(interface{ Stats() ratelimit.Stats }); ok {
		_ = s.Stats()
	}
}

func TestZeroValuesDoNotPanic(t *testing.T) {
	t.Parallel()
	var r ratelimit.Reservation
	r.Cancel()
	r.Settle(0)
	r.Settle(5)
	r.Settle(-5)
	if r.OK() || r.Err() == nil || r.Delay() != ratelimit.Never {
		t.Errorf("Reservation: got %v after %v, want refused", r.Err(), r.Delay())
	}

	var p ratelimit.Policy
	if err := p.Validate(); !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("Policy.Validate: got %v, want ErrInvalidPolicy", err)
	}
	_, _, _, _, _, _ = p.String(), p.Algorithm().String(), p.Limit(), p.Rate().String(), p.Window(), p.Cells()
	_, _, _ = p.Initial(), p.IntervalRefill(), p.ImmediateFirst()
	for _, q := range []ratelimit.Policy{p.WithCells(1), p.WithInitial(1), p.WithIntervalRefill(), p.WithImmediateFirst()} {
		if q.Validate() == nil {
			t.Errorf("Policy %v of the zero Policy: got valid", q)
		}
	}
	if m, ok := any(p).(encoding.TextMarshaler); ok {
		_, _ = m.MarshalText()
	}
	if l, err := ratelimit.New(p); l != nil || !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("New: got %v, %v, want a true nil and ErrInvalidPolicy", l, err)
	}
	if k, err := ratelimit.NewKeyed[string](p); k != nil || !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("NewKeyed: got %v, %v, want nil and ErrInvalidPolicy", k, err)
	}

	var rate ratelimit.Rate
	if num, den := rate.Ratio(); num != 0 || den != 1 {
		t.Errorf("Rate.Ratio: got %d/%d, want 0/1", num, den)
	}
	_ = rate.String()
	for _, p := range []ratelimit.Policy{ratelimit.TokenBucketPolicy(rate, 1), ratelimit.LeakyBucketPolicy(rate, 1)} {
		if err := p.Validate(); !errors.Is(err, ratelimit.ErrInvalidPolicy) {
			t.Errorf("%v: got %v, want ErrInvalidPolicy", p, err)
		}
	}
	if d := (ratelimit.Decision{}); d.Allowed || d.Degraded {
		t.Errorf("Decision: got %+v, want refused", d)
	}
	_ = fmt.Sprintf("%v %+v %v %v", ratelimit.Decision{}, ratelimit.Decision{}, p, rate)
}

// zeroAllocPolicies are wide enough for every call of a test to be admitted, or
// too narrow for any.
var zeroAllocPolicies = map[string]ratelimit.Policy{
	"token-bucket":         ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1e6), 1e6),
	"token-bucket/full":    ratelimit.TokenBucketPolicy(ratelimit.PerHour(1), 1),
	"leaky-bucket":         ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(1e6), 1e6),
	"leaky-bucket/full":    ratelimit.LeakyBucketPolicy(ratelimit.PerHour(1), 1),
	"sliding-log/full":     ratelimit.SlidingLogPolicy(1, 1000*time.Hour), // it may allocate while it grows
	"fixed-counter":        ratelimit.FixedCounterPolicy(1e6, time.Minute),
	"fixed-counter/full":   ratelimit.FixedCounterPolicy(1, 1000*time.Hour),
	"sliding-counter":      ratelimit.SlidingCounterPolicy(1e6, time.Minute).WithCells(4),
	"sliding-counter/full": ratelimit.SlidingCounterPolicy(1, 1000*time.Hour),
	"unlimited":            ratelimit.Unlimited(),
	"blocked":              ratelimit.Blocked(),
}

func TestZeroAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	type pair struct{ a, b int64 }
	ctx := context.Background()
	for name, p := range zeroAllocPolicies {
		l := conformingNew(t, p)
		k, err := ratelimit.NewKeyed[string](p)
		if err != nil {
			t.Fatal(err)
		}
		pairs, err := ratelimit.NewKeyed[pair](p)
		if err != nil {
			t.Fatal(err)
		}
		for what, call := range map[string]func(){
			"Allow":           func() { l.Allow() },
			"AllowN":          func() { l.AllowN(2) },
			"AllowN(-1)":      func() { l.AllowN(-1) },
			"Decide":          func() { l.Decide(1) },
			"Decide(0)":       func() { l.Decide(0) },
			"Keyed.Allow":     func() { k.Allow("key") },
			"Keyed.AllowN":    func() { k.AllowN("key", 2) },
			"Keyed.Decide":    func() { _, _ = k.Decide(ctx, "key", 1) },
			"Keyed.Decide(0)": func() { _, _ = k.Decide(ctx, "key", 0) },
			"Keyed of struct": func() { pairs.Allow(pair{1, 2}) },
		} {
			call()
			if got := testing.AllocsPerRun(200, call); got != 0 {
				t.Errorf("%s, %s: got %v allocations for each call, want 0", name, what, got)
			}
		}
	}
}

func TestZeroKeysThatCannotBeKeys(t *testing.T) {
	t.Parallel()
	p := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(1), 1)
	type deep struct {
		_ string
		_ [2]struct{ _ error }
	}
	zeroKeyError[any](t, p)
	zeroKeyError[error](t, p)
	zeroKeyError[deep](t, p)
	zeroKeyError[[1]fmt.Stringer](t, p)
	if _, err := ratelimit.NewKeyed[struct {
		a *error // a pointer is compared by itself
		b chan any
	}](p); err != nil {
		t.Errorf("pointers to interfaces: got %v, want nil", err)
	}

	k, err := ratelimit.NewKeyed[float64](p)
	if err != nil {
		t.Fatal(err)
	}
	type point struct{ x, y float64 }
	points, err := ratelimit.NewKeyed[point](p)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for range 1000 {
		if k.Allow(nan) || k.AllowN(nan, 0) || k.Reserve(nan).OK() || points.Allow(point{1, nan}) {
			t.Fatal("NaN: got admitted, want refused")
		}
		if d, err := k.Decide(context.Background(), nan, 1); err != nil || d.Allowed || d.RetryAfter != ratelimit.Never {
			t.Fatalf("NaN: got %+v, %v, want refused for ever", d, err)
		}
		if d, r, err := k.Take(context.Background(), nan, 1, time.Hour); err != nil || d.Allowed || r.OK() {
			t.Fatalf("NaN: got %+v, %v, %v, want refused", d, r.Err(), err)
		}
		k.Reset(nan)
	}
	zeroRefuses(t, k.For(nan))
	if k.Len() != 0 || points.Len() != 0 {
		t.Errorf("keys held after NaN: got %d and %d, want none", k.Len(), points.Len())
	}
	// 0 and −0 are equal and so one key.
	if !k.Allow(0) || k.Allow(math.Copysign(0, -1)) {
		t.Error("0 and -0: got two budgets, want one")
	}
}

func zeroKeyError[K comparable](t *testing.T, p ratelimit.Policy) {
	t.Helper()
	if k, err := ratelimit.NewKeyed[K](p); k != nil || !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Errorf("NewKeyed[%T]: got %v, %v, want nil and ErrInvalidPolicy", *new(K), k, err)
	}
}

// A nil context is an error that says so, and charges nothing.
func TestZeroContext(t *testing.T) {
	t.Parallel()
	var none context.Context
	p := ratelimit.SlidingLogPolicy(1, time.Minute)
	k := ratelimit.Must(ratelimit.NewKeyed[string](p))
	_, decideErr := k.Decide(none, "ann", 1)
	_, r, takeErr := k.Take(none, "ann", 1, 0)
	for what, err := range map[string]error{"Decide": decideErr, "Take": takeErr, "Take's reservation": r.Err(), "Wait": k.Wait(none, "ann")} {
		if err == nil || !strings.Contains(err.Error(), "ctx = nil") {
			t.Errorf("%s without a context: got %v, want an error that names ctx", what, err)
		}
	}
	if !k.Allow("ann") {
		t.Error("Allow after that: got false, want true")
	}
}
