// Package benchmarks measures this library and others side by side, in one run
// and through the same calls. README.md says how to run it and what is measured.
package benchmarks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkClock is the yardstick: what any limiter with a clock pays.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	b.Run("time.Since", func(b *testing.B) {
		for b.Loop() {
			_ = time.Since(start)
		}
	})
	b.Run("time.Since+CAS", func(b *testing.B) {
		var word atomic.Int64
		for b.Loop() {
			now := int64(time.Since(start))
			word.CompareAndSwap(word.Load(), now)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	b.Run("admitted", func(b *testing.B) { benchmarkPlain(b, admitting, true) })
	b.Run("refused", func(b *testing.B) { benchmarkPlain(b, refusing, false) })
	b.Run("parallel", func(b *testing.B) {
		for _, r := range plainRivals {
			b.Run(r.name, func(b *testing.B) {
				allow := r.allow(admitting)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						allow()
					}
				})
			})
		}
	})
}

func benchmarkPlain(b *testing.B, l limit, want bool) {
	for _, r := range plainRivals {
		if r.allow(l) == nil {
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			allow := r.allow(l)
			allow() // the only one that refusing admits
			b.ReportAllocs()
			for b.Loop() {
				allow()
			}
			if got := allow(); got != want {
				b.Fatalf("allowed = %v, want %v", got, want)
			}
		})
	}
}

// keyLimit admits all calls, and refills so slowly that no key can be forgotten
// meanwhile: what is measured is a known key.
var keyLimit = limit{3600, time.Hour, math.MaxInt32}

// BenchmarkKeyed asks for keys that are fresh copies, as those cut out of a
// request are, and lie in memory in the order of the requests.
func BenchmarkKeyed(b *testing.B) {
	b.Run("hot", func(b *testing.B) {
		benchmarkKeyed(b, keys(1), sequence(1, func() int { return 0 }))
	})
	b.Run("uniform100k", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		benchmarkKeyed(b, keys(100_000), sequence(1<<18, func() int { return r.IntN(100_000) }))
	})
	b.Run("zipf1M", func(b *testing.B) { benchmarkKeyed(b, keys(million), zipf()) })
	b.Run("zipf1M-parallel", func(b *testing.B) {
		for _, k := range keyedRivals {
			b.Run(k.name, func(b *testing.B) {
				allow := known(b, k, keys(million))
				asked := zipf()
				var workers atomic.Int64
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for i := int(workers.Add(1)) * 99_991; pb.Next(); i++ {
						allow(asked[i%len(asked)])
					}
				})
			})
		}
	})
	b.Run("firstsight", benchmarkFirstSight)
}

func benchmarkKeyed(b *testing.B, all, asked []string) {
	for _, k := range keyedRivals {
		b.Run(k.name, func(b *testing.B) {
			allow := known(b, k, all)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if i++; i == len(asked) {
					i = 0
				}
				allow(asked[i])
			}
		})
	}
}

// known returns the allow of a limiter that has seen all keys.
func known(b *testing.B, k keyedRival, all []string) func(string) bool {
	allow, stop := k.allow(keyLimit)
	if allow == nil {
		b.SkipNow()
	}
	b.Cleanup(stop)
	for _, key := range all {
		if !allow(key) {
			b.Fatalf("key %s is refused at first sight", key)
		}
	}
	return allow
}

// benchmarkFirstSight asks once for each key; a limiter is new, and so empty,
// every 100,000 keys.
func benchmarkFirstSight(b *testing.B) {
	all := keys(100_000)
	for _, k := range keyedRivals {
		b.Run(k.name, func(b *testing.B) {
			allow, stop := k.allow(keyLimit)
			if allow == nil {
				b.SkipNow()
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if i == len(all) {
					b.StopTimer()
					stop()
					allow, stop = k.allow(keyLimit)
					i = 0
					b.StartTimer()
				}
				allow(all[i])
				i++
			}
			stop()
		})
	}
}

const million = 1_000_000

var millionKeys = sync.OnceValue(func() []string { return arena(million, func(i int) int { return i }) })

// keys returns n different keys of 16 bytes.
func keys(n int) []string { return millionKeys()[:n] }

// sequence returns fresh copies of n picked keys.
func sequence(n int, pick func() int) []string { return arena(n, func(int) int { return pick() }) }

// zipf returns a million picks of a million keys; the most frequent key is every
// eighth or so.
var zipf = sync.OnceValue(func() []string {
	r := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 1, million-1)
	return sequence(1<<20, func() int { return int(r.Uint64()) })
})

// arena returns n keys that lie one behind the other in memory.
func arena(n int, number func(i int) int) []string {
	const size = 16
	bytes := make([]byte, 0, n*size)
	for i := range n {
		bytes = fmt.Appendf(bytes, "tenant:%09d", number(i))
	}
	text := string(bytes)
	all := make([]string, n)
	for i := range all {
		all[i] = text[i*size : (i+1)*size]
	}
	return all
}
