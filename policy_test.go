package ratelimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

const policyYear = 8766 * time.Hour

// policyError checks that an error wraps ErrInvalidPolicy and has all the parts.
func policyError(t *testing.T, from string, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ratelimit.ErrInvalidPolicy) {
		t.Fatalf("%s: error %v, want ErrInvalidPolicy", from, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %q, want it to say %q", from, err, part)
		}
	}
}

// Each error names the field, the value and what is allowed, wherever the
// policy is used.
func TestPolicyErrors(t *testing.T) {
	rate := ratelimit.PerSecond(10)
	for _, test := range []struct {
		policy ratelimit.Policy
		want   []string // field, value and what is allowed
	}{
		{ratelimit.Policy{}, []string{"algorithm = none", "must be set"}},
		{ratelimit.Policy{}.WithCells(2), []string{"cells", "not a variant of none"}},

		{ratelimit.TokenBucketPolicy(ratelimit.Rate{}, 1), []string{"rate = 0/0s", "above 0"}},
		{casePerSecond(0, 1), []string{"rate = 0/1s", "above 0"}},
		{casePerSecond(-2, 1), []string{"rate = -2/1s", "above 0"}},
		{casePerSecond(math.NaN(), 1), []string{"rate = NaN/1s", "finite"}},
		{casePerSecond(math.Inf(1), 1), []string{"rate = +Inf/1s", "finite"}},
		{casePerSecond(math.Inf(-1), 1), []string{"rate = -Inf/1s", "finite"}},
		{casePerSecond(3e9, 1), []string{"rate = 3000000000/1s", "2e9 units per second"}},
		{casePerSecond(math.MaxFloat64, 1), []string{"rate = 1.79", "2e9 units per second"}},
		{ratelimit.TokenBucketPolicy(ratelimit.Every(11*policyYear), 1), []string{"rate = 1/96426h0m0s", "ten years"}},
		{ratelimit.TokenBucketPolicy(ratelimit.Per(1, 0), 1), []string{"rate = 1/0s", "duration above 0"}},
		{ratelimit.TokenBucketPolicy(ratelimit.Per(1, -time.Second), 1), []string{"rate = 1/-1s", "duration above 0"}},
		{ratelimit.TokenBucketPolicy(rate, 0), []string{"burst = 0", "at least 1"}},
		{ratelimit.TokenBucketPolicy(rate, math.MinInt), []string{"burst = -", "at least 1"}},
		{ratelimit.TokenBucketPolicy(ratelimit.Every(policyYear), 101), []string{"burst = 101", "100 years"}},
		{ratelimit.TokenBucketPolicy(rate, 5).WithInitial(-1), []string{"initial = -1", "from 0 to the burst of 5"}},
		{ratelimit.TokenBucketPolicy(rate, 5).WithInitial(6), []string{"initial = 6", "from 0 to the burst of 5"}},
		{casePerSecond(0.5, 5).WithIntervalRefill(), []string{"rate = 0.5/1s", "whole number"}},

		{caseMeter(0, 1), []string{"rate = 0/1s", "above 0"}},
		{ratelimit.LeakyBucketPolicy(rate, 0), []string{"capacity = 0", "at least 1"}},
		{ratelimit.LeakyBucketPolicy(rate, -3), []string{"capacity = -3", "at least 1"}},
		{ratelimit.LeakyBucketPolicy(ratelimit.Every(policyYear), 101), []string{"capacity = 101", "100 years"}},

		{ratelimit.SlidingLogPolicy(0, time.Second), []string{"limit = 0", "at least 1"}},
		{ratelimit.SlidingLogPolicy(1, 0), []string{"window = 0s", "1ns to 100 years"}},
		{ratelimit.FixedCounterPolicy(-1, time.Second), []string{"limit = -1", "at least 1"}},
		{ratelimit.FixedCounterPolicy(1, -time.Second), []string{"window = -1s", "1ns to 100 years"}},
		{ratelimit.SlidingCounterPolicy(0, time.Second), []string{"limit = 0", "at least 1"}},
		{ratelimit.SlidingCounterPolicy(1, 101*policyYear), []string{"window = 885366h0m0s", "1ns to 100 years"}},
		{ratelimit.SlidingCounterPolicy(1, time.Second).WithCells(0), []string{"cells = 0", "from 1 to 1024"}},
		{ratelimit.SlidingCounterPolicy(1, time.Second).WithCells(-1), []string{"cells = -1", "from 1 to 1024"}},
		{ratelimit.SlidingCounterPolicy(1, time.Second).WithCells(1025), []string{"cells = 1025", "from 1 to 1024"}},
		{ratelimit.SlidingCounterPolicy(1, 7).WithCells(8), []string{"cells = 8", "at least 1ns"}},
	} {
		t.Run(fmt.Sprint(test.want), func(t *testing.T) {
			_, marshalErr := test.policy.MarshalText()
			l, newErr := ratelimit.New(test.policy)
			k, keyedErr := ratelimit.NewKeyed[int](test.policy)
			if l != nil || k != nil {
				t.Errorf("New and NewKeyed return %#v and %#v, want true nils", l, k)
			}
			for from, err := range map[string]error{
				"Validate": test.policy.Validate(), "MarshalText": marshalErr, "New": newErr, "NewKeyed": keyedErr,
			} {
				policyError(t, from, err, test.want...)
			}
		})
	}
}

// A variant that the algorithm does not have is an error, not ignored.
func TestPolicyWrongVariants(t *testing.T) {
	variants := map[string]func(ratelimit.Policy) ratelimit.Policy{
		"cells":           func(p ratelimit.Policy) ratelimit.Policy { return p.WithCells(2) },
		"initial":         func(p ratelimit.Policy) ratelimit.Policy { return p.WithInitial(2) },
		"refill":          ratelimit.Policy.WithIntervalRefill,
		"immediate-first": ratelimit.Policy.WithImmediateFirst,
	}
	fits := map[string]ratelimit.Algorithm{
		"cells": ratelimit.AlgorithmSlidingCounter, "initial": ratelimit.AlgorithmTokenBucket,
		"refill": ratelimit.AlgorithmTokenBucket, "immediate-first": ratelimit.AlgorithmLeakyBucket,
	}
	for _, p := range append(casePolicies(5, time.Second), ratelimit.Unlimited(), ratelimit.Blocked()) {
		for field, variant := range variants {
			varied := variant(p)
			if fits[field] == p.Algorithm() {
				if err := varied.Validate(); err != nil {
					t.Errorf("%v with %s is refused: %v", p, field, err)
				}
				continue
			}
			policyError(t, p.String(), varied.Validate(), field, "not a variant of "+p.Algorithm().String())
			if varied == p {
				t.Errorf("%v with %s is equal to the policy without", p, field)
			}
		}
	}
}

func TestConstructorErrors(t *testing.T) {
	bad := ratelimit.PerSecond(0)
	if l, err := ratelimit.NewTokenBucket(bad, 1); l != nil || err == nil {
		t.Errorf("NewTokenBucket = %v, %v; want nil and an error", l, err)
	}
	if l, err := ratelimit.NewLeakyBucket(bad, 1); l != nil || err == nil {
		t.Errorf("NewLeakyBucket = %v, %v; want nil and an error", l, err)
	}
	if l, err := ratelimit.NewSlidingLog(0, time.Second); l != nil || err == nil {
		t.Errorf("NewSlidingLog = %v, %v; want nil and an error", l, err)
	}
	if l, err := ratelimit.NewFixedCounter(1, 0); l != nil || err == nil {
		t.Errorf("NewFixedCounter = %v, %v; want nil and an error", l, err)
	}
	if l, err := ratelimit.NewSlidingCounter(-1, time.Second); l != nil || err == nil {
		t.Errorf("NewSlidingCounter = %v, %v; want nil and an error", l, err)
	}

	for want, opt := range map[string]ratelimit.Option{
		"clock = <nil>: must not be nil":   ratelimit.WithClock(nil),
		"max wait = -1s: must be at least": ratelimit.WithMaxWait(-time.Second),
	} {
		for _, p := range append(casePolicies(5, time.Second), ratelimit.Unlimited(), ratelimit.Blocked()) {
			l, err := ratelimit.New(p, opt)
			if l != nil {
				t.Errorf("New(%v) returns %#v, want a true nil", p, l)
			}
			policyError(t, p.String(), err, want)
		}
	}
	for _, n := range []int{0, -1, 1 << 30} {
		_, err := ratelimit.NewKeyed[int](casePerSecond(1, 1), ratelimit.WithShards(n))
		policyError(t, "NewKeyed", err, fmt.Sprintf("shards = %d: must be from 1 to 65536", n))
	}
}

func TestMust(t *testing.T) {
	if got := ratelimit.Must(5, nil); got != 5 {
		t.Errorf("Must(5, nil) = %d, want 5", got)
	}
	oops := errors.New("oops")
	defer func() {
		if got := recover(); got != oops {
			t.Errorf("Must panics with %v, want %v", got, oops)
		}
	}()
	ratelimit.Must(5, oops)
}

func TestPolicyIsComparable(t *testing.T) {
	seen := map[ratelimit.Policy]string{}
	for _, p := range policyExamples() {
		if text, twice := seen[p.policy]; twice {
			t.Errorf("%q and %q are equal, want them to differ", text, p.text)
		}
		seen[p.policy] = p.text
	}
	for _, p := range policyExamples() { // made anew
		if got := seen[p.policy]; got != p.text {
			t.Errorf("in a map %v finds %q, want %q", p.policy, got, p.text)
		}
	}
	base, counter := casePerSecond(10, 20), ratelimit.SlidingCounterPolicy(5, time.Second)
	base.WithInitial(3)
	for name, equal := range map[string]bool{
		"one cell is the default":                 counter == counter.WithCells(1),
		"two zero policies":                       ratelimit.Policy{} == ratelimit.Policy{},
		"a NaN":                                   casePerSecond(math.NaN(), 1) == casePerSecond(math.NaN(), 1),
		"a variant leaves its policy as it was":   base == casePerSecond(10, 20),
		"rates are kept as given, so they differ": ratelimit.TokenBucketPolicy(ratelimit.PerMinute(60), 1) != casePerSecond(1, 1),
	} {
		if !equal {
			t.Errorf("%s: want equal policies", name)
		}
	}
}

type policyExample struct {
	policy ratelimit.Policy
	text   string
}

func policyExamples() []policyExample {
	return []policyExample{
		{casePerSecond(10, 20), "token-bucket rate=10/1s burst=20"},
		{casePerSecond(0.3, 1), "token-bucket rate=0.3/1s burst=1"},
		{casePerSecond(10, 20).WithInitial(0), "token-bucket rate=10/1s burst=20 initial=0"},
		{casePerSecond(10, 20).WithInitial(20), "token-bucket rate=10/1s burst=20 initial=20"},
		{casePerSecond(10, 20).WithIntervalRefill(), "token-bucket rate=10/1s burst=20 refill=interval"},
		{casePerSecond(10, 20).WithIntervalRefill().WithInitial(5), "token-bucket rate=10/1s burst=20 initial=5 refill=interval"},
		{ratelimit.TokenBucketPolicy(ratelimit.Per(5000, time.Hour), 5000), "token-bucket rate=5000/1h0m0s burst=5000"},
		{ratelimit.TokenBucketPolicy(ratelimit.Every(10*policyYear), 10), "token-bucket rate=1/87660h0m0s burst=10"},
		{caseMeter(2, 4), "leaky-bucket rate=2/1s capacity=4"},
		{caseQueue(2, 4), "leaky-bucket rate=2/1s capacity=4 release=immediate-first"},
		{ratelimit.SlidingLogPolicy(100, time.Minute), "sliding-log limit=100 window=1m0s"},
		{ratelimit.FixedCounterPolicy(100, 90*time.Second), "fixed-counter limit=100 window=1m30s"},
		{ratelimit.FixedCounterPolicy(1, 100*policyYear), "fixed-counter limit=1 window=876600h0m0s"},
		{ratelimit.SlidingCounterPolicy(100, time.Minute), "sliding-counter limit=100 window=1m0s"},
		{ratelimit.SlidingCounterPolicy(100, time.Minute).WithCells(6), "sliding-counter limit=100 window=1m0s cells=6"},
		{ratelimit.Unlimited(), "unlimited"},
		{ratelimit.Blocked(), "blocked"},
	}
}

func TestPolicyText(t *testing.T) {
	for _, example := range policyExamples() {
		t.Run(example.text, func(t *testing.T) {
			if got := example.policy.String(); got != example.text {
				t.Errorf("String() = %q, want %q", got, example.text)
			}
			if text, err := example.policy.MarshalText(); string(text) != example.text || err != nil {
				t.Errorf("MarshalText() = %q, %v; want %q", text, err, example.text)
			}
			var back ratelimit.Policy
			if err := back.UnmarshalText([]byte(example.text)); back != example.policy || err != nil {
				t.Errorf("UnmarshalText(%q) gives %v, %v; want %v", example.text, back, err, example.policy)
			}
			for _, text := range []string{example.text, "\t " + strings.ReplaceAll(example.text, " ", " \n ") + "\r\n"} {
				if got, err := ratelimit.ParsePolicy(text); got != example.policy || err != nil {
					t.Errorf("ParsePolicy(%q) = %v, %v; want %v", text, got, err, example.policy)
				}
			}
		})
	}
}

func TestPolicyInJSON(t *testing.T) {
	plans := map[string]ratelimit.Policy{"free": casePerSecond(1, 5), "gone": ratelimit.Blocked()}
	const want = `{"free":"token-bucket rate=1/1s burst=5","gone":"blocked"}`
	text, err := json.Marshal(plans)
	if string(text) != want || err != nil {
		t.Fatalf("Marshal = %s, %v; want %s", text, err, want)
	}
	var back map[string]ratelimit.Policy
	if err := json.Unmarshal(text, &back); err != nil || !maps.Equal(back, plans) {
		t.Errorf("Unmarshal(%s) = %v, %v; want %v", text, back, err, plans)
	}
	p := casePerSecond(1, 5)
	if err := p.UnmarshalText([]byte("nonsense")); err == nil || p != casePerSecond(1, 5) {
		t.Errorf("UnmarshalText(nonsense) = %v and leaves %v, want an error and the policy as it was", err, p)
	}
}

func TestPolicyAccessors(t *testing.T) {
	type all struct {
		algorithm           ratelimit.Algorithm
		limit               int
		rate                ratelimit.Rate
		window              time.Duration
		cells, initial      int
		interval, immediate bool
	}
	rate := ratelimit.PerSecond(10)
	for p, want := range map[ratelimit.Policy]all{
		{}:                                   {},
		ratelimit.Unlimited():                {algorithm: ratelimit.AlgorithmUnlimited, limit: math.MaxInt},
		ratelimit.Blocked():                  {algorithm: ratelimit.AlgorithmBlocked},
		casePerSecond(10, 20):                {algorithm: ratelimit.AlgorithmTokenBucket, limit: 20, rate: rate, initial: 20},
		casePerSecond(10, 20).WithInitial(0): {algorithm: ratelimit.AlgorithmTokenBucket, limit: 20, rate: rate},
		casePerSecond(10, 20).WithIntervalRefill().WithInitial(7): {
			algorithm: ratelimit.AlgorithmTokenBucket, limit: 20, rate: rate, initial: 7, interval: true,
		},
		caseMeter(10, 3): {algorithm: ratelimit.AlgorithmLeakyBucket, limit: 3, rate: rate},
		caseQueue(10, 3): {algorithm: ratelimit.AlgorithmLeakyBucket, limit: 3, rate: rate, immediate: true},
		ratelimit.SlidingLogPolicy(4, time.Minute):     {algorithm: ratelimit.AlgorithmSlidingLog, limit: 4, window: time.Minute},
		ratelimit.FixedCounterPolicy(4, time.Minute):   {algorithm: ratelimit.AlgorithmFixedCounter, limit: 4, window: time.Minute},
		ratelimit.SlidingCounterPolicy(4, time.Minute): {algorithm: ratelimit.AlgorithmSlidingCounter, limit: 4, window: time.Minute, cells: 1},
		ratelimit.SlidingCounterPolicy(4, time.Minute).WithCells(9): {
			algorithm: ratelimit.AlgorithmSlidingCounter, limit: 4, window: time.Minute, cells: 9,
		},
	} {
		got := all{p.Algorithm(), p.Limit(), p.Rate(), p.Window(), p.Cells(), p.Initial(), p.IntervalRefill(), p.ImmediateFirst()}
		if got != want {
			t.Errorf("%v: accessors = %+v, want %+v", p, got, want)
		}
	}
	for _, got := range []string{ratelimit.Algorithm(0).String(), ratelimit.Algorithm(200).String(), ratelimit.Policy{}.String()} {
		if got != "none" {
			t.Errorf("String() of no algorithm = %q, want none", got)
		}
	}
}
