package ratelimit

import (
	"errors"

	"github.com/seed4f92381c/ratelimit/internal/arith"
)

// joint is the algorithm of keys that have several policies, or each its own:
// all of a key's policies are charged or none. Where all keys have the same
// ones, they are those of the template.
type joint struct{ template *tenant }

// A tenant is the state of one key: a cell for each of its policies. Unlike
// other states it is changed in place. A nil tenant is one like the template.
type tenant struct{ cells []cell }

func newTenant(t timeline, policies ...Policy) *tenant {
	made := &tenant{}
	for _, p := range policies {
		made.cells = append(made.cells, cellFor(p, t))
	}
	return made
}

func (j joint) of(t *tenant) *tenant {
	if t == nil {
		return j.template.anew()
	}
	return t
}

// anew returns the tenant of the same policies that has never been used.
func (t *tenant) anew() *tenant {
	fresh := &tenant{make([]cell, len(t.cells))}
	for i, c := range t.cells {
		fresh.cells[i] = c.anew()
	}
	return fresh
}

func (j joint) limit(t *tenant) int64 {
	if t == nil {
		t = j.template
	}
	least := int64(never)
	for _, c := range t.cells {
		least = min(least, c.limit())
	}
	return least
}

func (j joint) admit(t *tenant, now, n int64) (*tenant, bool) {
	t = j.of(t)
	if len(t.cells) > 1 {
		for _, c := range t.cells {
			if !c.look(now, n).Allowed {
				return t, false
			}
		}
	}
	ok := true
	for _, c := range t.cells {
		ok = c.charge(now, n) // of several, each has said that it can
	}
	return t, ok
}

func (j joint) book(t *tenant, now, notBefore, n, maxWait int64) (*tenant, booking[*tenant], error) {
	t = j.of(t)
	done := booking[*tenant]{n: n, parts: make([]any, len(t.cells))}
	err := t.bookAll(&done, now, notBefore, maxWait)
	if errors.Is(err, ErrWaitTooLong) && maxWait != atOnce {
		// The moment that would suit all is what the caller would have to wait for.
		if t.bookAll(&done, now, notBefore, unbounded) == nil {
			t.undo(&done, now)
		}
	}
	return t, done, err
}

func (t *tenant) bookAll(done *booking[*tenant], now, notBefore, maxWait int64) error {
	delay, err := agree(len(t.cells), max(0, notBefore-now),
		func(i int, delay int64) (int64, error) {
			at, least, part, err := t.cells[i].book(now, arith.After(now, delay), done.n, maxWait)
			done.parts[i] = part
			done.least = max(done.least, least)
			return at - now, err
		},
		func(i int) { t.cells[i].settle(now, done.parts[i], 0) })
	done.at = arith.After(now, delay)
	return err
}

func (t *tenant) undo(done *booking[*tenant], now int64) {
	for i := len(t.cells) - 1; i >= 0; i-- {
		t.cells[i].settle(now, done.parts[i], 0)
	}
}

// agree finds the least delay at which all parties can be booked together, and
// books them. book books party i for its first moment at least delay away. While
// the moments differ, all is undone and the latest is the next to try. A party
// that can be booked for a moment can be for any later one, so the second round
// agrees; only parties that draw on one budget behind the scenes, as two keys of
// the overflow do, may never, and the rounds are bounded for them. On an error, nothing stays booked, and the delay is that of the party
// that refused.
func agree(parties int, delay int64, book func(i int, delay int64) (int64, error), undo func(i int)) (int64, error) {
	undoAll := func(booked int) {
		for i := booked - 1; i >= 0; i-- {
			undo(i)
		}
	}
	for range 8 + parties {
		latest := delay
		for i := range parties {
			least, err := book(i, delay)
			if err != nil {
				undoAll(i)
				return least, err
			}
			latest = max(latest, least)
		}
		if latest == delay {
			return delay, nil
		}
		undoAll(parties)
		delay = latest
	}
	return delay, ErrWaitTooLong
}

func (j joint) settle(t *tenant, now int64, b booking[*tenant], actual int64) *tenant {
	t = j.of(t)
	for i, part := range b.parts {
		if i < len(t.cells) {
			t.cells[i].settle(now, part, actual)
		}
	}
	return t
}

func (j joint) measure(t *tenant, now, n int64) measurement {
	t = j.of(t)
	var worst Decision
	for i, c := range t.cells {
		if d := c.look(now, n); i == 0 {
			worst = d
		} else {
			worst = tightest(worst, d)
		}
	}
	return measurement{
		remaining: int64(worst.Remaining), retry: int64(worst.RetryAfter), reset: int64(worst.ResetAfter),
		policy: worst.Policy, limit: int64(worst.Limit),
	}
}

func (joint) idle(t *tenant, now int64) bool {
	if t == nil {
		return true
	}
	for _, c := range t.cells {
		if !c.idle(now) {
			return false
		}
	}
	return true
}

// become changes the first policy; those of WithAlso stay.
func (j joint) become(p Policy, now int64) joint {
	template := j.template.anew()
	template.cells[0].change(p, now)
	return joint{template}
}

func (joint) carry(t *tenant, now int64, to joint) *tenant {
	t.cells[0].follow(to.template.cells[0], now)
	return t
}
