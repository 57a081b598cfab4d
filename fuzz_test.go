package ratelimit_test

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/model"
)

// FuzzTrace reads its bytes as a policy and questions: limiter and model agree.
func FuzzTrace(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 4096 {
			return
		}
		s := &traceBytes{data[1:]}
		newTracer(t, "bytes", s, int64(data[0]%traceKinds), traceRates).run(1000)
	})
}

// FuzzParsePolicy: what is parsed is valid and is read back from its text.
func FuzzParsePolicy(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ratelimit.ParsePolicy(text)
		var read ratelimit.Policy
		if unmarshalErr := read.UnmarshalText([]byte(text)); (unmarshalErr == nil) != (err == nil) || read != p {
			t.Fatalf("UnmarshalText(%q): got %v, %v, want %v, %v", text, read, unmarshalErr, p, err)
		}
		if err != nil {
			if !errors.Is(err, ratelimit.ErrInvalidPolicy) {
				t.Fatalf("ParsePolicy(%q): got error %v, want one that wraps ErrInvalidPolicy", text, err)
			}
			if p != (ratelimit.Policy{}) {
				t.Fatalf("ParsePolicy(%q): got %v beside the error %v, want the zero Policy", text, p, err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("ParsePolicy(%q) = %v: Validate: got %v, want nil", text, p, err)
		}
		if again, err := ratelimit.ParsePolicy(p.String()); err != nil || again != p {
			t.Fatalf("ParsePolicy(%q), of %q: got %v, %v, want %v", p.String(), text, again, err, p)
		}
		marshalled, err := p.MarshalText()
		if err != nil || string(marshalled) != p.String() {
			t.Fatalf("MarshalText of %q: got %q, %v, want %q", text, marshalled, err, p.String())
		}
		if _, err := ratelimit.New(p); err != nil {
			t.Fatalf("New(%v), of %q: got %v, want nil", p, text, err)
		}
	})
}

// FuzzExtremes: no parameters and no times make anything panic, leave
// Remaining out of its bounds, or make RetryAfter other than the least wait.
func FuzzExtremes(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, units float64, per, window int64, limit, n, other int, jump, back int64) {
		rate := ratelimit.Per(units, time.Duration(per))
		checkRatio(t, rate, units, per)
		var p ratelimit.Policy
		switch kind % traceKinds {
		case traceToken:
			p = ratelimit.TokenBucketPolicy(rate, limit)
		case traceInitial:
			p = ratelimit.TokenBucketPolicy(rate, limit).WithInitial(other)
		case traceInterval:
			p = ratelimit.TokenBucketPolicy(rate, limit).WithIntervalRefill()
		case traceLeaky:
			p = ratelimit.LeakyBucketPolicy(rate, limit)
		case traceImmediate:
			p = ratelimit.LeakyBucketPolicy(rate, limit).WithImmediateFirst()
		case traceLog:
			p = ratelimit.SlidingLogPolicy(limit, time.Duration(window))
		case traceFixed:
			p = ratelimit.FixedCounterPolicy(limit, time.Duration(window))
		case traceSliding:
			p = ratelimit.SlidingCounterPolicy(limit, time.Duration(window)).WithCells(other)
		}
		clock := newTraceClock(traceStarts[int(kind/traceKinds)%len(traceStarts)])
		l, err := ratelimit.New(p, ratelimit.WithClock(clock))
		if invalid := p.Validate(); (err == nil) != (invalid == nil) {
			t.Fatalf("New(%v): got error %v, want as Validate: %v", p, err, invalid)
		}
		if err != nil {
			if !errors.Is(err, ratelimit.ErrInvalidPolicy) || l != nil {
				t.Fatalf("New(%v): got %v and error %v, want nil and one that wraps ErrInvalidPolicy", p, l, err)
			}
			return
		}
		x := &extremes{t, p, l, clock}
		x.obey(n)
		x.obey(limit)
		clock.move(time.Duration(jump))
		x.obey(1)
		r := l.ReserveN(n)
		if r.OK() != (r.Err() == nil) || r.Delay() < 0 {
			t.Fatalf("%v at %dns: ReserveN(%d): got OK %t, error %v, delay %v", p, clock.elapsed, n, r.OK(), r.Err(), r.Delay())
		}
		clock.move(time.Duration(back))
		x.decide(0)
		x.obey(n)
		r.Cancel()
		x.obey(1)
		x.obey(limit)
	})
}

// checkRatio: of a rate that a policy takes, the ratio is as close as promised.
func checkRatio(t *testing.T, rate ratelimit.Rate, units float64, per int64) {
	t.Helper()
	num, den := rate.Ratio()
	if ratelimit.TokenBucketPolicy(rate, 1).Validate() != nil {
		return
	}
	if num == 0 || den == 0 || num >= 1<<62 || den >= 1<<62 {
		t.Fatalf("%v: Ratio: got %d/%d, want terms from 1 to 62 bits", rate, num, den)
	}
	want := model.Rate(strconv.FormatFloat(units, 'e', -1, 64), per)
	got := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
	off := new(big.Rat).Sub(got, want)
	if off.Quo(off.Abs(off), want).Cmp(big.NewRat(1, 1e9)) > 0 {
		t.Fatalf("%v: Ratio: got %d/%d, want %v to 1 part in 10⁹", rate, num, den, want)
	}
}

type extremes struct {
	testing.TB
	policy  ratelimit.Policy
	limiter ratelimit.Limiter
	clock   *traceClock
}

func (x *extremes) decide(n int) ratelimit.Decision {
	x.Helper()
	d := x.limiter.Decide(n)
	if d.Remaining < 0 || d.Remaining > d.Limit || d.Limit != x.policy.Limit() || d.RetryAfter < 0 || d.ResetAfter < 0 ||
		!x.late() && (d.Allowed != (d.RetryAfter == 0) || (n < 0 || n > d.Limit) != (d.RetryAfter == ratelimit.Never)) {
		x.Fatalf("%v at %dns: Decide(%d): got %s", x.policy, x.clock.elapsed, n, traceFields(d))
	}
	return d
}

// late reports that the end of the timeline, after 292 years, is so near that a
// wait may not end before it. Nothing is promised beyond 100 years of uptime.
func (x *extremes) late() bool { return x.clock.elapsed > math.MaxInt64/3 }

// obey asks for n units, once more a nanosecond before its time, and in time.
func (x *extremes) obey(n int) {
	x.Helper()
	asked := x.clock.elapsed
	d := x.decide(n)
	if d.Allowed || d.RetryAfter == ratelimit.Never || x.late() {
		return
	}
	late := time.Duration(0)
	if inexact(x.policy) {
		late = 1
	}
	x.sleep(d.RetryAfter - 1)
	if early := x.decide(n); early.Allowed || early.RetryAfter > 1+late {
		x.Fatalf("%v asked at %dns: Decide(%d) a nanosecond before its RetryAfter of %dns: got %s, want retry 1",
			x.policy, asked, n, d.RetryAfter, traceFields(early))
	}
	x.sleep(1)
	again := x.decide(n)
	if late > 0 && again.RetryAfter == late {
		x.sleep(late)
		again = x.decide(n)
	}
	if !again.Allowed {
		x.Fatalf("%v asked at %dns: Decide(%d) after its RetryAfter of %dns: got %s, want allowed",
			x.policy, asked, n, d.RetryAfter, traceFields(again))
	}
}

// inexact reports whether the policy's buckets are documented to be late by up
// to a nanosecond: what they mint between two origins, a day or as long as they
// take to fill, exceeds 2⁶² units of a denominator's size.
func inexact(p ratelimit.Policy) bool {
	num, den := p.Rate().Ratio()
	if p.Rate() == (ratelimit.Rate{}) || p.IntervalRefill() {
		return false
	}
	epoch := new(big.Int).SetUint64(den)
	epoch.Div(epoch.Mul(epoch, big.NewInt(int64(p.Limit()))), new(big.Int).SetUint64(num))
	epoch.Add(epoch, big.NewInt(1))
	if day := big.NewInt(int64(24 * time.Hour)); epoch.Cmp(day) < 0 {
		epoch = day
	}
	return epoch.Mul(epoch, new(big.Int).SetUint64(num)).Cmp(big.NewInt(1<<62)) > 0
}

// sleep lets d pass, in steps that a limiter is bound to credit in full.
func (x *extremes) sleep(d time.Duration) {
	d += x.clock.highest.Sub(x.clock.reading)
	for d > 0 {
		step := min(d, traceCentury)
		x.clock.move(step)
		x.limiter.AllowN(0)
		d -= step
	}
}
