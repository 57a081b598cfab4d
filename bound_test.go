package ratelimit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
	"github.com/seed4f92381c/ratelimit/internal/conformance"
)

// boundPhase is how far the clock's start is into a window of a second.
const boundPhase = 370 * time.Millisecond

// boundStart is the clock's start.
var boundStart = time.Date(2026, 11, 30, 12, 0, 0, int(boundPhase), time.UTC)

// boundEvent is units that acted.
type boundEvent struct {
	at      time.Duration // when they acted
	entered time.Duration // when they were asked for
	units   int
	booked  bool
}

// boundCheck returns the first interval in which more acted than a policy
// promises, or "".
type boundCheck func(events []boundEvent) string

// boundPairs checks every interval that begins and ends with an event.
func boundPairs(events []boundEvent, most func(first boundEvent, t time.Duration) int) string {
	for i, first := range events {
		sum := 0
		for _, e := range events[i:] {
			sum += e.units
			if t := e.at - first.at; sum > most(first, t) {
				return fmt.Sprintf("%d units in [%v, %v], which is %v long: want at most %d", sum, first.at, e.at, t, most(first, t))
			}
		}
	}
	return ""
}

func boundBucket(p ratelimit.Policy) boundCheck {
	num, den := p.Rate().Ratio()
	return func(events []boundEvent) string {
		return boundPairs(events, func(first boundEvent, t time.Duration) int {
			if first.at > first.entered && uint64(t+1)*num%den != 0 {
				t++ // the first moment may have been rounded up, by less than a nanosecond
			}
			return p.Limit() + int(uint64(t)*num/den)
		})
	}
}

func boundInterval(p ratelimit.Policy, n int, d time.Duration) boundCheck {
	return func(events []boundEvent) string {
		return boundPairs(events, func(_ boundEvent, t time.Duration) int { return p.Limit() + n*(int(t/d)+1) })
	}
}

func boundLeaky(p ratelimit.Policy) boundCheck {
	num, den := p.Rate().Ratio()
	return func(events []boundEvent) string {
		last := boundEvent{at: -time.Hour}
		for _, e := range events {
			if !e.booked {
				continue
			}
			// Moments are rounded up to a nanosecond each.
			if gap := e.at - last.at; (uint64(gap)+1)*num <= uint64(e.units)*den {
				return fmt.Sprintf("%d units at %v, only %v after the booking before", e.units, e.at, gap)
			}
			last = e
		}
		entries := slices.Clone(events)
		for i := range entries {
			entries[i].at = entries[i].entered
		}
		slices.SortStableFunc(entries, boundOrder)
		return boundPairs(entries, func(_ boundEvent, t time.Duration) int { return p.Limit() + int(uint64(t)*num/den) })
	}
}

func boundLog(p ratelimit.Policy) boundCheck {
	return func(events []boundEvent) string {
		return boundPairs(events, func(_ boundEvent, t time.Duration) int {
			if t >= p.Window() {
				return 1 << 30
			}
			return p.Limit()
		})
	}
}

func boundFixed(p ratelimit.Policy) boundCheck {
	return func(events []boundEvent) string {
		sums := map[time.Duration]int{}
		for _, e := range events {
			window := (e.at + boundPhase) / p.Window()
			if sums[window] += e.units; sums[window] > p.Limit() {
				return fmt.Sprintf("%d units by %v in window %d: want at most %d", sums[window], e.at, window, p.Limit())
			}
		}
		return ""
	}
}

func boundSliding(p ratelimit.Policy) boundCheck {
	w, cells := p.Window(), time.Duration(p.Cells())
	return func(events []boundEvent) string {
		return boundPairs(events, func(_ boundEvent, t time.Duration) int {
			switch {
			case t*cells <= w*(cells-1):
				return p.Limit()
			case t < w:
				return 2 * p.Limit()
			}
			return 1 << 30
		})
	}
}

func boundOrder(a, b boundEvent) int { return cmp.Compare(a.at, b.at) }

// boundPolicies are the policies with what each promises.
func boundPolicies() map[string]struct {
	policy ratelimit.Policy
	check  boundCheck
} {
	type row = struct {
		policy ratelimit.Policy
		check  boundCheck
	}
	rows := map[string]row{}
	for name, p := range map[string]ratelimit.Policy{
		"token-bucket":         ratelimit.TokenBucketPolicy(ratelimit.PerSecond(3), 5),
		"token-bucket/initial": ratelimit.TokenBucketPolicy(ratelimit.PerSecond(7), 4).WithInitial(1),
		"token-bucket/odd":     ratelimit.TokenBucketPolicy(ratelimit.Per(123457, 10*time.Hour+1), 6),
		"token-bucket/float":   ratelimit.TokenBucketPolicy(ratelimit.PerSecond(3.0000000000001), 5),
	} {
		rows[name] = row{p, boundBucket(p)}
	}
	interval := ratelimit.TokenBucketPolicy(ratelimit.Per(2, 700*time.Millisecond), 5).WithIntervalRefill()
	rows["token-bucket/interval"] = row{interval, boundInterval(interval, 2, 700*time.Millisecond)}
	for name, p := range map[string]ratelimit.Policy{
		"leaky-bucket":                 ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(3), 5),
		"leaky-bucket/immediate-first": ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(3), 5).WithImmediateFirst(),
	} {
		rows[name] = row{p, boundLeaky(p)}
	}
	log := ratelimit.SlidingLogPolicy(5, time.Second)
	rows["sliding-log"] = row{log, boundLog(log)}
	fixed := ratelimit.FixedCounterPolicy(5, time.Second)
	rows["fixed-counter"] = row{fixed, boundFixed(fixed)}
	for _, cells := range []int{1, 2, 4, 7} {
		p := ratelimit.SlidingCounterPolicy(5, time.Second).WithCells(cells)
		rows[fmt.Sprintf("sliding-counter/cells=%d", cells)] = row{p, boundSliding(p)}
	}
	return rows
}

// boundMakers make a limiter of a policy.
var boundMakers = map[string]func(*testing.T, ratelimit.Policy, ratelimit.Clock) ratelimit.Limiter{
	"plain": func(t *testing.T, p ratelimit.Policy, c ratelimit.Clock) ratelimit.Limiter {
		return conformingNew(t, p, ratelimit.WithClock(c))
	},
	"keyed": func(t *testing.T, p ratelimit.Policy, c ratelimit.Clock) ratelimit.Limiter {
		k, err := ratelimit.NewKeyed[int](p, ratelimit.WithClock(c), ratelimit.WithShards(1))
		if err != nil {
			t.Fatal(err)
		}
		return k.For(7)
	},
	"all": func(t *testing.T, p ratelimit.Policy, c ratelimit.Clock) ratelimit.Limiter {
		other := ratelimit.TokenBucketPolicy(ratelimit.PerSecond(20), 8)
		return ratelimit.All(conformingNew(t, other, ratelimit.WithClock(c)), conformingNew(t, p, ratelimit.WithClock(c)))
	},
}

// TestBound checks, over every interval of random schedules, the bound that
// each algorithm promises: whatever is reserved, cancelled and settled.
func TestBound(t *testing.T) {
	t.Parallel()
	for name, row := range boundPolicies() {
		for maker, make := range boundMakers {
			t.Run(name+"/"+maker, func(t *testing.T) {
				t.Parallel()
				failed := 0
				for seed := range uint64(500) {
					for _, settle := range []bool{false, true} {
						clock := conformance.NewClock(boundStart)
						s := boundSchedule{l: make(t, row.policy, clock), clock: clock, settle: settle, limit: row.policy.Limit()}
						s.play(rand.New(rand.NewPCG(seed, 7)), 10+int(seed%60))
						if broken := row.check(s.acted()); broken != "" && failed < 1 {
							failed++
							t.Errorf("%v, seed %d, settle %v: %s\n%s", row.policy, seed, settle, broken, strings.Join(s.trace, "\n"))
						}
					}
				}
			})
		}
	}
}

// TestBoundOfASettledSlot settles a due booking for less: what acted keeps its
// slot, so the next booking is not released together with it.
func TestBoundOfASettledSlot(t *testing.T) {
	t.Parallel()
	p := ratelimit.LeakyBucketPolicy(ratelimit.PerSecond(2), 5).WithImmediateFirst()
	for maker, make := range boundMakers {
		c := conformance.NewClock(boundStart)
		l := make(t, p, c)
		r := l.ReserveN(2)
		c.Advance(r.Delay())
		r.Settle(1)
		if got := l.Reserve().Delay(); got < 500*time.Millisecond {
			t.Errorf("%s, t=%v: delay after a unit that acts now: got %v, want at least 500ms", maker, c.Elapsed(), got)
		}
	}
}

// boundSchedule is a random schedule of calls and what acted in it.
type boundSchedule struct {
	l      ratelimit.Limiter
	clock  *conformance.Clock
	settle bool
	limit  int
	events []*boundEvent
	open   []boundOpen
	trace  []string
}

// boundOpen is a booking that has not been corrected.
type boundOpen struct {
	name  int
	r     *ratelimit.Reservation
	event *boundEvent
}

func (s *boundSchedule) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("t=%v: ", s.clock.Elapsed())+fmt.Sprintf(format, args...))
}

func (s *boundSchedule) play(rng *rand.Rand, steps int) {
	book := 1 + rng.IntN(5) // some schedules only book, others mostly ask
	for step := range steps {
		switch now, choice := s.clock.Elapsed(), rng.IntN(10); {
		case choice < 2:
			s.clock.Advance(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
		case choice == 2:
			// To a moment that matters, or next to it; and perhaps correct it there.
			if len(s.open) == 0 {
				s.clock.Advance(time.Duration(rng.IntN(3)) * 500 * time.Millisecond)
				continue
			}
			i := rng.IntN(len(s.open))
			s.clock.Advance(max(0, s.open[i].event.at+time.Duration(max(-1, rng.IntN(4)-2))-now))
			if rng.IntN(2) == 0 {
				s.correct(rng, i)
			}
		case choice < 3+book:
			n := 1 + rng.IntN(s.limit)
			r := s.l.ReserveN(n)
			if r.OK() {
				e := &boundEvent{now + r.Delay(), now, n, true}
				s.events = append(s.events, e)
				s.open = append(s.open, boundOpen{step, r, e})
				s.note("r%d = Reserve(%d), acts at %v", step, n, e.at)
			}
		case choice < 8 || len(s.open) == 0:
			if n := 1 + rng.IntN(s.limit); s.l.AllowN(n) {
				s.events = append(s.events, &boundEvent{now, now, n, false})
				s.note("Allow(%d)", n)
			}
		default:
			s.correct(rng, rng.IntN(len(s.open)))
		}
	}
}

// correct cancels or settles a booking.
func (s *boundSchedule) correct(rng *rand.Rand, i int) {
	o := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	if !s.settle || rng.IntN(2) == 0 {
		s.note("r%d.Cancel()", o.name)
		if o.r.Cancel(); s.clock.Elapsed() < o.event.at {
			o.event.units = 0
		}
		return
	}
	actual := rng.IntN(o.event.units + 3)
	s.note("r%d.Settle(%d)", o.name, actual)
	o.r.Settle(actual)
	// What is used beyond the booking is paid for later.
	o.event.units = min(o.event.units, actual)
}

// acted returns the units that acted, in the order of their moments.
func (s *boundSchedule) acted() (events []boundEvent) {
	for _, e := range s.events {
		if e.units > 0 {
			events = append(events, *e)
		}
	}
	slices.SortStableFunc(events, boundOrder)
	return events
}
