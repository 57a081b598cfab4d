// Command ratios reads the output of go test -bench and prints, for each group
// of benchmarks that has a baseline in it, a Markdown table of the medians and
// their ratios to the baseline's.
//
//	go test -run '^$' -bench . -count 6 | go run ./cmd/ratios
//
// The benchmarks of a group have the same name up to the last slash.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

func main() {
	baseline := flag.String("baseline", "x-time-rate", "`prefix` of the benchmark to compare with; of several in a group, the lowest")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *baseline); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, baseline string) error {
	r, err := parse(in)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, r.tables(baseline))
	return err
}

// A report is what one run of go test -bench printed.
type report struct {
	machine []string // the goos, goarch and cpu lines
	procs   string
	groups  []*group
}

type group struct {
	name  string
	units []string // in the order of their first appearance
	rows  []*row
}

type row struct {
	name    string
	samples map[string][]float64 // by unit
}

// benchmarkLine has the name, the GOMAXPROCS suffix (absent if 1), and the
// pairs of value and unit behind the number of rounds.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-(\d+))?\s+\d+\s+(.+)$`)

func parse(in io.Reader) (*report, error) {
	r := &report{procs: "1"}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if key, _, ok := strings.Cut(line, ": "); ok && (key == "goos" || key == "goarch" || key == "cpu") {
			if !slices.Contains(r.machine, line) {
				r.machine = append(r.machine, line)
			}
			continue
		}
		m := benchmarkLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[2] != "" {
			r.procs = m[2]
		}
		if err := r.add(m[1], strings.Fields(m[3])); err != nil {
			return nil, fmt.Errorf("%w in %q", err, line)
		}
	}
	return r, lines.Err()
}

func (r *report) add(name string, pairs []string) error {
	slash := strings.LastIndexByte(name, '/')
	if slash < 0 {
		return nil // in no group
	}
	g := findOrAdd(&r.groups, func(g *group) bool { return g.name == name[:slash] }, &group{name: name[:slash]})
	w := findOrAdd(&g.rows, func(w *row) bool { return w.name == name[slash+1:] },
		&row{name: name[slash+1:], samples: make(map[string][]float64)})
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		value, err := strconv.ParseFloat(pairs[0], 64)
		if err != nil {
			return err
		}
		unit := pairs[1]
		if !slices.Contains(g.units, unit) {
			g.units = append(g.units, unit)
		}
		w.samples[unit] = append(w.samples[unit], value)
	}
	return nil
}

func findOrAdd[T any](all *[]T, is func(T) bool, fresh T) T {
	if i := slices.IndexFunc(*all, is); i >= 0 {
		return (*all)[i]
	}
	*all = append(*all, fresh)
	return fresh
}

func (r *report) tables(baseline string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, GOMAXPROCS %s, %s\n", strings.Join(r.machine, ", "), r.procs, runtime.Version())
	for _, g := range r.groups {
		base := g.baseline(baseline)
		if base == nil {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| median of %d (ratio to %s) |", g.name, base.count(), base.name)
		for _, unit := range g.units {
			fmt.Fprintf(&b, " %s |", unit)
		}
		fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---:|", len(g.units)))
		for _, w := range g.rows {
			fmt.Fprintf(&b, "| %s |", w.name)
			for _, unit := range g.units {
				fmt.Fprintf(&b, " %s |", w.cell(unit, base))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// baseline returns the row whose median in the group's first unit is the lowest
// of those with the prefix, or nil.
func (g *group) baseline(prefix string) (base *row) {
	for _, w := range g.rows {
		if strings.HasPrefix(w.name, prefix) && (base == nil || w.median(g.units[0]) < base.median(g.units[0])) {
			base = w
		}
	}
	return base
}

func (w *row) cell(unit string, base *row) string {
	if len(w.samples[unit]) == 0 {
		return "–"
	}
	value := w.median(unit)
	text := number(value)
	if to := base.median(unit); to > 0 && len(base.samples[unit]) > 0 {
		text += fmt.Sprintf(" (%.2f×)", value/to)
	}
	return text
}

func (w *row) count() (n int) {
	for _, samples := range w.samples {
		n = max(n, len(samples))
	}
	return n
}

// median returns the middle sample, or the mean of the two in the middle.
func (w *row) median(unit string) float64 {
	samples := slices.Sorted(slices.Values(w.samples[unit]))
	n := len(samples)
	if n == 0 {
		return 0
	}
	return (samples[(n-1)/2] + samples[n/2]) / 2
}

// number prints three digits at least, and whole numbers whole.
func number(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
