// Package arith holds the overflow-safe integer arithmetic of the limiters.
// Nothing in it wraps around: a result that does not fit saturates.
package arith

import (
	"math"
	"math/bits"
)

// MulDiv returns ⌊a·b/c⌋ computed with a 128-bit product, or math.MaxUint64
// when the quotient does not fit. c must not be 0.
func MulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// MulDivUp returns ⌈a·b/c⌉ computed with a 128-bit product, or math.MaxUint64
// when the quotient does not fit. c must not be 0.
func MulDivUp(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64
	}
	q, r := bits.Div64(hi, lo, c)
	if r > 0 && q < math.MaxUint64 {
		q++
	}
	return q
}

// MulMod returns a·b mod c computed with a 128-bit product. c must not be 0.
func MulMod(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, c)
}

// Mul returns a·b, or math.MaxUint64 when it does not fit.
func Mul(a, b uint64) uint64 {
	if hi, lo := bits.Mul64(a, b); hi == 0 {
		return lo
	}
	return math.MaxUint64
}

// Add returns a+b, or math.MaxUint64 when it does not fit.
func Add(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

// Sub returns a−b, or 0 when b is the larger.
func Sub(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return 0
}

// After returns t+d for d ≥ 0, or math.MaxInt64 when it does not fit.
func After(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// Int64 returns u, or math.MaxInt64 when it does not fit.
func Int64(u uint64) int64 { return int64(min(u, math.MaxInt64)) }
