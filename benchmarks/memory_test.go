package benchmarks

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkMillion floods a limiter with a million keys, waits until all are as
// good as new, and goes on asking for a thousand others. It reports the live
// heap for each key at the flood's height (the bytes of the keys themselves
// excluded) and after the forgetting, and the longest single call while the
// million expire. Its time for a round is not a result.
func BenchmarkMillion(b *testing.B) {
	flood := limit{1, 3 * time.Second, 1} // longer than the flood takes
	for _, k := range keyedRivals {
		b.Run(k.name, func(b *testing.B) {
			all := keys(million)
			others := sequence(1000, beyondTheMillion())
			var height, left uint64
			var longest time.Duration
			for b.Loop() {
				before := liveHeap()
				allow, stop := k.allow(flood)
				start := time.Now().Truncate(flood.per).Add(flood.per) // where an aligned window begins
				time.Sleep(time.Until(start))
				for _, key := range all {
					allow(key)
				}
				height += liveHeap() - before
				if t := time.Since(start); t > flood.per {
					b.Logf("the flood took %v: some keys had expired at its end", t)
				}
				time.Sleep(time.Until(start.Add(flood.per)))
				longest = max(longest, longestCall(allow, others, 2*flood.per))
				if after := liveHeap(); after > before {
					left += after - before
				}
				stop()
				runtime.KeepAlive(allow)
			}
			rounds := float64(b.N) * million
			b.ReportMetric(0, "ns/op") // hides it
			b.ReportMetric(float64(height)/rounds, "heap-B/key")
			b.ReportMetric(float64(left)/rounds, "left-B/key")
			b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
		})
	}
}

// longestCall asks for the keys in turn for as long as told.
func longestCall(allow func(string) bool, asked []string, during time.Duration) (longest time.Duration) {
	start := time.Now()
	for last := start; last.Sub(start) < during; {
		for _, key := range asked {
			allow(key)
			now := time.Now()
			longest = max(longest, now.Sub(last))
			last = now
		}
	}
	return longest
}

// beyondTheMillion picks keys that are none of the million.
func beyondTheMillion() func() int {
	n := million
	return func() int { n++; return n }
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one only made free to take
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
