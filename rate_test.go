package ratelimit_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func TestRateRatio(t *testing.T) {
	for _, test := range []struct {
		rate     ratelimit.Rate
		num, den uint64
	}{
		{ratelimit.PerSecond(1), 1, 1e9},
		{ratelimit.PerSecond(0.3), 3, 1e10},
		{ratelimit.PerSecond(0.1), 1, 1e10},
		{ratelimit.PerSecond(3), 3, 1e9},
		{ratelimit.PerSecond(1e9), 1, 1},
		{ratelimit.PerSecond(2e9), 2, 1},
		{ratelimit.PerSecond(1.5e9), 3, 2},
		{ratelimit.PerMinute(60), 1, 1e9},
		{ratelimit.PerMinute(100), 1, 6e8},
		{ratelimit.PerHour(1), 1, 3600e9},
		{ratelimit.PerHour(5000), 1, 72e7},
		{ratelimit.Per(5, time.Hour), 1, 720e9},
		{ratelimit.Per(2, time.Nanosecond), 2, 1},
		{ratelimit.Per(500, 10*time.Second), 1, 2e7},
		{ratelimit.Every(time.Second), 1, 1e9},
		{ratelimit.Every(250 * time.Millisecond), 1, 25e7},
		{ratelimit.Every(1), 1, 1},
		{ratelimit.Every(7), 1, 7},
	} {
		if num, den := test.rate.Ratio(); num != test.num || den != test.den {
			t.Errorf("%v.Ratio() = %d, %d; want %d, %d", test.rate, num, den, test.num, test.den)
		}
	}
}

func TestRateIsKeptAsGiven(t *testing.T) {
	minute, second := ratelimit.Per(60, time.Minute), ratelimit.PerSecond(1)
	if minute == second {
		t.Error("Per(60, time.Minute) == PerSecond(1), want them to differ as values")
	}
	num, den := minute.Ratio()
	if n, d := second.Ratio(); n != num || d != den {
		t.Errorf("ratios of %v and %v are %d/%d and %d/%d, want them equal", minute, second, num, den, n, d)
	}
	for _, same := range [][2]ratelimit.Rate{
		{ratelimit.PerSecond(5), ratelimit.Per(5, time.Second)},
		{ratelimit.PerMinute(5), ratelimit.Per(5, time.Minute)},
		{ratelimit.PerHour(5), ratelimit.Per(5, time.Hour)},
		{ratelimit.Every(time.Hour), ratelimit.Per(1, time.Hour)},
		{ratelimit.PerSecond(math.NaN()), ratelimit.PerSecond(math.NaN())},
	} {
		if same[0] != same[1] {
			t.Errorf("%v != %v, want equal", same[0], same[1])
		}
		if set := map[ratelimit.Rate]int{same[0]: 1}; set[same[1]] != 1 {
			t.Errorf("%v is not found in a map by an equal key", same[1])
		}
	}
}

func TestRateString(t *testing.T) {
	for want, rate := range map[string]ratelimit.Rate{
		"10/1s":     ratelimit.PerSecond(10),
		"0.3/1s":    ratelimit.PerSecond(0.3),
		"60/1m0s":   ratelimit.PerMinute(60),
		"1/1h0m0s":  ratelimit.Every(time.Hour),
		"500/10s":   ratelimit.Per(500, 10*time.Second),
		"1/250ms":   ratelimit.Every(250 * time.Millisecond),
		"NaN/1s":    ratelimit.PerSecond(math.NaN()),
		"+Inf/1s":   ratelimit.PerSecond(math.Inf(1)),
		"-1/1s":     ratelimit.PerSecond(-1),
		"1e+300/1s": ratelimit.PerSecond(1e300),
	} {
		if got := rate.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestRateOutOfRange(t *testing.T) {
	const year = 8766 * time.Hour
	for _, rate := range []ratelimit.Rate{
		{},
		ratelimit.PerSecond(0), ratelimit.PerSecond(math.Copysign(0, -1)), ratelimit.PerSecond(-1),
		ratelimit.PerSecond(math.NaN()), ratelimit.PerSecond(math.Inf(1)), ratelimit.PerSecond(math.Inf(-1)),
		ratelimit.PerSecond(math.MaxFloat64), ratelimit.PerSecond(math.SmallestNonzeroFloat64),
		ratelimit.PerSecond(2.0000001e9), ratelimit.Per(3, 1),
		ratelimit.Every(10*year + 1), ratelimit.PerSecond(1e-9),
		ratelimit.Every(0), ratelimit.Every(-1), ratelimit.Per(1, math.MinInt64), ratelimit.Per(-1, -time.Second),
	} {
		if num, den := rate.Ratio(); num != 0 || den != 1 {
			t.Errorf("%v.Ratio() = %d, %d; want 0, 1", rate, num, den)
		}
		caseRejects(t, "rate", ratelimit.TokenBucketPolicy(rate, 1), ratelimit.LeakyBucketPolicy(rate, 1),
			ratelimit.TokenBucketPolicy(rate, 1).WithIntervalRefill())
	}
	for _, rate := range []ratelimit.Rate{
		ratelimit.Every(10 * year), ratelimit.PerSecond(2e9), ratelimit.Per(2, 1), ratelimit.Per(1e-5, time.Second),
		ratelimit.Per(2e18, time.Second*1e9),
	} {
		for _, p := range []ratelimit.Policy{ratelimit.TokenBucketPolicy(rate, 1), ratelimit.LeakyBucketPolicy(rate, 1)} {
			if err := p.Validate(); err != nil {
				t.Errorf("%v is refused: %v", p, err)
			}
		}
	}
}

// Any decimal is kept to one part in 10⁹ or better, and exactly where it fits.
func TestRateRatioOfRandomDecimals(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	bound := big.NewRat(1, 1e9)
	for range caseLong(20_000) {
		n := math.Pow(10, rng.Float64()*16-6)
		if rng.IntN(2) == 0 {
			n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', 1+rng.IntN(6), 64), 64)
		}
		per := time.Duration(math.Pow(10, rng.Float64()*16.5)) + 1
		rate := ratelimit.Per(n, per)
		if ratelimit.TokenBucketPolicy(rate, 1).Validate() != nil {
			continue
		}
		want, _ := new(big.Rat).SetString(strconv.FormatFloat(n, 'f', -1, 64))
		want.Quo(want, new(big.Rat).SetInt64(int64(per)))
		num, den := rate.Ratio()
		got := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
		off := new(big.Rat).Sub(got, want)
		if off.Quo(off.Abs(off), want); off.Cmp(bound) > 0 {
			t.Fatalf("%v.Ratio() = %d, %d: off by %s of %s", rate, num, den, off.FloatString(15), want.FloatString(30))
		}
		if want.Num().BitLen() <= 62 && want.Denom().BitLen() <= 62 && off.Sign() != 0 {
			t.Fatalf("%v.Ratio() = %d, %d; want exactly %v", rate, num, den, want)
		}
	}
}

func TestRateMintsExactly(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(0.3), 5, func(c *caseRun) {
		c.at(0).exactly(5)
		for tens := 1; tens <= 1000; tens++ { // 3 in each ten seconds
			c.atExactly(time.Duration(tens)*10*time.Second - 1).exactly(2)
			c.atExactly(time.Duration(tens) * 10 * time.Second).exactly(1)
		}
	})
}

// A million calls at just the rate are all admitted, however they are rounded.
func TestRateMillionCalls(t *testing.T) {
	for _, p := range []ratelimit.Policy{casePerSecond(3, 2), caseMeter(3, 2)} {
		for _, form := range []string{"plain", "keyed"} {
			t.Run(form+"/"+p.String(), func(t *testing.T) {
				c := newCaseForm(t, form, p)
				for k := range caseLong(1_000_000) {
					c.atExactly(time.Duration(k)*time.Second/3).step++
					if !c.limiter.Allow() {
						c.failf("call %d is refused", k)
					}
				}
			})
		}
	}
}

// Rates at the ends of the range do what they say for a century.
func TestRateAtTheEnds(t *testing.T) {
	caseBuckets(t, ratelimit.PerSecond(2e9), 1, func(c *caseRun) {
		for _, year := range []time.Duration{0, 1, 50, 99} {
			for ns := range time.Duration(100) {
				c.atExactly(year*8766*time.Hour + ns).exactly(1)
			}
		}
	})
	const slow = 10 * 8766 * time.Hour
	caseBuckets(t, ratelimit.Every(slow), 2, func(c *caseRun) {
		c.at(0).exactly(2)
		for k := time.Duration(1); k <= 10; k++ {
			c.atExactly(k*slow - 1).refuse()
			c.atExactly(k * slow).exactly(1)
		}
	})
}
