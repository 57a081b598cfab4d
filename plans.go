package ratelimit

import (
	"sync"
	"sync/atomic"
)

// newPlans is the budgets of keys that have each a policy of its own.
func newPlans[K comparable](policyFor func(K) Policy, t timeline, o options) keyedBudget[K] {
	made := &templates{time: t, also: o.also}
	s := newShards[K, *tenant](joint{made.of(Blocked())}, Blocked(), t, o)
	s.fresh = func(key K) *tenant { return made.of(policyFor(key)).anew() }
	return s
}

// templates keeps what was compiled of the policies seen, up to a bound: plans
// are few, and a policyFor that makes up ever new ones shall not fill the memory.
type templates struct {
	time  timeline
	also  []Policy
	kept  sync.Map // of Policy to *tenant
	count atomic.Int32
}

const maxTemplates = 1024

// of returns an unused tenant of p, or of Blocked where p is invalid.
func (m *templates) of(p Policy) *tenant {
	if t, ok := m.kept.Load(p); ok {
		return t.(*tenant)
	}
	if p.Validate() != nil {
		return m.of(Blocked())
	}
	t := newTenant(m.time, append([]Policy{p}, m.also...)...)
	if m.count.Add(1) <= maxTemplates {
		m.kept.Store(p, t)
	}
	return t
}
