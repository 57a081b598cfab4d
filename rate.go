package ratelimit

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// A Rate is a number of units per duration, as given: Per(60, time.Minute)
// and PerSecond(1) limit alike but are not equal. A Rate is comparable and
// immutable; the zero Rate is not valid in any policy.
//
// A float means the decimal that it prints as: PerSecond(0.3) is exactly three
// units in ten seconds.
type Rate struct {
	bits uint64 // math.Float64bits of the units, so that a NaN equals itself
	per  time.Duration
}

// Per is n units every d.
func Per(n float64, d time.Duration) Rate { return Rate{math.Float64bits(n), d} }

// PerSecond is shorthand for Per(n, time.Second).
func PerSecond(n float64) Rate { return Per(n, time.Second) }

// PerMinute is shorthand for Per(n, time.Minute).
func PerMinute(n float64) Rate { return Per(n, time.Minute) }

// PerHour is shorthand for Per(n, time.Hour).
func PerHour(n float64) Rate { return Per(n, time.Hour) }

// Every is one unit every d: shorthand for Per(1, d).
func Every(d time.Duration) Rate { return Per(1, d) }

func (r Rate) units() float64 { return math.Float64frombits(r.bits) }

// String formats the rate as ParsePolicy reads it: "10/1s".
func (r Rate) String() string {
	format := byte('f')
	if n := math.Abs(r.units()); n != 0 && (n < 1e-9 || n >= 1e15) {
		format = 'g'
	}
	return strconv.FormatFloat(r.units(), format, -1, 64) + "/" + r.per.String()
}

// Ratio returns the rate as it is kept: num/den units per nanosecond, in
// lowest terms. It is exact where both fit 62 bits, and else the nearest
// fraction that does, which for every valid rate is better than one part in
// 10⁹. It returns 0, 1 for a rate that no policy accepts.
func (r Rate) Ratio() (num, den uint64) {
	exact, why := r.exact()
	if why != "" {
		return 0, 1
	}
	return nearest(exact)
}

var (
	slowest = big.NewRat(1, 10*36525*864*1e9) // one unit in ten years (of 365.25 days), per nanosecond
	fastest = big.NewRat(2, 1)                // 2·10⁹ units per second
)

// exact returns the rate in units per nanosecond, or says why it has none.
func (r Rate) exact() (ratio *big.Rat, why string) {
	n := r.units()
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) || n <= 0:
		return nil, "must be a finite number of units above 0"
	case r.per <= 0:
		return nil, "must be per a duration above 0"
	case n < 1e-30 || n > 1e30: // beyond any rate, and before a huge power of ten is built
		return nil, rateRange
	}
	units, _ := new(big.Rat).SetString(strconv.FormatFloat(n, 'e', -1, 64))
	ratio = units.Quo(units, new(big.Rat).SetInt64(int64(r.per)))
	if ratio.Cmp(slowest) < 0 || ratio.Cmp(fastest) > 0 {
		return nil, rateRange
	}
	return ratio, ""
}

const rateRange = "must be from 1 unit in ten years to 2e9 units per second"

// nearest returns the best approximation of x, which is in [slowest, fastest],
// whose terms fit 62 bits: the last convergent of its continued fraction that
// does. A convergent p/q is off by less than 1/(q·q'), where p'/q' is the next
// one, so its relative error is below 1/(p·q'); and p'/q' does not fit, so q' is
// above 2⁶⁰.
func nearest(x *big.Rat) (num, den uint64) {
	var (
		p0, q0 = big.NewInt(0), big.NewInt(1)
		p1, q1 = big.NewInt(1), big.NewInt(0)
		a, b   = new(big.Int).Set(x.Num()), new(big.Int).Set(x.Denom())
	)
	for b.Sign() != 0 {
		term, rest := new(big.Int).QuoRem(a, b, new(big.Int))
		p2 := new(big.Int).Add(new(big.Int).Mul(term, p1), p0)
		q2 := new(big.Int).Add(new(big.Int).Mul(term, q1), q0)
		if p2.BitLen() > 62 || q2.BitLen() > 62 {
			break
		}
		p0, q0, p1, q1, a, b = p1, q1, p2, q2, b, rest
	}
	return p1.Uint64(), q1.Uint64()
}

// parseRate reads "10/1s" and what people write: "10/s", "100/m", "500/10s".
func parseRate(s string) (Rate, string) {
	count, per, found := strings.Cut(s, "/")
	if !found {
		return Rate{}, `want units per duration, as in "10/s"`
	}
	n, err := strconv.ParseFloat(count, 64)
	if err != nil || !plainNumber(count) {
		return Rate{}, "units are not a decimal number"
	}
	if per != "" && per[0] != '-' && per[0] != '+' && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := time.ParseDuration(per)
	if err != nil {
		return Rate{}, `duration is not like "s", "m", "h" or "10s"`
	}
	return Per(n, d), ""
}

// plainNumber keeps out what strconv reads beyond decimals: hexadecimal
// floats, underscores, Inf and NaN.
func plainNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.eE+-") == ""
}
