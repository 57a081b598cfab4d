package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A stepClock stands still until it is moved. It is a ratelimit.Clock.
type stepClock struct{ now time.Time }

func (c *stepClock) Now() time.Time       { return c.now }
func (c *stepClock) step(d time.Duration) { c.now = c.now.Add(d) }

// After is what Wait sleeps on. Nobody sleeps here, so it never rings.
func (c *stepClock) After(time.Duration) <-chan time.Time { return nil }

// A table aligns the cells of its rows when it is flushed.
type table struct {
	w      *strings.Builder
	rows   [][]string
	widths []int // of the columns, in runes
}

func newTable(w *strings.Builder, title, lesson string) *table {
	fmt.Fprintf(w, "\n%s\n   %s\n\n", title, lesson)
	return &table{w: w}
}

func (t *table) row(values ...any) {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = fmt.Sprint(v)
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cells[i]))
	}
	t.rows = append(t.rows, cells)
}

func (t *table) flush() {
	for _, cells := range t.rows {
		for i, cell := range cells {
			cells[i] = fmt.Sprintf("%-*s", t.widths[i], cell)
		}
		fmt.Fprintf(t.w, "   %s\n", strings.TrimRight(strings.Join(cells, "  "), " "))
	}
}

// bar draws n of size requests as going ahead at once and the others as
// refused.
func bar(n, size int) string { return strings.Repeat("█", n) + strings.Repeat("·", size-n) }

// wait draws n requests as going ahead after a wait.
func wait(n int) string { return strings.Repeat("▒", n) }
