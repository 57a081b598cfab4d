package main

import (
	"runtime"
	"strings"
	"testing"
)

const output = `goos: plan9
goarch: mips
cpu: Abacus 9000
BenchmarkAlone-4          	 100	 7 ns/op
BenchmarkClock/time.Since-4	 100	 40.0 ns/op
BenchmarkPlain/admitted/x-time-rate-4 	 100	 50.0 ns/op	 0 B/op	 2 allocs/op
BenchmarkPlain/admitted/ours-2-4      	 100	 12.5 ns/op	 0 B/op	 1 allocs/op
BenchmarkPlain/admitted/x-time-rate-4 	 100	 70.0 ns/op	 0 B/op	 2 allocs/op
BenchmarkPlain/admitted/ours-2-4      	 100	 1000 ns/op	 0 B/op	 1 allocs/op
BenchmarkPlain/admitted/x-time-rate-4 	 100	 900 ns/op	 0 B/op	 2 allocs/op
BenchmarkPlain/admitted/ours-2-4      	 100	 17.5 ns/op	 0 B/op	 1 allocs/op
BenchmarkKeyed/x-time-rate+slow-4 	 100	 300 ns/op
BenchmarkKeyed/x-time-rate+fast-4 	 100	 200 ns/op
BenchmarkKeyed/ours-4             	 100	 50 ns/op	 9.25 heap-B/key
PASS
ok  	example	1.0s
`

func TestTables(t *testing.T) {
	want := strings.Join([]string{
		"goos: plan9, goarch: mips, cpu: Abacus 9000, GOMAXPROCS 4, " + runtime.Version(),
		"",
		"### Plain/admitted",
		"",
		"| median of 3 (ratio to x-time-rate) | ns/op | B/op | allocs/op |",
		"|---|---:|---:|---:|",
		"| x-time-rate | 70 (1.00×) | 0 | 2 (1.00×) |",
		"| ours-2 | 17.5 (0.25×) | 0 | 1 (0.50×) |",
		"",
		"### Keyed",
		"",
		"| median of 1 (ratio to x-time-rate+fast) | ns/op | heap-B/key |",
		"|---|---:|---:|",
		"| x-time-rate+slow | 300 (1.50×) | – |",
		"| x-time-rate+fast | 200 (1.00×) | – |",
		"| ours | 50 (0.25×) | 9.25 |",
		"",
	}, "\n")
	var got strings.Builder
	if err := run(strings.NewReader(output), &got, "x-time-rate"); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestMedianOfAnEvenNumber(t *testing.T) {
	w := &row{samples: map[string][]float64{"ns/op": {9, 1, 4, 2}}}
	if got := w.median("ns/op"); got != 3 {
		t.Errorf("median of 9, 1, 4, 2 = %v, want 3", got)
	}
}

func TestBrokenNumber(t *testing.T) {
	in := strings.NewReader("BenchmarkA/b-2 1 x ns/op\n")
	if err := run(in, &strings.Builder{}, "b"); err == nil {
		t.Error("a value that is no number gives no error")
	}
}
