package arith_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// edges are the numbers at which integer arithmetic goes wrong.
var edges = []uint64{
	0, 1, 2, 3, 7, 10, 1e9, 1e9 + 7, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<62 - 1, 1 << 62,
	math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64,
}

// numbers returns edges and random numbers of every size.
func numbers() []uint64 {
	rng := rand.New(rand.NewPCG(1, 2))
	all := edges
	for range 25 {
		all = append(all, rng.Uint64()>>rng.IntN(64))
	}
	return all
}

func bigOf(u uint64) *big.Int { return new(big.Int).SetUint64(u) }

// saturated returns x as far as it fits 64 bits.
func saturated(x *big.Int) uint64 {
	switch {
	case x.Sign() < 0:
		return 0
	case x.IsUint64():
		return x.Uint64()
	}
	return math.MaxUint64
}

func TestAgainstBig(t *testing.T) {
	t.Parallel()
	all := numbers()
	for _, a := range all {
		for _, b := range all {
			x, y := bigOf(a), bigOf(b)
			product := new(big.Int).Mul(x, y)
			for what, row := range map[string][2]uint64{
				"Mul": {arith.Mul(a, b), saturated(product)},
				"Add": {arith.Add(a, b), saturated(new(big.Int).Add(x, y))},
				"Sub": {arith.Sub(a, b), saturated(new(big.Int).Sub(x, y))},
			} {
				if row[0] != row[1] {
					t.Errorf("%s(%d, %d): got %d, want %d", what, a, b, row[0], row[1])
				}
			}
			for _, c := range all {
				if c == 0 {
					continue
				}
				down, rest := new(big.Int).QuoRem(product, bigOf(c), new(big.Int))
				up := new(big.Int).Set(down)
				if rest.Sign() > 0 {
					up.Add(up, big.NewInt(1))
				}
				if got, want := arith.MulDiv(a, b, c), saturated(down); got != want {
					t.Errorf("MulDiv(%d, %d, %d): got %d, want %d", a, b, c, got, want)
				}
				if got, want := arith.MulDivUp(a, b, c), saturated(up); got != want {
					t.Errorf("MulDivUp(%d, %d, %d): got %d, want %d", a, b, c, got, want)
				}
				if got, want := arith.MulMod(a, b, c), rest.Uint64(); got != want {
					t.Errorf("MulMod(%d, %d, %d): got %d, want %d", a, b, c, got, want)
				}
			}
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for _, u := range numbers() {
		want := int64(math.MaxInt64)
		if u < math.MaxInt64 {
			want = int64(u)
		}
		if got := arith.Int64(u); got != want {
			t.Errorf("Int64(%d): got %d, want %d", u, got, want)
		}
		for _, v := range numbers() {
			for _, at := range []int64{int64(u), -int64(u >> 1)} {
				d := int64(v & math.MaxInt64)
				sum := new(big.Int).Add(big.NewInt(at), big.NewInt(d))
				want := int64(math.MaxInt64)
				if sum.IsInt64() {
					want = sum.Int64()
				}
				if got := arith.After(at, d); got != want {
					t.Errorf("After(%d, %d): got %d, want %d", at, d, got, want)
				}
			}
		}
	}
}
