package benchmarks

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkAccuracy overloads each limiter for a second from many goroutines
// and compares what it admits to the bound of its limit, which no run may
// exceed: admitted-% is 100 at the most, and how near it comes is how much of
// what was paid for is delivered. Its time for a round is not a result.
func BenchmarkAccuracy(b *testing.B) {
	for _, goroutines := range []int{8, 64, 1000} {
		b.Run(strconv.Itoa(goroutines)+"goroutines", func(b *testing.B) {
			for _, r := range plainRivals {
				if r.most == nil {
					continue
				}
				b.Run(r.name, func(b *testing.B) {
					var admitted, over, most float64
					for b.Loop() {
						units, took := overloadFor(time.Second, goroutines, r)
						bound := r.most(overload, took)
						admitted += units
						most += bound
						over += max(0, units-bound)
					}
					b.ReportMetric(0, "ns/op") // hides it
					b.ReportMetric(100*admitted/most, "admitted-%")
					b.ReportMetric(over/float64(b.N), "units-over")
				})
			}
		})
	}
}

// overloadFor returns the units admitted and the time from before the limiter
// was made until after the last call.
func overloadFor(d time.Duration, goroutines int, r plainRival) (units float64, took time.Duration) {
	start := time.Now()
	allow := r.allow(overload)
	var total atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var admitted int64
			for !stop.Load() {
				if allow() {
					admitted++
				}
			}
			total.Add(admitted)
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	return float64(total.Load()), time.Since(start)
}
